"""Two or more agents on the same tasks: who passes more often, and whether that is more than chance."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from tbadapters.core.errors import InvalidOption
from tbadapters.core.numbers import counted
from tbadapters.core.paired import (
    Difference,
    TaskPair,
    all_passed_difference,
    holm,
    pair_tasks,
    rate_difference,
    rate_difference_bounds,
)
from tbadapters.core.result import RunResult
from tbadapters.core.shown import Shown
from tbadapters.core.statistics import Interval

SCHEMA = "tbadapters.comparison/1"
SIGNIFICANT = 0.05
MOST_DIFFERENT = 10
_CONDITIONS = ("user", "judge", "instructions", "approvals", "tool_faults", "limits")


@dataclass(frozen=True, slots=True)
class AgentPair:
    """Two of the compared agents.

    Attributes:
        a: The one that passes at least as often.
        b: The other.
        tasks: The tasks of which both have a valid trial.
        pass_at_1: A's pass@1 less B's on these tasks.
        observed_all: A's ``observed k/k`` less B's, where neither misses a trial; None where k differs.
        p_pass_at_1: The p-value of the first, corrected (Holm) for the number of pairs.
        p_observed_all: The same of the second.
        k: Planned trials a task, or None where they differ.
        bounds: What ``pass_at_1`` would be, on all tasks that both were given, if the trials missing had spoken against
            A and for B, and if they had spoken for A and against B.
        shortfalls: What each run lacks for a headline, by agent; empty where the coverage of both allows one.
    """

    a: str
    b: str
    tasks: tuple[TaskPair, ...]
    pass_at_1: Difference
    observed_all: Difference | None
    p_pass_at_1: float | None
    p_observed_all: float | None
    k: int | None
    bounds: Interval | None
    shortfalls: tuple[tuple[str, str], ...]

    @property
    def most_different(self) -> tuple[TaskPair, ...]:
        """The tasks on which they differ most, at most ten; none on which they agree."""
        apart = [pair for pair in self.tasks if pair.difference]
        return tuple(sorted(apart, key=lambda pair: (-abs(pair.difference), pair.task))[:MOST_DIFFERENT])

    @property
    def sentence(self) -> str:
        """What can be said of the two, in plain words; refused where the coverage of one is below its floor."""
        if self.pass_at_1.value is None:
            return f"{self.a} and {self.b} have no task in common with a valid trial of both."
        if self.shortfalls and self.bounds is not None:
            return self._refusal(self.bounds)
        parts = [self._on_pass_at_1()]
        if self.observed_all is not None and self.observed_all.value is not None:
            parts.append(self._on_observed_all(self.observed_all.value))
        return "; ".join(parts) + "."

    def _refusal(self, bounds: Interval) -> str:
        why = "; ".join(f"{agent}: {shortfall}" for agent, shortfall in self.shortfalls)
        low, high = (100 * value for value in bounds)
        return (
            f"No headline for {self.a} and {self.b} ({why}); pass@1 of {self.a} less that of {self.b} lies between "
            f"{low:+.1f} and {high:+.1f} points."
        )

    def _on_pass_at_1(self) -> str:
        points, p = 100 * (self.pass_at_1.value or 0.0), self.p_pass_at_1
        span = self.pass_at_1.interval
        facts = p_told(p)
        if span is not None:
            facts = f"95% interval {100 * span.low:.1f} to {100 * span.high:.1f}, {facts}"
        if _significant(p):
            return f"{self.a} passes {points:.1f} points more often than {self.b} ({facts})"
        return f"{self.a} and {self.b} can't be told apart on pass@1 (difference {points:.1f} points, {facts})"

    def _on_observed_all(self, value: float) -> str:
        name, p = f"{self.k}/{self.k}", self.p_observed_all
        facts = p_told(p)
        if self.observed_all is not None and self.observed_all.tasks < len(self.tasks):
            facts += f", over the {counted(self.observed_all.tasks, 'task')} without a missing trial"
        if not _significant(p):
            return f"on {name} they can't be told apart (difference {100 * value:.1f} points, {facts})"
        better, worse = (self.a, self.b) if value > 0 else (self.b, self.a)
        return f"on {name} {better} leads {worse} by {abs(100 * value):.1f} points ({facts})"

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as JSON-like data."""
        repeated = self.observed_all
        return {
            "a": self.a,
            "b": self.b,
            "tasks": len(self.tasks),
            "pass@1": _difference_dict(self.pass_at_1, self.p_pass_at_1),
            "bounds": None if self.bounds is None else list(self.bounds),
            "sufficient": not self.shortfalls,
            "observed k/k": None if repeated is None else _difference_dict(repeated, self.p_observed_all),
            "most_different": [
                {
                    "task": pair.task,
                    "difference": pair.difference,
                    "a": {"passed": pair.a.passed, "valid": pair.a.valid},
                    "b": {"passed": pair.b.passed, "valid": pair.b.valid},
                }
                for pair in self.most_different
            ],
            "sentence": self.sentence,
        }


class _Draft(NamedTuple):
    """A pair before its p-values are corrected."""

    a: str
    b: str
    tasks: tuple[TaskPair, ...]
    pass_at_1: Difference
    observed_all: Difference | None


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Runs of several agents on one suite, paired by task.

    Attributes:
        results: Agent's name -> its run.
        folder: The comparison's folder, or None.

    Raises:
        InvalidOption: fewer than two runs, or runs of different suites or tasks.
    """

    results: Mapping[str, RunResult]
    folder: Path | None = None

    def __post_init__(self) -> None:
        if len(self.results) < 2:  # noqa: PLR2004 - a pair
            raise InvalidOption("A comparison needs the runs of at least 2 agents.")
        suites = sorted({result.suite for result in self.results.values()})
        if len(suites) > 1:
            raise InvalidOption(f"Runs of different suites can't be compared: {', '.join(suites)}.")
        first, *others = self.results.values()
        for other in others:
            _check_same_tasks(first, other)

    @property
    def suite(self) -> str:
        """The suite's name."""
        return next(iter(self.results.values())).suite

    @property
    def k(self) -> int | None:
        """Planned trials a task, or None where the runs differ in it."""
        ks = {result.trials_per_task for result in self.results.values()}
        return ks.pop() if len(ks) == 1 else None

    @cached_property
    def pairs(self) -> tuple[AgentPair, ...]:
        """Every two agents, the one that passes more often first; p-values corrected over all pairs."""
        drafts = [self._draft(a, b) for a, b in combinations(self.results, 2)]
        single = _corrected([draft.pass_at_1 for draft in drafts])
        repeated = _corrected([draft.observed_all for draft in drafts])
        return tuple(
            AgentPair(
                *draft, p, p_every, self._k(draft.a, draft.b), self._bounds(draft), self._shortfalls(draft.a, draft.b)
            )
            for draft, p, p_every in zip(drafts, single, repeated, strict=True)
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What can be said of every two agents, in plain words."""
        return tuple(pair.sentence for pair in self.pairs)

    @property
    def unlike(self) -> tuple[str, ...]:
        """What the runs were not given alike, in words: a difference of theirs may come of it."""
        settings = [result.manifest["settings"] for result in self.results.values() if "settings" in result.manifest]
        unlike = [name.replace("_", " ") for name in _CONDITIONS if _differ(found.get(name) for found in settings)]
        tasks = {tuple(sorted(result.tallies)) for result in self.results.values()}
        if len(tasks) == 1 and _differ(found.get("suite_digest") for found in settings):
            unlike.append("the suite's own tasks, policy or tools")
        return tuple(unlike)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the comparison must know, a sentence each: those of its runs, and what was not alike."""
        told = dict.fromkeys(note for result in self.results.values() for note in result.notes)
        unlike = ", ".join(self.unlike)
        return (*told, *([f"The runs were not made alike, which may be why they differ: {unlike}."] if unlike else []))

    def pair(self, a: str, b: str) -> AgentPair:
        """Return what can be said of two agents.

        Raises:
            InvalidOption: the comparison has no such pair.
        """
        for found in self.pairs:
            if {found.a, found.b} == {a, b}:
                return found
        raise InvalidOption(f"This comparison has no pair of {a!r} and {b!r}; its agents: {', '.join(self.results)}.")

    def to_dict(self) -> dict[str, Any]:
        """Return what the comparison's ``results.json`` holds; ``docs/results.md`` describes it."""
        return {
            "schema": SCHEMA,
            "suite": self.suite,
            "notes": list(self.notes),
            "agents": {name: _agent_dict(result) for name, result in self.results.items()},
            "pairs": [pair.to_dict() for pair in self.pairs],
            "tasks": self._tasks(),
        }

    @property
    def in_short(self) -> str:
        """See ``Shown``."""
        return f"of {', '.join(map(repr, self.results))} on {self.suite}"

    def _draft(self, first: str, second: str) -> _Draft:
        one, two = self.results[first], self.results[second]
        seed, tasks = one.seed, pair_tasks(one.tallies, two.tallies)
        rate = rate_difference(tasks, seed=seed)
        if (rate.value or 0.0) < 0:
            first, second, tasks = second, first, pair_tasks(two.tallies, one.tallies)
            rate = rate_difference(tasks, seed=seed)
        every = None if self._k(first, second) is None else all_passed_difference(tasks)
        return _Draft(first, second, tasks, rate, every)

    def _k(self, a: str, b: str) -> int | None:
        k = self.results[a].trials_per_task
        return k if self.results[b].trials_per_task == k else None

    def _bounds(self, draft: _Draft) -> Interval | None:
        return rate_difference_bounds(self.results[draft.a].tallies, self.results[draft.b].tallies)

    def _shortfalls(self, a: str, b: str) -> tuple[tuple[str, str], ...]:
        seen = ((agent, self.results[agent].coverage) for agent in (a, b))
        return tuple((agent, coverage.shortfall) for agent, coverage in seen if not coverage.sufficient)

    def _tasks(self) -> list[dict[str, Any]]:
        names = dict.fromkeys(task for result in self.results.values() for task in result.tallies)
        return [
            {
                "id": task,
                "agents": {
                    name: {"passed": tally.passed, "valid": tally.valid, "planned": tally.planned}
                    for name, result in self.results.items()
                    if (tally := result.tallies.get(task)) is not None
                },
            }
            for task in names
        ]


def _check_same_tasks(one: RunResult, other: RunResult) -> None:
    """Refuse to pair tasks that only have their names in common.

    Raises:
        InvalidOption: the suites were built from different seeds, or a task allows other end states.
    """
    seeds = [result.manifest.get("settings", {}).get("suite_seed") for result in (one, other)]
    if None not in seeds and seeds[0] != seeds[1]:
        raise InvalidOption(
            f"Runs of different tasks can't be compared: {one.suite} was built from the suite seeds "
            f"{seeds[0]} and {seeds[1]}."
        )
    known = {task.id: task for task in one.tasks}
    for task in other.tasks:
        if task.id in known and known[task.id].end_states != task.end_states:
            raise InvalidOption(
                f"Runs of different tasks can't be compared: {task.id} does not allow the same end states in both."
            )


def _differ(values: Iterable[Any]) -> bool:
    return len({json.dumps(value, sort_keys=True, default=str) for value in values}) > 1


def p_text(p: float | None) -> str:
    """Return a p-value to print."""
    if p is None:
        return "unknown"
    return "below 0.001" if p < 0.001 else f"{p:.3f}"  # noqa: PLR2004 - the digits printed


def _significant(p: float | None) -> bool:
    return p is not None and p <= SIGNIFICANT


def _corrected(differences: Sequence[Difference | None]) -> list[float | None]:
    """Correct the p-values that there are, over as many pairs as have one."""
    places = [i for i, found in enumerate(differences) if found is not None and found.p is not None]
    values = holm([found.p.value for found in differences if found is not None and found.p is not None])
    corrected: list[float | None] = [None] * len(differences)
    for place, value in zip(places, values, strict=True):
        corrected[place] = value
    return corrected


def _difference_dict(found: Difference, corrected: float | None) -> dict[str, Any]:
    return found.to_dict() | {"p_corrected": corrected}


def _agent_dict(result: RunResult) -> dict[str, Any]:
    return {
        "agent": result.agent,
        "framework": result.framework,
        "trials_per_task": result.trials_per_task,
        "seed": result.seed,
        "stopped": result.stopped,
        "run_folder": result.folder.name if result.folder else None,
        "headline": result.headline,
        "coverage": result.coverage.to_dict(),
        "figures": result.figures.to_dict(),
    }


def p_told(p: float | None) -> str:
    """Return a p-value as a sentence tells it: ``p = 0.034``, ``p below 0.001``."""
    text = p_text(p)
    return f"p {text}" if text.startswith("below") else f"p = {text}"
