import pytest

from tbadapters.core.grading import Verdict
from tbadapters.core.records import AttemptRecord
from tbadapters.core.state import Effect
from tbadapters.core.tool_fault_figures import tool_fault_figures
from tbadapters.core.tools import Change, ToolCall, ToolResult

WROTE = (Change("charges", "1", None),)


def trial(task, index, *calls, passed=True, effects=()):
    """Return a trial of calls, each (tool, amount, fault) or (tool, amount, fault, changes)."""
    made = []
    for number, (name, amount, fault, *changes) in enumerate(calls):
        result = ToolResult("", None, fault == "late_timeout", *(changes or [WROTE]), fault)
        made.append(ToolCall(number, name, {"amount": amount}, result))
    verdict = None if passed is None else Verdict(passed, float(passed), tuple(effects))
    return AttemptRecord(task, index, 0, "settled", verdict, tool_calls=tuple(made))


def extra(caused_by, kind="unexpected"):
    return Effect(kind, "charges", "2", None, None, {"amount": 25}, None, caused_by=caused_by)


def figures(*records):
    return {found.kind: found for found in tool_fault_figures(records)}


def test_trials_that_met_a_fault_are_held_against_those_that_met_none():
    """The rate without is that of trials that met no fault of any kind, of the tasks that have both."""
    found = figures(
        trial("a", 0, ("pay", 1, "slow")),
        trial("a", 1, ("pay", 1, "slow"), passed=False),
        trial("a", 2, ("pay", 1, "transient_error"), passed=False),
        trial("a", 3, ("pay", 1, None)),
        trial("b", 0, ("pay", 1, "slow"), passed=False),
        trial("b", 1, ("pay", 1, "transient_error"), passed=False),
        trial("c", 0, ("pay", 1, None), passed=False),
    )["slow"]
    assert (found.calls, found.trials, found.passed) == (3, 3, 1)
    assert (found.tasks, found.rate, found.rate_without, found.retained) == (1, 0.5, 1.0, 0.5)
    assert found.difference.value == -0.5


def test_trials_without_a_verdict_count_nowhere():
    """A trial without a verdict is neither success nor failure under a fault."""
    assert figures(trial("a", 0, ("pay", 1, "slow"), passed=None)) == {}


def test_nothing_can_be_retained_of_nothing():
    """Without a trial that met no fault, or where these all fail, no share of success is retained."""
    only = figures(trial("a", 0, ("pay", 1, "slow")))["slow"]
    assert (only.rate, only.rate_without, only.retained) == (None, None, None)
    hopeless = figures(trial("a", 0, ("pay", 1, "slow"), passed=False), trial("a", 1, passed=False))["slow"]
    assert (hopeless.rate_without, hopeless.retained) == (0.0, None)


@pytest.mark.parametrize(
    ("calls", "effects", "duplicates"),
    [
        ([("pay", 25, "late_timeout"), ("pay", 25, None)], [extra(1)], 1),
        ([("pay", 25, "late_timeout"), ("pay", 25, None)], [extra(0)], 1),  # either row may be the one too many
        ([("pay", 25, "late_timeout"), ("pay", 25, None, None)], [extra(1)], 1),  # the sandbox can't tell
        ([("pay", 25, "late_timeout")], [extra(0)], 0),  # wrong, but done once
        ([("pay", 25, "late_timeout"), ("pay", 30, None)], [extra(1)], 0),  # another call
        ([("pay", 25, "late_timeout"), ("pay", 25, None, ())], [extra(0)], 0),  # the second changed nothing
        ([("pay", 25, "late_timeout"), ("pay", 25, None)], [extra(1, "missing")], 0),
        ([("pay", 25, "late_timeout"), ("pay", 25, None), ("tip", 1, None)], [extra(2), extra(None)], 0),
    ],
)
def test_effects_of_calls_that_were_executed_again(calls, effects, duplicates):
    """A duplicate is an effect that a call caused which was executed again, the same, after its answer was lost."""
    found = figures(trial("a", 0, *calls, passed=False, effects=effects))["late_timeout"]
    assert (found.duplicates, found.trials_with_duplicates) == (duplicates, int(duplicates > 0))


def test_a_repetition_after_an_error_is_no_duplicate():
    """A call that failed before anything happened was not executed: made again it is made once."""
    calls = [("pay", 25, "transient_error", ()), ("pay", 25, None)]
    found = figures(trial("a", 0, *calls, passed=False, effects=[extra(1)]))["transient_error"]
    assert found.duplicates == 0
