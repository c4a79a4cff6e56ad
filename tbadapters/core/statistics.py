"""Estimators and intervals over the trials of many tasks: pure functions of counts.

Each figure takes one ``Tally`` a task. A trial without verdict is in ``planned`` but not in ``valid``; it is never
counted as passed or failed. The task is the unit of all uncertainty: trials of one task are not independent evidence
about tasks like it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, fsum, sqrt
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
_UPPER = (1 + CONFIDENCE) / 2
_Z = NormalDist().inv_cdf(_UPPER)


class Interval(NamedTuple):
    """A closed interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Tally:
    """What the trials of one task came to.

    Attributes:
        planned: Planned trials, k.
        valid: Trials with a verdict, n.
        passed: Passed trials, c.
    """

    planned: int
    valid: int
    passed: int

    def __post_init__(self) -> None:
        if not 0 <= self.passed <= self.valid <= self.planned:
            raise ValueError(f"{self} is impossible: 0 <= passed <= valid <= planned must hold.")

    @property
    def missing(self) -> int:
        """Trials without a verdict."""
        return self.planned - self.valid

    @property
    def failed(self) -> int:
        """Trials with a verdict that failed."""
        return self.valid - self.passed

    def worst(self) -> Tally:
        """Return the tally as it would be if every missing trial had failed."""
        return Tally(self.planned, self.planned, self.passed)

    def best(self) -> Tally:
        """Return the tally as it would be if every missing trial had passed."""
        return Tally(self.planned, self.planned, self.passed + self.missing)


@dataclass(frozen=True, slots=True)
class Count:
    """A number of tasks out of all tasks.

    Attributes:
        count: Tasks of which it is certain.
        of: All tasks, T.
        undetermined: Tasks whose missing trials could still decide it.
    """

    count: int
    of: int
    undetermined: int = 0

    @property
    def rate(self) -> float | None:
        """``count`` over all tasks; None without tasks."""
        return self.count / self.of if self.of else None


# One task: what its trials say. None where they say nothing.


def task_rate(tally: Tally) -> float | None:
    """Return c/n, or None where no trial of the task has a verdict."""
    return tally.passed / tally.valid if tally.valid else None


def task_pass_at_k(tally: Tally, k: int) -> float | None:
    """Return 1 - C(n-c, k)/C(n, k): the chance that at least one of k trials passes; None where n < k.

    Source: Chen et al. 2021, arXiv 2107.03374, unbiased; on integers, so it is exact before the one division.
    """
    if tally.valid < _positive(k):
        return None
    return 1 - _ratio(tally.failed, tally.valid, k)


def task_pass_hat_k(tally: Tally, k: int) -> float | None:
    """Return C(c, k)/C(n, k): the chance that all of k trials pass; None where n < k.

    Source: Yao et al. 2024, arXiv 2406.12045, unbiased.
    """
    if tally.valid < _positive(k):
        return None
    return _ratio(tally.passed, tally.valid, k)


def task_pass_hat_k_plug_in(tally: Tally, k: int) -> float | None:
    """Return (c/n)^k, biased upwards for k > 1; None where no trial has a verdict.

    Source: what ``tb agg`` of ThinkingBox prints as pass^k.
    """
    rate = task_rate(tally)
    return None if rate is None else rate ** _positive(k)


@lru_cache(maxsize=65536)
def _ratio(of: int, n: int, k: int) -> float:
    return comb(of, k) / comb(n, k)


def _positive(k: int) -> int:
    if k < 1:
        raise ValueError(f"k={k}: at least 1 trial is needed.")
    return k


# All tasks.


def known(values: Iterable[float | None]) -> list[float]:
    """Return the values that there are."""
    return [value for value in values if value is not None]


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of nothing."""
    return fsum(values) / len(values) if values else None


def pass_at_1(tallies: Iterable[Tally]) -> float | None:
    """Return the mean of c/n over the tasks that have a valid trial."""
    return mean(known(map(task_rate, tallies)))


def pass_at_k(tallies: Iterable[Tally], k: int) -> float | None:
    """Return ``pass@k (unbiased)``: the mean of ``task_pass_at_k`` over tasks with n >= k."""
    return mean(known(task_pass_at_k(t, k) for t in tallies))


def pass_hat_k(tallies: Iterable[Tally], k: int) -> float | None:
    """Return ``pass^k (unbiased)``: the mean of ``task_pass_hat_k`` over tasks with n >= k."""
    return mean(known(task_pass_hat_k(t, k) for t in tallies))


def pass_hat_k_plug_in(tallies: Iterable[Tally], k: int) -> float | None:
    """Return ``pass^k (plug-in)``: the mean of ``task_pass_hat_k_plug_in``."""
    return mean(known(task_pass_hat_k_plug_in(t, k) for t in tallies))


def all_passed(tally: Tally) -> bool | None:
    """Return whether all planned trials of a task passed; None while its missing trials could decide it."""
    if tally.failed:
        return False
    return None if tally.missing or not tally.planned else True


def observed_all(tallies: Sequence[Tally]) -> Count:
    """Return ``observed k/k``: the tasks whose planned trials are all valid and all passed (ThinkingBox article)."""
    states = [all_passed(t) for t in tallies]
    return Count(states.count(True), len(states), states.count(None))


def solved_at_least_once(tallies: Sequence[Tally]) -> Count:
    """Return ``solved at least once``: the tasks with a passed trial (ThinkingBox article).

    A task without one is undetermined while trials of it are missing.
    """
    open_tasks = sum(1 for t in tallies if not t.passed and t.missing)
    return Count(sum(1 for t in tallies if t.passed), len(tallies), open_tasks)


def retention(tallies: Sequence[Tally]) -> float | None:
    """Return the ``observed k/k`` rate over pass@1 (ThinkingBox article, figure 2).

    None where pass@1 is 0 or unknown, and while a task is undetermined for ``observed k/k``: counted as if it had
    failed, it would make the figure too small by nobody knows how much.
    """
    single, repeated = pass_at_1(tallies), observed_all(tallies)
    return repeated.rate / single if single and repeated.rate is not None and not repeated.undetermined else None


def bounds(figure: Callable[[Sequence[Tally]], float | None], tallies: Sequence[Tally]) -> Interval | None:
    """Return what ``figure`` would be if all missing trials had failed, and if all had passed.

    Right only for figures that never fall when a failed trial becomes a passed one.
    """
    low, high = figure([t.worst() for t in tallies]), figure([t.best() for t in tallies])
    return None if low is None or high is None else Interval(low, high)


# Uncertainty.


def clustered_se(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean of per-task values: sqrt(sum (p_i - p)^2 / (T (T-1))); None for T < 2."""
    count = len(values)
    if count < 2:  # noqa: PLR2004 - a spread needs two
        return None
    if min(values) == max(values):
        return 0.0  # exactly, whatever the rounding of the mean
    centre = fsum(values) / count
    return sqrt(fsum((v - centre) ** 2 for v in values) / (count * (count - 1)))


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of a mean of per-task rates: Wilson's with an effective sample size.

    n_eff = p(1-p)/SE^2 * (z/t)^2, with the standard error clustered by task and t the quantile of Student's t with
    T-1 degrees of freedom; n_eff = T where the standard error is 0. It speaks of tasks like these. None for T < 2:
    one task says nothing of others.
    """
    error, count = clustered_se(values), len(values)
    if error is None:
        return None
    p = min(1.0, max(0.0, fsum(values) / count))
    if error == 0:
        return wilson(p, count)
    return wilson(p, p * (1 - p) / error**2 * (_Z / student_quantile(count - 1)) ** 2)


def wilson(p: float, n: float) -> Interval:
    """Return Wilson's 95 % score interval of a proportion ``p`` of ``n`` (which may be a fraction).

    Source: Wilson 1927, JASA 22, 209-212.
    """
    scale = 1 + _Z**2 / n
    centre = (p + _Z**2 / (2 * n)) / scale
    half = _Z / scale * sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
    # Clamped to hold p itself, which rounding can push out by 1e-17 at p = 0 and p = 1.
    return Interval(max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))


def clopper_pearson(count: int, of: int) -> Interval | None:
    """Return the exact 95 % interval of a proportion ``count`` of ``of``; None of nothing.

    Source: Clopper and Pearson 1934, Biometrika 26, 404-413.
    """
    from scipy.special import betaincinv  # type: ignore[import-untyped]  # scipy ships no types

    if not of:
        return None
    low = float(betaincinv(count, of - count + 1, 1 - _UPPER)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, _UPPER)) if count < of else 1.0
    return Interval(low, high)


@lru_cache
def student_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, _UPPER))
