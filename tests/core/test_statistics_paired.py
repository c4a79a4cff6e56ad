"""The paired tests equal brute force, and differ from it nowhere that it can be computed."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from tbadapters.core.paired import (
    TaskPair,
    all_passed_difference,
    exact_p,
    flipped_p,
    holm,
    pair_tasks,
    rate_difference,
    rate_difference_bounds,
)
from tbadapters.core.statistics import Tally


def brute_force(steps):
    """Try every sign pattern."""
    observed = abs(sum(steps))
    patterns = product((1, -1), repeat=len(steps))
    sums = [abs(sum(sign * step for sign, step in zip(signs, steps, strict=True))) for signs in patterns]
    return sum(total >= observed for total in sums) / len(sums)


def full(task, a, b, n=20):
    return TaskPair(task, Tally(n, n, a), Tally(n, n, b))


@given(st.lists(st.integers(-20, 20), max_size=12))
def test_exact_test_equals_brute_force(steps):
    """The p-value is the share of all sign patterns at least as far from 0, to the last digit."""
    assert exact_p(steps).value == brute_force(steps)


@given(st.lists(st.integers(-20, 20), max_size=30), st.randoms())
def test_exact_test_ignores_order_and_sides(steps, chance):
    """Neither the order of tasks nor the order of the agents moves the p-value."""
    shuffled = [-step for step in steps]
    chance.shuffle(shuffled)
    assert exact_p(shuffled) == exact_p(steps)


def test_many_tasks_that_all_differ():
    """With 507 tasks of which every one favours A, the p-value is exactly 2 of 2^507 patterns."""
    assert exact_p([20] * 507).value == 2 / 2**507


def test_flips_come_near_the_exact_value():
    """100,000 seeded flips give the exact p-value to within four of their standard errors."""
    steps = [3, -1, 4, 1, -5, 9, 2, 6, -5, 3, 5]
    exact = exact_p(steps).value
    found = flipped_p([step / 20 for step in steps], seed=3)
    assert found.method == "100000 flips"
    assert abs(found.value - exact) < 4 * (exact * (1 - exact) / 100_000) ** 0.5
    assert found == flipped_p([-step / 20 for step in reversed(steps)], seed=3)


def test_flips_are_never_zero():
    """A sampled p-value is at least 1 of B + 1."""
    assert flipped_p([1.0] * 200, seed=0, flips=999).value == 1 / 1000
    assert flipped_p([0.0, 0.0], seed=0, flips=999).value == 1.0


def test_equal_numbers_of_trials_are_tested_exactly():
    """The exact test is taken where all tasks have the same number of valid trials, flips otherwise."""
    pairs = [full("a", 20, 10), full("b", 15, 15), full("c", 20, 0)]
    assert rate_difference(pairs).p.method == "exact"
    assert rate_difference([*pairs, full("d", 9, 1, n=19)]).p.method == "100000 flips"


def test_difference_and_interval_by_hand():
    """The interval is that of paired differences with Student's t."""
    found = rate_difference([full("a", 20, 10), full("b", 16, 10), full("c", 10, 10)])
    assert found.value == pytest.approx(0.8 / 3)
    half = 4.302653 * (0.5**2 + 0.3**2 + 0 - 3 * (0.8 / 3) ** 2) ** 0.5 / 6**0.5
    assert found.interval == pytest.approx((0.8 / 3 - half, 0.8 / 3 + half), abs=1e-5)
    assert found.tasks == 3


@pytest.mark.parametrize("tasks", [2, 5, 6, 104])
def test_tasks_that_all_differ_by_the_same(tasks):
    """Without a spread, the interval allows for as many other tasks as none of T leaves possible, and agrees with p."""
    others = brentq(lambda share: (1 - share) ** tasks - 0.025, 0, 1)
    same = rate_difference([full(str(i), 7, 7) for i in range(tasks)])
    assert same.interval == pytest.approx((-others, others))
    won = rate_difference([full(str(i), 20, 0) for i in range(tasks)])
    assert won.interval == pytest.approx((1 - 2 * others, 1.0))
    assert (won.interval.low > 0) is (won.p.value <= 0.05) is (tasks >= 6)


def test_no_common_task():
    """Without a common task there is no difference, no interval and no p-value."""
    found = rate_difference([])
    assert (found.value, found.interval, found.p, found.tasks) == (None, None, None, 0)


def test_only_common_tasks_are_paired():
    """Tasks are paired by id where both agents have a valid trial, in the first one's order."""
    a = {"x": Tally(2, 2, 1), "y": Tally(2, 0, 0), "z": Tally(2, 2, 2)}
    b = {"z": Tally(2, 1, 0), "y": Tally(2, 2, 2), "x": Tally(2, 2, 0)}
    assert [pair.task for pair in pair_tasks(a, b)] == ["x", "z"]


def masked(chance, row):
    return [None if chance.random() < 0.3 else outcome for outcome in row]


def tally(row):
    return Tally(len(row), sum(outcome is not None for outcome in row), row.count(True))


@given(
    st.lists(st.tuples(*[st.lists(st.booleans(), min_size=3, max_size=3)] * 2), min_size=1, max_size=6), st.randoms()
)
def test_bounds_hold_the_difference_of_the_full_data(rows, chance):
    """Whichever trials are missing, the difference of pass@1 on the full data lies within its bounds."""
    a, b = ({str(i): row[agent] for i, row in enumerate(rows)} for agent in (0, 1))
    truth = rate_difference(pair_tasks(*({task: tally(row) for task, row in x.items()} for x in (a, b)))).value
    seen = [{task: tally(masked(chance, row)) for task, row in x.items()} for x in (a, b)]
    low, high = rate_difference_bounds(*seen)
    assert low - 1e-12 <= truth <= high + 1e-12
    assert rate_difference_bounds({"x": Tally(1, 1, 1)}, {"y": Tally(1, 1, 1)}) is None


def test_all_passed_difference_leaves_out_tasks_that_miss_a_trial():
    """Tasks that miss a trial of one agent say nothing of k/k, not even where a failed trial determines it."""
    pairs = [
        TaskPair("a", Tally(2, 2, 2), Tally(2, 2, 1)),
        TaskPair("b", Tally(2, 1, 1), Tally(2, 2, 1)),
        TaskPair("c", Tally(2, 2, 2), Tally(2, 1, 0)),
    ]
    found = all_passed_difference(pairs)
    assert (found.value, found.tasks, found.p.value) == (1.0, 1, 1.0)


def test_holm_by_hand():
    """Holm multiplies the smallest by m, the next by m - 1, and never lets a larger p-value fall below a smaller."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
