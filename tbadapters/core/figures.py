"""The figures of a set of tasks: each with its name, its interval, its bounds and the coverage behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor as rounded_down
from math import fsum
from typing import Any

from tbadapters.core import statistics as stats
from tbadapters.core.messages import Usage
from tbadapters.core.records import AttemptRecord
from tbadapters.core.statistics import Count, Interval, Tally

COVERAGE_FLOOR = 0.95
_ROUNDING = 1e-9  # of trials: 19 of 20 are 95 %, however the product is rounded


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many of the planned trials have a verdict.

    Attributes:
        planned: Planned trials.
        valid: Those of them that have a verdict.
        floor: The least share of them that allows a headline.
    """

    planned: int
    valid: int
    floor: float = COVERAGE_FLOOR

    @property
    def missing(self) -> int:
        """Planned trials without a verdict."""
        return self.planned - self.valid

    @property
    def share(self) -> float:
        """``valid`` over ``planned``."""
        return self.valid / self.planned if self.planned else 0.0

    @property
    def sufficient(self) -> bool:
        """Whether a headline may be printed: at least ``floor`` of the planned trials are valid."""
        return self.valid >= self.floor * self.planned - _ROUNDING and self.valid > 0

    @property
    def shortfall(self) -> str:
        """Why no headline is printed, in words."""
        share = rounded_down(1000 * self.share) / 10  # never rounded up to what is needed
        return f"only {share:.1f}% of the planned trials have a verdict, {100 * self.floor:g}% are needed"

    def to_dict(self) -> dict[str, Any]:
        """Return the coverage as JSON-like data."""
        return {"planned": self.planned, "valid": self.valid, "missing": self.missing}


@dataclass(frozen=True, slots=True)
class Rate:
    """A mean of per-task rates.

    Attributes:
        value: From 0 to 1, None where no task has enough valid trials.
        interval: 95 %, over tasks like these; None for fewer than two tasks.
        bounds: What it would be if all missing trials had failed, and if all had passed.
        tasks: The tasks that it is the mean of.
    """

    value: float | None
    interval: Interval | None
    bounds: Interval | None
    tasks: int

    def to_dict(self) -> dict[str, Any]:
        """Return the rate as JSON-like data."""
        return {
            "value": self.value,
            "interval": _pair(self.interval),
            "bounds": _pair(self.bounds),
            "tasks": self.tasks,
        }


@dataclass(frozen=True, slots=True)
class TaskCount:
    """A count of tasks with its interval and bounds (both of the rate).

    Attributes:
        count: Tasks of which it is certain.
        of: All tasks.
        undetermined: Tasks whose missing trials could still decide it.
        interval: 95 %; while trials are missing, from its low end if they had failed to its high end if they had passed.
        bounds: What the rate would be if all missing trials had failed, and if all had passed.
    """

    count: int
    of: int
    undetermined: int
    interval: Interval | None
    bounds: Interval | None

    @property
    def rate(self) -> float | None:
        """``count`` over all tasks; None without tasks."""
        return Count(self.count, self.of).rate

    def to_dict(self) -> dict[str, Any]:
        """Return the count as JSON-like data."""
        return {
            "count": self.count,
            "of": self.of,
            "rate": self.rate,
            "undetermined": self.undetermined,
            "interval": _pair(self.interval),
            "bounds": _pair(self.bounds),
        }


@dataclass(frozen=True, slots=True)
class Amount:
    """A figure without interval: a ratio, US dollars or tokens.

    Attributes:
        value: None where it is undefined (nothing passed) or unknown.
        unit: ``ratio``, ``USD`` or ``tokens``.
        known: False where what it is made of is unknown: a price, or the tokens.
    """

    value: float | None
    unit: str
    known: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return the amount as JSON-like data."""
        return {"value": self.value, "unit": self.unit}


Figure = Rate | TaskCount | Amount


@dataclass(frozen=True, slots=True)
class Figures:
    """Every figure of a set of tasks. ``pass_at_k`` and its two kin hold one rate a k, from 1 to the planned trials."""

    coverage: Coverage
    k: int
    pass_at_1: Rate
    observed_all: TaskCount
    solved_at_least_once: TaskCount
    retention: Amount
    cost_per_trial: Amount
    cost_per_success: Amount
    cost_per_reliable_task: Amount
    tokens_per_success: Amount
    pass_at_k: Mapping[int, Rate] = field(repr=False)
    pass_hat_k: Mapping[int, Rate] = field(repr=False)
    pass_hat_k_plug_in: Mapping[int, Rate] = field(repr=False)

    def named(self, k: int | None = None) -> dict[str, Figure]:
        """Return the figures by their names, those of k at ``k``, from 1 to the number of planned trials; None: at it."""
        at = self.k if k is None else k
        return {
            "pass@1": self.pass_at_1,
            "pass@k (unbiased)": self.pass_at_k[at],
            "pass^k (unbiased)": self.pass_hat_k[at],
            "pass^k (plug-in)": self.pass_hat_k_plug_in[at],
            "observed k/k": self.observed_all,
            "solved at least once": self.solved_at_least_once,
            "retention": self.retention,
            "cost per trial": self.cost_per_trial,
            "cost per success": self.cost_per_success,
            "cost per reliable task": self.cost_per_reliable_task,
            "tokens per success": self.tokens_per_success,
        }

    def to_dict(self, *, every_k: bool = False) -> dict[str, Any]:
        """Return the figures as JSON-like data, keyed by name; with ``every_k`` the rates of each k, too."""
        data: dict[str, Any] = {name: figure.to_dict() for name, figure in self.named().items()}
        series = {
            "pass@k (unbiased)": self.pass_at_k,
            "pass^k (unbiased)": self.pass_hat_k,
            "pass^k (plug-in)": self.pass_hat_k_plug_in,
        }
        for name, rates in series.items():
            data[name]["k"] = self.k
            if every_k:
                data[name]["by_k"] = {str(k): rate.to_dict() for k, rate in rates.items()}
        data["observed k/k"]["k"] = self.k
        return data


def figures(
    tallies: Sequence[Tally], records: Sequence[AttemptRecord], k: int, *, floor: float = COVERAGE_FLOOR
) -> Figures:
    """Return the figures of tasks.

    Args:
        tallies: One a task.
        records: The deciding attempts of these tasks' trials, for cost and tokens.
        k: Planned trials a task.
        floor: The least share of planned trials with a verdict that allows a headline.
    """
    valid = [r for r in records if r.passed is not None]
    passed = sum(1 for r in valid if r.passed)
    reliable = stats.observed_all(tallies)
    cost, tokens = known_cost(valid), total_usage(valid).total_tokens
    ks = range(1, k + 1)
    return Figures(
        coverage=Coverage(sum(t.planned for t in tallies), sum(t.valid for t in tallies), floor),
        k=k,
        pass_at_1=_rate(stats.task_rate, tallies),
        observed_all=_observed_all(tallies),
        solved_at_least_once=_solved(tallies),
        retention=Amount(stats.retention(tallies), "ratio"),
        cost_per_trial=Amount(_ratio(cost, len(valid)), "USD", cost is not None),
        cost_per_success=Amount(_ratio(cost, passed), "USD", cost is not None),
        cost_per_reliable_task=Amount(
            None if reliable.undetermined else _ratio(cost, reliable.count), "USD", cost is not None
        ),
        tokens_per_success=Amount(_ratio(tokens or None, passed), "tokens", tokens > 0),
        pass_at_k={i: rate_at(stats.task_pass_at_k, tallies, i) for i in ks},
        pass_hat_k={i: rate_at(stats.task_pass_hat_k, tallies, i) for i in ks},
        pass_hat_k_plug_in={i: rate_at(stats.task_pass_hat_k_plug_in, tallies, i) for i in ks},
    )


def tally_trials(planned: int, records: Sequence[AttemptRecord]) -> Tally:
    """Return the tally of one task's deciding attempts."""
    verdicts = [r.passed for r in records]
    return Tally(planned, len(verdicts) - verdicts.count(None), verdicts.count(True))


def rate_at(of_task: Callable[[Tally, int], float | None], tallies: Sequence[Tally], k: int) -> Rate:
    """Return the mean of a per-task figure at k."""
    return _rate(lambda tally: of_task(tally, k), tallies)


def total_usage(records: Sequence[AttemptRecord]) -> Usage:
    """Return the tokens of all attempts together."""
    return sum((r.usage for r in records), Usage())


def known_cost(records: Sequence[AttemptRecord]) -> float | None:
    """Return the US dollars of all attempts together; None where one of them is unknown, or without attempts."""
    costs = [r.cost for r in records]
    known = stats.known(costs)
    return fsum(known) if known and len(known) == len(costs) else None


def _rate(of_task: Callable[[Tally], float | None], tallies: Sequence[Tally]) -> Rate:
    def average(some: Sequence[Tally]) -> float | None:
        return stats.mean(stats.known(map(of_task, some)))

    values = stats.known(map(of_task, tallies))
    return Rate(stats.mean(values), stats.mean_interval(values), stats.bounds(average, tallies), len(values))


def _observed_all(tallies: Sequence[Tally]) -> TaskCount:
    found = stats.observed_all(tallies)
    interval = _whatever_is_missing(lambda some: _exact(stats.observed_all(some)), tallies)
    limits = stats.bounds(lambda some: stats.observed_all(some).rate, tallies)
    return TaskCount(found.count, found.of, found.undetermined, interval, limits)


def _solved(tallies: Sequence[Tally]) -> TaskCount:
    found = stats.solved_at_least_once(tallies)
    interval = _whatever_is_missing(lambda some: stats.mean_interval([float(t.passed > 0) for t in some]), tallies)
    limits = stats.bounds(lambda some: stats.solved_at_least_once(some).rate, tallies)
    return TaskCount(found.count, found.of, found.undetermined, interval, limits)


def _exact(found: Count) -> Interval | None:
    return stats.clopper_pearson(found.count, found.of)


def _whatever_is_missing(
    interval: Callable[[Sequence[Tally]], Interval | None], tallies: Sequence[Tally]
) -> Interval | None:
    """Return an interval that holds whatever the missing trials would have been.

    Those tasks that are determined are no fair sample: with a trial missing, a task that fails is determined and one
    that passes is not. An interval of these alone misses the truth, and the count that is printed beside it.
    """
    low, high = interval([t.worst() for t in tallies]), interval([t.best() for t in tallies])
    return None if low is None or high is None else Interval(low.low, high.high)


def _ratio(total: float | None, number: int) -> float | None:
    return total / number if total is not None and number else None


def _pair(interval: Interval | None) -> list[float] | None:
    return None if interval is None else list(interval)
