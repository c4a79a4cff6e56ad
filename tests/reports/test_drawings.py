"""What stands in the drawings: points where their rates put them, names that hide nothing, amounts to scale."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import MISSING, WRONG, record, result_of, seeded_result

from tbadapters.core.figures import Amount
from tbadapters.core.records import AttemptRecord
from tbadapters.core.task_info import TaskInfo
from tbadapters.reports.drawings import bars, breadth, parts, spending, survival
from tbadapters.reports.grid import looks_of, task_rows
from tbadapters.reports.scatter import HEIGHT, WIDTH, Point, scatter
from tbadapters.reports.trial_view import trial_view

T, F, N = True, False, None


def test_points_stand_where_their_rates_put_them():
    """Equal steps of a rate are equal steps to the right and up; a point without a rate is left out."""
    rates = [(0.0, 0.0), (0.5, 0.25), (1.0, 1.0)]
    chart = scatter([*(Point(f"p{x}", x, y) for x, y in rates), Point("unknown", 0.5, None)], x="x", y="y")
    first, middle, last = sorted(chart.spots, key=lambda spot: spot.x)
    assert first.x < last.x <= WIDTH
    assert first.y > last.y >= 0
    assert middle.x - first.x == pytest.approx(0.5 * (last.x - first.x))
    assert first.y - middle.y == pytest.approx(0.25 * (first.y - last.y))
    assert (last.x, last.y) == (chart.across[-1][0], chart.up[-1][0])
    assert chart.words == "y against x. p0.0: x 0.0%, y 0.0%. p0.5: x 50.0%, y 25.0%. p1.0: x 100.0%, y 100.0%."


RATES = st.floats(0, 1)
POINTS = st.lists(
    st.builds(
        Point, st.text("abcdefgh", min_size=1, max_size=18), RATES, RATES, st.sampled_from(["agent", "published"])
    ),
    max_size=12,
    unique_by=lambda point: (point.name, point.x, point.y, point.kind),
)


def _box(spot):
    width = 7.1 * len(spot.point.name)
    left = spot.label.x - {"start": 0, "middle": width / 2, "end": width}[spot.label.anchor]
    return left, spot.label.y - 10, left + width, spot.label.y + 3


@given(POINTS)
def test_names_hide_neither_points_nor_names(points):
    """However points lie, no name overlaps another or a point, or leaves the drawing."""
    spots = scatter(points, x="x", y="y").spots
    assert len(spots) == len(points)
    boxes = [_box(spot) for spot in spots if spot.label]
    boxes += [(spot.x - 5, spot.y - 5, spot.x + 5, spot.y + 5) for spot in spots]
    named = sum(1 for spot in spots if spot.label)
    for i, (left, top, right, bottom) in enumerate(boxes[:named]):
        assert left >= 0
        assert right <= WIDTH
        assert 0 <= top <= bottom <= HEIGHT
        for other in boxes[i + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_two_agents_at_one_place_are_both_named():
    """A name finds another side, or a line leads to it."""
    chart = scatter([Point(f"agent-{n}", 0.5, 0.5, number=n) for n in range(5)], x="x", y="y")
    labels = [spot.label for spot in chart.spots]
    assert len(set(labels)) == 5
    assert any(label.far for label in labels)


def test_a_name_beside_a_point_is_that_point_s():
    """A name without a line that leads to it keeps away from any other point."""
    places = [(x / 100, y / 100) for x in range(-4, 5, 2) for y in range(-4, 5, 2) if x or y]
    for across, up in places:
        chart = scatter([Point("first", 0.5, 0.5), Point("second", 0.5 + across, 0.5 + up, number=1)], x="x", y="y")
        for spot, other in zip(chart.spots, reversed(chart.spots), strict=True):
            left, top, right, bottom = _box(spot)
            beside = left - 12 < other.x + 5 and other.x - 5 < right + 12
            level = top < other.y + 5 and other.y - 5 < bottom
            assert spot.label.far or not (beside and level)


def test_agents_stand_at_their_figures():
    """The two drawings show pass@1, and solved at least once, against observed k/k."""
    found = result_of([[T, T], [T, F], [F, F], [T, T]])
    (spot,) = survival({"a": found}).spots
    assert (spot.point.x, spot.point.y) == (0.625, 0.5)
    (spot,) = breadth({"a": found}).spots
    assert (spot.point.x, spot.point.y) == (0.75, 0.5)
    assert spot.point.y_interval == found.figures.observed_all.interval


def test_agents_without_a_verdict_stand_nowhere():
    """Where no trial has a verdict there is no rate to draw; the others keep their colours."""
    results = {"A": result_of([[N, N], [N, N]]), "B": result_of([[T, T], [T, F]])}
    for drawing in (survival(results), breadth(results)):
        (only,) = drawing.spots
        assert (only.point.name, only.point.number) == ("B", 1)
    empty = replace(results["A"], tasks=seeded_result(tasks=12).tasks, records=())
    assert not breadth({"A": empty}, parts(empty)).spots


def test_intervals_hold_the_rate_that_is_drawn():
    """With undetermined tasks, too, the interval that is drawn holds the point and what it could become."""
    found = result_of([[T, T], [T, N], [F, F], [N, N]])
    (one,), (other,) = survival({"a": found}).spots, breadth({"a": found}).spots
    for value, drawn in ((one.point.y, one.point.y_interval), (other.point.x, other.point.x_interval)):
        assert drawn.low < value <= 0.75 < drawn.high


def test_parts_say_more_than_the_run_or_a_task():
    """A tag of one task or of all tasks is no part; parts come by pass@1."""
    found = result_of([[F], [T], [F], [T]])
    tags = [("all", "low", "one"), ("all", "high"), ("all", "low"), ("all", "high")]
    found = replace(found, tasks=tuple(TaskInfo(t.id, tag) for t, tag in zip(found.tasks, tags, strict=True)))
    assert [part.tag for part in parts(found)] == ["high", "low"]


def test_bars_are_to_scale():
    """A bar is its share of the greatest; what is unknown or undefined has none, and says so."""
    amounts = [("a", Amount(0.5, "USD")), ("b", Amount(2.0, "USD")), ("c", Amount(None, "USD", known=False))]
    found = [(bar.name, bar.share, bar.words) for bar in bars([*amounts, ("d", Amount(None, "USD"))])]
    assert found == [("a", 0.25, "$0.5000"), ("b", 1.0, "$2.00"), ("c", None, "unknown"), ("d", None, "—")]


def test_spending_adds_up():
    """What passed and failed trials took is what valid trials took; attempts without a verdict are apart."""
    found = seeded_result(faults=0.2)
    spent = spending(found)
    assert spent.passed + spent.failed == pytest.approx(found.cost)
    assert spent.lost == pytest.approx(0.002 * len(found.without_verdict))
    unpriced = replace(found, records=tuple(replace(r, cost=None) for r in found.records))
    assert spending(unpriced).share_passed is None
    assert spending(result_of([[T]])).share_passed == 1.0


def looks(*records: AttemptRecord) -> list[tuple[str, ...]]:
    found = replace(result_of([[T] * len(records)]), records=records)
    (row,) = task_rows(found)
    return [mark.looks for mark in row.marks]


def test_cells_tell_how_their_trials_look():
    """A failed trial tells its classes, whether it looked clean, and whether it was cut off; a passed one nothing."""
    task = "bank/t0"
    assert looks(
        record(task, 0, T),
        record(task, 1, F, effects=[WRONG, MISSING, WRONG]),
        record(task, 2, F, end_reason="tool_calls"),
        record(task, 3, N),
    ) == [(), ("clean", "wrong_value", "missing"), ("right_records", "cut_off"), ("no_verdict",)]


def test_only_looks_that_occur_can_be_chosen():
    """The filter offers no look that no trial has."""
    assert looks_of(list(task_rows(result_of([[T, T]])))) == {}
    assert set(looks_of(list(task_rows(result_of([[T, F]]))))) == {"clean", "wrong_value"}


@pytest.mark.parametrize(
    ("outcomes", "state"),
    [([T, T], "all"), ([T, F], "some"), ([F, F], "some never"), ([T, N], "open"), ([F, N], "some")],
)
def test_states_of_tasks(outcomes, state):
    """A task that never passed is one with a failed trial, too; missing trials leave it open what it is."""
    (row,) = task_rows(result_of([outcomes]))
    assert row.state == state


def test_earlier_attempts_are_told():
    """A trial that was decided by a second attempt says what ended the first."""
    found = replace(result_of([[T]]), faulted=(record("bank/t0", 0, N),))
    (kept,) = found.records
    view = trial_view(kept, found.tasks[0], found.faulted)
    assert view.earlier == ("provider (rate_limit): 429: slow down",)
