"""What injected tool faults did to an agent: the success that it retained, and what it did twice because of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tbadapters.core import statistics as stats
from tbadapters.core.figures import tally_trials
from tbadapters.core.paired import Difference, pair_tasks, rate_difference
from tbadapters.core.plain import plain
from tbadapters.core.records import AttemptRecord
from tbadapters.core.statistics import Tally
from tbadapters.core.tool_faults import TOOL_FAULT_KINDS, ToolFaultKind
from tbadapters.core.tools import ToolCall

_EXECUTED = frozenset({"late_timeout", "duplicate_delivery"})


@dataclass(frozen=True, slots=True)
class ToolFaultFigures:
    """What one kind of fault came to, over the trials with a verdict.

    A trial that met a fault is compared with trials of the same task that met none: long trials meet more faults, and hard
    tasks have long trials.

    Attributes:
        kind: The kind of the fault.
        calls: Tool calls that met it.
        trials: Trials with such a call.
        passed: Of these, those that passed.
        tasks: Tasks that have both trials that met it and trials that met no fault of any kind.
        rate: ``pass@1`` of the trials that met it: the mean over these tasks; None without such tasks.
        rate_without: The same of the trials that met none.
        difference: ``rate`` less ``rate_without``, paired by task, with its 95 % interval and p-value.
        duplicates: Effects that came of a call which was executed again: the agent repeated one whose answer was lost,
            or it was delivered twice. They are ``unexpected`` or ``wrong_value`` effects of failed trials.
        trials_with_duplicates: Trials with such an effect.
    """

    kind: ToolFaultKind
    calls: int
    trials: int
    passed: int
    tasks: int
    rate: float | None
    rate_without: float | None
    difference: Difference
    duplicates: int
    trials_with_duplicates: int

    @property
    def retained(self) -> float | None:
        """The share of success that is left: ``rate`` over ``rate_without``; None where that is 0 or unknown."""
        if self.rate is None or not self.rate_without:
            return None
        return self.rate / self.rate_without

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-like data."""
        return {
            "kind": self.kind,
            "calls": self.calls,
            "trials": self.trials,
            "passed": self.passed,
            "tasks": self.tasks,
            "rate": self.rate,
            "rate_without": self.rate_without,
            "difference": self.difference.to_dict(),
            "retained": self.retained,
            "duplicate_effects": self.duplicates,
            "trials_with_duplicate_effects": self.trials_with_duplicates,
        }


def tool_fault_figures(records: Iterable[AttemptRecord]) -> tuple[ToolFaultFigures, ...]:
    """Return the figures of each kind of fault that a trial met, in the order of the kinds.

    Args:
        records: The deciding attempts.
    """
    valid = [record for record in records if record.passed is not None]
    met = {id(record): {call.result.fault for call in record.tool_calls if call.result.fault} for record in valid}
    spared = _tallies([record for record in valid if not met[id(record)]])
    return tuple(
        _figures(kind, [record for record in valid if kind in met[id(record)]], spared)
        for kind in TOOL_FAULT_KINDS
        if any(kind in kinds for kinds in met.values())
    )


def _figures(kind: ToolFaultKind, met: Sequence[AttemptRecord], spared: Mapping[str, Tally]) -> ToolFaultFigures:
    pairs = pair_tasks(_tallies(met), spared)
    duplicates = [_duplicates(kind, record) for record in met]
    return ToolFaultFigures(
        kind=kind,
        calls=sum(call.result.fault == kind for record in met for call in record.tool_calls),
        trials=len(met),
        passed=sum(record.passed is True for record in met),
        tasks=len(pairs),
        rate=stats.mean(stats.known(stats.task_rate(pair.a) for pair in pairs)),
        rate_without=stats.mean(stats.known(stats.task_rate(pair.b) for pair in pairs)),
        difference=rate_difference(pairs),
        duplicates=sum(duplicates),
        trials_with_duplicates=sum(number > 0 for number in duplicates),
    )


def _tallies(records: Iterable[AttemptRecord]) -> dict[str, Tally]:
    trials: dict[str, list[AttemptRecord]] = {}
    for record in records:
        trials.setdefault(record.task, []).append(record)
    return {task: tally_trials(len(found), found) for task, found in trials.items()}


def _duplicates(kind: ToolFaultKind, record: AttemptRecord) -> int:
    """Count a trial's effects that came of a call which was executed again after it met this fault."""
    if kind not in _EXECUTED or record.verdict is None:
        return 0
    same: dict[str, list[ToolCall]] = {}
    for call in record.tool_calls:
        if call.executions and call.result.changes != ():
            same.setdefault(_same_call(call), []).append(call)
    again = {
        call.index
        for calls in same.values()
        if any(call.result.fault == kind for call in calls) and sum(call.executions for call in calls) > 1
        for call in calls
    }
    wrong = [effect for effect in record.verdict.effects if effect.kind != "missing"]
    return sum(effect.caused_by in again for effect in wrong)


def _same_call(call: ToolCall) -> str:
    """Return what is the same for calls of the same tool with the same arguments."""
    return f"{call.name} {sorted(plain(call.arguments).items(), key=repr)!r}"
