"""A comparison says no more than the paired tasks allow."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_runs import result_of, seeded_result

from tbadapters.core.comparison import Comparison, p_text
from tbadapters.core.errors import InvalidOption
from tbadapters.core.task_info import TaskInfo
from tbadapters.reports.html import comparison_page
from tbadapters.reports.markdown import markdown

T, F, N = True, False, None


def two(a, b, **options):
    return Comparison({"A": result_of(a, agent="A", **options), "B": result_of(b, agent="B", **options)})


def test_a_clear_difference():
    """Where A passes all and B nothing of ten tasks, the sentence says so with points, interval and p."""
    (pair,) = two([[T, T]] * 10, [[F, F]] * 10).pairs
    assert pair.pass_at_1.value == 1.0
    assert pair.p_pass_at_1 == 2 / 2**10
    assert pair.sentence == (
        "A passes 100.0 points more often than B (95% interval 38.3 to 100.0, p = 0.002); "
        "on 2/2 A leads B by 100.0 points (p = 0.002)."
    )


def test_no_difference_is_called_when_there_is_none_to_see():
    """Where the p-value is large, the sentence says that the agents can't be told apart."""
    (pair,) = two([[T, T], [F, F], [T, F]], [[T, F], [F, T], [T, F]]).pairs
    assert pair.sentence.startswith("A and B can't be told apart on pass@1 (difference 0.0 points")
    assert "on 2/2 they can't be told apart" in pair.sentence


def test_the_better_one_comes_first():
    """The pair is turned so that its difference is not negative."""
    (pair,) = two([[F, F]] * 6, [[T, F]] * 6).pairs
    assert (pair.a, pair.b, pair.pass_at_1.value) == ("B", "A", 0.5)


def test_only_common_tasks_with_verdicts_count():
    """Tasks that one agent has no verdict of are left out of the pairs, not counted as failed."""
    (pair,) = two([[T, T], [N, N], [T, T]], [[F, F], [F, F], [F, F]]).pairs
    assert [task.task for task in pair.tasks] == ["bank/t0", "bank/t2"]


def test_too_little_coverage_gives_no_headline():
    """Where one run lacks verdicts, neither agent is called better; the bounds of their difference are given."""
    comparison = two([[T, T], [N, N], [T, T]], [[F, F], [F, F], [F, F]])
    (pair,) = comparison.pairs
    assert pair.sentence == (
        "No headline for A and B (A: only 66.6% of the planned trials have a verdict, 95% are needed); pass@1 of A less "
        "that of B lies between +66.7 and +100.0 points."
    )
    assert comparison.to_dict()["pairs"][0]["bounds"] == pytest.approx([2 / 3, 1])
    assert comparison.to_dict()["pairs"][0]["sufficient"] is False
    lowered = {name: replace(result, coverage_floor=0.6) for name, result in comparison.results.items()}
    assert Comparison(lowered).sentences[0].startswith("A and B can't be told apart on pass@1 (difference 100.0 points")


def test_no_common_task():
    """Without a common task nothing is said of who is better."""
    (pair,) = two([[N], [T]], [[T], [N]]).pairs
    assert pair.sentence == "A and B have no task in common with a valid trial of both."
    assert pair.to_dict()["pass@1"]["p"] is None


def test_three_agents_are_corrected():
    """With three agents each p-value is corrected for three pairs."""
    runs = {name: seeded_result(skill=skill, seed=i, agent=name) for i, (name, skill) in enumerate(
        [("a", 0.95), ("b", 0.5), ("c", 0.7)])}  # fmt: skip
    comparison = Comparison(runs)
    assert len(comparison.pairs) == 3
    raw = sorted(pair.pass_at_1.p.value for pair in comparison.pairs)
    corrected = sorted(pair.p_pass_at_1 for pair in comparison.pairs)
    assert corrected[0] == pytest.approx(min(1.0, 3 * raw[0]))
    assert all(high >= low for low, high in zip(raw, corrected, strict=True))


def test_other_numbers_of_trials_leave_pass_at_1():
    """Runs of different k are compared on pass@1 only."""
    a, b = result_of([[T, T]] * 3), result_of([[F, F, F]] * 3)
    (pair,) = Comparison({"A": a, "B": b}).pairs
    assert pair.observed_all is None
    assert Comparison({"A": a, "B": b}).k is None
    assert Comparison({"A": a, "C": a}).k == 2
    assert pair.p_observed_all is None
    assert pair.pass_at_1.value == 1.0


def test_most_different_tasks():
    """The tasks with the largest differences come first; tasks on which they agree are not among them."""
    (pair,) = two([[T, T], [T, T], [T, T]], [[T, T], [F, T], [F, F]]).pairs
    assert [task.task for task in pair.most_different] == ["bank/t2", "bank/t1"]


def made(**settings):
    return replace(result_of([[T], [F]]), manifest={"settings": settings, "notes": ["The clock is not canonical."]})


def test_what_was_not_alike_is_noted():
    """Runs with another user, limit or policy are compared, and every report says so; what is alike is not named."""
    one = made(user="scripted", instructions="append", limits={"seconds": 300.0}, suite_digest="a", seed=0)
    found = Comparison({"A": one, "B": made(**one.manifest["settings"] | {"seed": 1})})
    assert (found.unlike, found.notes) == ((), ("The clock is not canonical.",))
    other = {
        "user": "openai:gpt-5-mini",
        "limits": {"seconds": 60.0},
        "tool_faults": {"slow": 0.5},
        "suite_digest": "b",
    }
    found = Comparison({"A": one, "B": made(**one.manifest["settings"] | other)})
    assert found.unlike == ("user", "tool faults", "limits", "the suite's own tasks, policy or tools")
    assert found.notes[1].endswith(
        "why they differ: user, tool faults, limits, the suite's own tasks, policy or tools."
    )
    for page in (str(found), markdown(found), comparison_page(found, Path("c.html"))):
        assert "clock is not canonical" in page
        assert "not made alike" in page
    assert found.to_dict()["notes"] == list(found.notes)
    fewer = replace(found.results["B"], tasks=one.tasks[:1], records=one.records[:1])
    assert "suite" not in "".join(Comparison({"A": one, "B": fewer}).unlike)


def test_as_json():
    """``to_dict`` is JSON with agents, pairs and tasks."""
    data = json.loads(json.dumps(two([[T, T], [F, F]], [[F, F], [T]], k=2).to_dict(), allow_nan=False))
    assert data["schema"] == "tbadapters.comparison/1"
    assert set(data["agents"]) == {"A", "B"}
    assert data["agents"]["A"]["figures"]["pass@1"]["value"] == 0.5
    assert data["tasks"][1] == {
        "id": "bank/t1",
        "agents": {"A": {"passed": 0, "valid": 2, "planned": 2}, "B": {"passed": 1, "valid": 1, "planned": 2}},
    }
    assert data["pairs"][0]["sentence"].endswith(".")


def test_pair_by_name():
    """A pair is found whichever name comes first; an unknown one is refused."""
    comparison = two([[T]], [[F]])
    assert comparison.pair("B", "A") is comparison.pair("A", "B")
    with pytest.raises(InvalidOption, match="its agents: A, B"):
        comparison.pair("A", "C")


def test_what_cannot_be_compared_is_refused():
    """One run alone, and runs of different suites or tasks, are refused in one sentence."""
    one = result_of([[T]])
    with pytest.raises(InvalidOption, match="at least 2"):
        Comparison({"A": one})
    with pytest.raises(InvalidOption, match="bank, shop"):
        Comparison({"A": one, "B": replace(one, suite="shop")})
    seeds = [replace(one, manifest={"settings": {"suite_seed": seed}}) for seed in (0, 7)]
    with pytest.raises(InvalidOption, match="suite seeds 0 and 7"):
        Comparison({"A": seeds[0], "B": seeds[1]})
    with pytest.raises(InvalidOption, match="bank/t0 does not allow the same end states"):
        Comparison({"A": one, "B": replace(one, tasks=(TaskInfo("bank/t0", (), {"closed": ()}),))})


@pytest.mark.parametrize(
    ("p", "text"), [(None, "unknown"), (0.0001, "below 0.001"), (0.01234, "0.012"), (1.0, "1.000")]
)
def test_p_values_as_text(p, text):
    """A p-value is never printed as zero."""
    assert p_text(p) == text


def test_print_and_report(tmp_path):
    """A comparison prints as a table and writes its reports."""
    comparison = two([[T, F]], [[F, F]])
    assert "A passes" in str(comparison) or "can't be told apart" in str(comparison)
    for name in ("c.html", "c.json", "c.xml"):
        assert "bank" in comparison.report(tmp_path / name).read_text(encoding="utf-8")
