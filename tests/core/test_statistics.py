"""Every figure equals its definition, worked by hand, by brute force or by the published study."""

from itertools import combinations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbadapters.core import statistics as stats
from tbadapters.core.statistics import Count, Interval, Tally

WORKED = [
    (20, 20, 20, 1.000000, 1.000000, 1.000000),
    (20, 19, 20, 1.000000, 0.000000, 0.358486),
    (20, 10, 1, 0.500000, 0.500000, 0.500000),
    (20, 10, 5, 0.983746, 0.016254, 0.031250),
    (20, 1, 20, 1.000000, 0.000000, 0.000000),
    (20, 0, 20, 0.000000, 0.000000, 0.000000),
    (20, 15, 5, 0.999936, 0.193692, 0.237305),
    (20, 19, 10, 1.000000, 0.500000, 0.598737),
    (5, 3, 2, 0.900000, 0.300000, 0.360000),
    (4, 2, 4, 1.000000, 0.000000, 0.062500),
]


@st.composite
def tallies(draw, most=8):
    planned = draw(st.integers(1, most))
    valid = draw(st.integers(0, planned))
    return Tally(planned, valid, draw(st.integers(0, valid)))


@st.composite
def outcome_tables(draw):
    """Rows of outcomes, one row a task, all of the same length."""
    k = draw(st.integers(1, 6))
    row = st.lists(st.booleans(), min_size=k, max_size=k)
    return draw(st.lists(row, min_size=1, max_size=8))


def tally(outcomes):
    return Tally(len(outcomes), sum(o is not None for o in outcomes), sum(o is True for o in outcomes))


@pytest.mark.parametrize("worked", WORKED)
def test_worked_values(worked):
    """The three figures of k equal the worked values to six digits."""
    n, c, k, at, hat, plug_in = worked
    one = [Tally(n, n, c)]
    assert round(stats.pass_at_k(one, k), 6) == at
    assert round(stats.pass_hat_k(one, k), 6) == hat
    assert round(stats.pass_hat_k_plug_in(one, k), 6) == plug_in


@given(outcome_tables(), st.data())
def test_unbiased_figures_are_the_share_of_subsets(table, data):
    """pass@k is the share of k-subsets of a task's trials with a pass, pass^k the share without a fail."""
    k = data.draw(st.integers(1, len(table[0])))
    some = [[any(subset) for subset in combinations(row, k)] for row in table]
    every = [[all(subset) for subset in combinations(row, k)] for row in table]
    expected_some = sum(sum(s) / len(s) for s in some) / len(table)
    expected_every = sum(sum(s) / len(s) for s in every) / len(table)
    counts = [tally(row) for row in table]
    assert isclose(stats.pass_at_k(counts, k), expected_some, abs_tol=1e-12)
    assert isclose(stats.pass_hat_k(counts, k), expected_every, abs_tol=1e-12)


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_figures_are_monotone_in_k(counts):
    """With more trials, at least one passes no less often, and all pass no more often."""
    n, c = counts
    one = Tally(n, n, c)
    at = [stats.task_pass_at_k(one, k) for k in range(1, n + 1)]
    hat = [stats.task_pass_hat_k(one, k) for k in range(1, n + 1)]
    assert at == sorted(at)
    assert hat == sorted(hat, reverse=True)
    assert at[0] == pytest.approx(hat[0]) == pytest.approx(c / n)


BOUNDED = {
    "pass@1": stats.pass_at_1,
    "pass@2": lambda counts: stats.pass_at_k(counts, 2),
    "pass^2": lambda counts: stats.pass_hat_k(counts, 2),
    "pass^2 plug-in": lambda counts: stats.pass_hat_k_plug_in(counts, 2),
    "observed": lambda counts: stats.observed_all(counts).rate,
    "solved": lambda counts: stats.solved_at_least_once(counts).rate,
}


@pytest.mark.parametrize("name", BOUNDED)
@given(table=outcome_tables(), data=st.data())
def test_bounds_hold_the_figure_of_the_full_data(name, table, data):
    """When any trials are masked, each figure's bounds still hold what it is with all of them."""
    figure = BOUNDED[name]
    masked = [[None if data.draw(st.booleans()) else outcome for outcome in row] for row in table]
    truth = figure([tally(row) for row in table])
    found = stats.bounds(figure, [tally(row) for row in masked])
    if truth is None:
        assert found is None
    else:
        assert found.low - 1e-12 <= truth <= found.high + 1e-12


@given(st.lists(tallies(), min_size=1, max_size=8), st.randoms())
def test_order_of_tasks_does_not_matter(counts, chance):
    """No figure depends on the order of the tasks."""
    shuffled = counts[:]
    chance.shuffle(shuffled)
    assert stats.pass_at_1(shuffled) == stats.pass_at_1(counts)
    assert stats.pass_at_k(shuffled, 2) == stats.pass_at_k(counts, 2)
    assert stats.observed_all(shuffled) == stats.observed_all(counts)
    rates = stats.known(map(stats.task_rate, counts))
    assert stats.clustered_se(sorted(rates)) == stats.clustered_se(rates)


def test_observed_all_with_missing_trials():
    """A task that lacks valid trials is undetermined, unless one of its valid trials failed."""
    counts = [Tally(3, 3, 3), Tally(3, 3, 2), Tally(3, 2, 2), Tally(3, 2, 1), Tally(3, 0, 0)]
    assert stats.observed_all(counts) == Count(1, 5, 2)


def test_solved_with_missing_trials():
    """A task without a passed trial is undetermined only while trials of it are missing."""
    counts = [Tally(3, 3, 0), Tally(3, 2, 0), Tally(3, 1, 1)]
    assert stats.solved_at_least_once(counts) == Count(1, 3, 1)


def test_missing_trials_are_no_failures():
    """A trial without a verdict moves neither pass@1 nor the figures of k, and a task without any is left out."""
    assert stats.pass_at_1([Tally(4, 2, 1), Tally(4, 0, 0)]) == 0.5
    assert stats.pass_at_k([Tally(4, 1, 1)], 2) is None
    assert stats.pass_at_1([Tally(4, 0, 0)]) is None


@pytest.mark.parametrize(("count", "percent"), [(476, 93.89), (68, 13.41), (241, 47.53), (507 - 106, 79.09)])
def test_published_counts(count, percent):
    """The published percentages of 507 tasks follow from their counts."""
    counts = [Tally(20, 20, 20)] * count + [Tally(20, 20, 0)] * (507 - count)
    assert round(100 * stats.observed_all(counts).rate, 2) == percent
    assert round(100 * stats.solved_at_least_once(counts).rate, 2) == percent


def test_retention():
    """Retention is the rate of observed k/k over pass@1, undefined when nothing passed."""
    assert stats.retention([Tally(2, 2, 2), Tally(2, 2, 1)]) == pytest.approx(0.5 / 0.75)
    assert stats.retention([Tally(2, 2, 0)]) is None
    assert stats.retention([Tally(2, 1, 1), Tally(2, 2, 2)]) is None  # the missing trial decides
    assert stats.retention([Tally(2, 1, 0), Tally(2, 2, 2)]) == 1.0  # a failed one has decided


def test_clustered_standard_error():
    """The standard error is that of a mean of tasks; equal tasks have exactly none."""
    assert stats.clustered_se([0.0, 1.0]) == pytest.approx(0.5)
    assert stats.clustered_se([0.2, 0.4, 0.9]) == pytest.approx(0.2081666, abs=1e-6)
    assert stats.clustered_se([0.1] * 7) == 0.0
    assert stats.clustered_se([0.5]) is None


def test_wilson():
    """Wilson's interval equals its textbook values."""
    assert stats.wilson(0.5, 100) == pytest.approx((0.403832, 0.596168), abs=1e-6)
    assert stats.wilson(1.0, 10) == pytest.approx((0.722467, 1.0), abs=1e-6)


def test_mean_interval_by_hand():
    """The interval is Wilson's with n_eff = p(1-p)/SE^2 * (z/t)^2, or with T tasks where all are equal."""
    values = [0.2, 0.4, 0.9]
    n_eff = 0.25 / 0.2081666**2 * (1.959964 / 4.302653) ** 2
    assert stats.mean_interval(values) == pytest.approx(stats.wilson(0.5, n_eff), abs=1e-5)
    assert stats.mean_interval([1.0] * 30) == stats.wilson(1.0, 30)
    assert stats.mean_interval([1.0]) is None


def test_clopper_pearson():
    """The exact interval equals its textbook values and the closed forms at both ends."""
    assert stats.clopper_pearson(5, 10) == pytest.approx((0.187086, 0.812914), abs=1e-6)
    assert stats.clopper_pearson(0, 20) == pytest.approx((0.0, 1 - 0.025 ** (1 / 20)))
    assert stats.clopper_pearson(20, 20) == pytest.approx((0.025 ** (1 / 20), 1.0))
    assert stats.clopper_pearson(0, 0) is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_interval_holds_its_value(values):
    """An interval lies between 0 and 1 and holds the value that it is of."""
    low, high = stats.mean_interval(values)
    assert 0 <= low <= sum(values) / len(values) + 1e-12
    assert sum(values) / len(values) - 1e-12 <= high <= 1


@pytest.mark.parametrize("counts", [(3, 4, 1), (3, 2, 3), (3, 2, -1)])
def test_impossible_tallies_are_refused(counts):
    """A tally with more passed than valid, or more valid than planned trials can't be made."""
    with pytest.raises(ValueError, match="impossible"):
        Tally(*counts)


def test_k_below_one_is_refused():
    """No figure of 0 trials is given."""
    with pytest.raises(ValueError, match="at least 1"):
        stats.pass_at_k([Tally(3, 3, 1)], 0)


def test_interval_reads_as_a_pair():
    """An interval unpacks into low and high."""
    low, high = Interval(0.1, 0.2)
    assert (low, high) == (0.1, 0.2)
