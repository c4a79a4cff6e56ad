"""Two agents on the same tasks: differences, intervals of them, and p-values by sign-flip permutation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from tbadapters.core.statistics import (
    Interval,
    Tally,
    clopper_pearson,
    clustered_se,
    known,
    mean,
    student_quantile,
    task_rate,
)

FLIPS = 100_000
_CHUNK = 5_000


@dataclass(frozen=True, slots=True)
class PValue:
    """A two-sided p-value and how it was found (``exact``, or the number of seeded flips)."""

    value: float
    method: str


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more often A does something than B, paired by task.

    Attributes:
        value: Mean over tasks of A's value less B's, from -1 to 1; None without a common task.
        interval: The 95 % interval of paired differences (Student's t, T-1 degrees of freedom; where all tasks differ by
            the same, see ``_of_alike``); None for T < 2.
        p: By sign-flip permutation over tasks; None without a common task.
        tasks: The tasks that were paired.
    """

    value: float | None
    interval: Interval | None
    p: PValue | None
    tasks: int

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON-like data."""
        return {
            "difference": self.value,
            "interval": None if self.interval is None else list(self.interval),
            "tasks": self.tasks,
            "p": None if self.p is None else self.p.value,
            "p_method": None if self.p is None else self.p.method,
        }


@dataclass(frozen=True, slots=True)
class TaskPair:
    """One task that both agents have valid trials of."""

    task: str
    a: Tally
    b: Tally

    @property
    def difference(self) -> float:
        """A's rate less B's."""
        return (task_rate(self.a) or 0.0) - (task_rate(self.b) or 0.0)


def pair_tasks(a: Mapping[str, Tally], b: Mapping[str, Tally]) -> tuple[TaskPair, ...]:
    """Return the tasks of which both agents have at least one valid trial, in A's order."""
    return tuple(TaskPair(task, a[task], b[task]) for task in a if task in b and a[task].valid and b[task].valid)


def rate_difference(pairs: Sequence[TaskPair], *, seed: int = 0) -> Difference:
    """Return the difference of pass@1.

    The p-value is exact where all tasks of both agents have the same number of valid trials, else by seeded flips.
    """
    if len({tally.valid for pair in pairs for tally in (pair.a, pair.b)}) == 1:
        p = exact_p([pair.a.passed - pair.b.passed for pair in pairs])
    else:
        p = flipped_p([pair.difference for pair in pairs], seed=seed)
    return _difference([pair.difference for pair in pairs], p)


def rate_difference_bounds(a: Mapping[str, Tally], b: Mapping[str, Tally]) -> Interval | None:
    """Return what the difference of pass@1 would be if all missing trials spoke for B, and if they spoke for A.

    Over all tasks that were planned for both, those without a valid trial included; None without a common task.
    """
    common = [(a[task], b[task]) for task in a if task in b]
    low = mean(known((task_rate(one.worst()) or 0.0) - (task_rate(two.best()) or 0.0) for one, two in common))
    high = mean(known((task_rate(one.best()) or 0.0) - (task_rate(two.worst()) or 0.0) for one, two in common))
    return None if low is None or high is None else Interval(low, high)


def all_passed_difference(pairs: Sequence[TaskPair]) -> Difference:
    """Return the difference of ``observed k/k``, on the tasks of which neither misses a trial; always exact.

    A task that misses a trial and failed is determined, one that misses it and passed is not: to pair whatever is
    determined would hold against an agent that some of its trials are missing.
    """
    complete = [pair for pair in pairs if not pair.a.missing and not pair.b.missing]
    steps = [(not pair.a.failed) - (not pair.b.failed) for pair in complete]
    return _difference([float(step) for step in steps], exact_p(steps))


def _difference(values: Sequence[float], p: PValue) -> Difference:
    if not values:
        return Difference(None, None, None, 0)
    value, error = fsum(values) / len(values), clustered_se(values)
    if error is None:
        return Difference(value, None, p, len(values))
    half = error * student_quantile(len(values) - 1)
    interval = Interval(max(-1.0, value - half), min(1.0, value + half)) if error else _of_alike(value, len(values))
    return Difference(value, interval, p, len(values))


def _of_alike(value: float, tasks: int) -> Interval:
    """Return the 95 % interval of a mean difference where all tasks differ by the same amount.

    Their spread is 0, but other tasks may differ otherwise: a share of up to 1 - 0.025^(1/T) of them (Clopper and
    Pearson, none of T), by anything from -1 to 1. From 6 tasks up it leaves out 0 where all are won or all are lost,
    as the exact test does.
    """
    seen = clopper_pearson(0, tasks)
    others = seen.high if seen else 1.0
    return Interval((1 - others) * value - others, (1 - others) * value + others)


def exact_p(steps: Sequence[int]) -> PValue:
    """Return the share of all sign patterns whose sum is at least as far from 0 as the observed sum.

    Integer dynamic programming over the sums: the numbers of patterns are the coefficients of prod (1 + x^|d|),
    held in one integer with a slot of fixed width each, so that a task is one shift and one addition.
    """
    sizes = sorted(abs(step) for step in steps if step)
    observed, total = abs(sum(steps)), sum(sizes)
    if not observed:
        return PValue(1.0, "exact")
    width = len(sizes) // 8 + 1  # bytes: a coefficient is at most 2^m
    patterns = 1
    for size in sizes:
        patterns += patterns << (8 * width * size)
    # A subset of sum s, flipped to plus, gives 2s - total; by symmetry the lower tail is counted twice.
    slots = (total - observed) // 2 + 1
    low = (patterns & ((1 << (8 * width * slots)) - 1)).to_bytes(width * slots, "little")
    tail = sum(int.from_bytes(low[i : i + width], "little") for i in range(0, len(low), width))
    return PValue(2 * tail / (1 << len(sizes)), "exact")


def flipped_p(differences: Sequence[float], *, seed: int, flips: int = FLIPS) -> PValue:
    """Return (1 + b)/(1 + B): b of B random sign patterns give a sum at least as far from 0 as the observed one.

    Source of the added ones: Phipson and Smyth 2010, arXiv 1603.05766. Sorted first, so the order of tasks and the
    order of the two agents do not matter.
    """
    import numpy as np

    sizes = np.sort(np.abs(np.asarray(known(differences), dtype=np.float64)))
    method = f"{flips} flips"
    observed = abs(fsum(differences))
    if not sizes.any():
        return PValue(1.0, method)
    reached = observed - 1e-9 * float(sizes.sum())  # equal sums in another order of adding still count as equal
    rng, beyond = np.random.default_rng(seed), 0
    for start in range(0, flips, _CHUNK):
        signs = rng.integers(0, 2, size=(min(_CHUNK, flips - start), sizes.size), dtype=np.int8)
        sums = 2 * (signs @ sizes) - sizes.sum()
        beyond += int((np.abs(sums) >= reached).sum())
    return PValue((1 + beyond) / (1 + flips), method)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number, in the same order.

    Source: Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
    """
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected
