"""Promises of the checks of a suite: each of them can fail, and says of what."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from tbadapters.suites import load_suite
from tbadapters.testing.checks import check_suite

LIBRARY = Path(__file__).parents[1] / "data" / "library.py"


def checked(broken="", seeds=(), *, path=LIBRARY):
    suite = load_suite(path, **({"broken": broken} if broken else {}))
    return anyio.run(partial(check_suite, suite, seeds=seeds))


def test_a_sound_suite_holds_every_check():
    """All checks hold for a sound suite, on fresh seeds too, and none of them had nothing to look at."""
    report = checked(seeds=(1, 2))
    assert [row for row in report.rows() if not row.ok or row.of == 0 or row.held != row.of] == []
    assert report.ok
    assert report.mutation_score == 1.0
    assert report.floor == {"null": 0.0, "refusing": 0.0, "escalating": 0.0, "read-only": 0.0}
    assert report.seeds == (0, 1, 2)


@pytest.mark.parametrize(
    ("broken", "check", "said"),
    [
        ("golden_errors", "golden actions", "There is no loan 'L0'."),
        ("misfit", "golden actions", "verbose"),
        ("does_nothing", "null agent", "it passes"),
        ("bare_refusal", "always refusing", "it passes"),
        ("bare_escalation", "always escalating", "it passes"),
        ("only_reading", "read-only", "it passes"),
        ("one_fact_says_all", "unsaid fact", "'two' was not said"),
        ("needless_action", "dropped action", "(mark_seen) it passes"),
        ("ungraded_date", "altered argument", "renew_loan) with due="),
        ("alone", "extra action", "no further writing action"),
        ("blind", "extra action", "it passes"),
        ("by_counter", "order", "moved to"),
        ("graded_text", "wording", "put differently it fails"),
        ("other_rule", "decidability", "the rule says"),
    ],
)
def test_each_check_can_fail(broken, check, said):
    """A suite that is spoilt in one way fails the check that is there for it, and the note says of what."""
    report = checked(broken)
    assert not report.checks[check].ok
    assert not report.ok
    assert any(said in failure.detail for failure in report.checks[check].failures), report.checks[check].failures
    row = next(row for row in report.rows() if row.name == check)
    assert row.held < row.of
    assert row.note.startswith("library/")


def test_a_seed_that_gives_the_published_tasks_is_no_fresh_seed():
    """Tasks that do not change with the seed fail the check of fresh seeds."""
    report = checked("same_tasks", seeds=(1,))
    assert report.checks["fresh seeds"].held == 0
    assert "the same as the published one" in report.checks["fresh seeds"].failures[0].detail


def test_a_fault_of_a_fresh_task_fails_the_fresh_seeds_too():
    """A check that fails on a fresh seed is counted there, with the seed."""
    report = checked("by_counter", seeds=(3,))
    assert not report.checks["fresh seeds"].ok
    assert {failure.seed for failure in report.checks["order"].failures} == {0, 3}


def test_a_floor_above_zero_is_shown():
    """The pass rate of a do-nothing agent is the floor, and the floor's row fails with it."""
    report = checked("does_nothing")
    assert report.floor["null"] == 1.0
    row = next(row for row in report.rows() if row.name == "floor")
    assert not row.ok
    assert "null 100.0%" in row.note


def test_a_suite_without_rule_and_reseed_is_told_so():
    """What can't be checked is said to be unchecked, not said to hold."""
    report = checked(path=LIBRARY.with_name("desk.py"))
    rows = {row.name: row for row in report.rows()}
    assert rows["decidability"].note.startswith("not checked")
    assert rows["fresh seeds"].note.startswith("not checked")
    assert rows["fresh seeds"].of == 0


def test_one_altered_argument_in_a_hundred_may_escape():
    """Altered arguments need 99 %, everything else all of them."""
    report = checked()
    check = report.checks["altered argument"]
    check.of, check.held = 200, 198
    assert check.ok
    check.held = 197
    assert not check.ok
    check = report.checks["dropped action"]
    check.of, check.held = 200, 199
    assert not check.ok
