"""Every figure of a run equals what counting by hand gives: from the plain outcomes, without any of our formulas."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import comb, isclose, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm, t
from synthetic_runs import record, result_of

from tbadapters.core.messages import Usage

Z = norm.ppf(0.975)


@st.composite
def tables(draw, *, most_missing=8):
    """Outcomes of at most five tasks of at most five trials; None is a trial without a verdict."""
    k = draw(st.integers(1, 5))
    rows = draw(st.lists(st.lists(st.sampled_from([True, False]), min_size=k, max_size=k), min_size=1, max_size=5))
    places = [(i, j) for i in range(len(rows)) for j in range(k)]
    for i, j in draw(st.lists(st.sampled_from(places), max_size=most_missing, unique=True)):
        rows[i][j] = None
    return rows


def share_of_subsets(row, k, passes):
    """Try every choice of k of a task's valid trials."""
    valid = [outcome for outcome in row if outcome is not None]
    chosen = [passes(subset) for subset in combinations(valid, k)]
    return Fraction(sum(chosen), len(chosen)) if chosen else None


def plug_in(row, k):
    valid = [outcome for outcome in row if outcome is not None]
    return Fraction(sum(valid), len(valid)) ** k if valid else None


RATES = {
    "pass@1": lambda row, k: share_of_subsets(row, 1, any),
    "pass@k (unbiased)": lambda row, k: share_of_subsets(row, k, any),
    "pass^k (unbiased)": lambda row, k: share_of_subsets(row, k, all),
    "pass^k (plug-in)": plug_in,
}


def counted(of_row, rows, k):
    """Return the mean over the tasks that have a value, and the values."""
    values = [value for value in (of_row(row, k) for row in rows) if value is not None]
    return (sum(values) / len(values) if values else None), values


def completions(rows):
    """Return every way in which the missing trials could have ended."""
    places = [(i, j) for i, row in enumerate(rows) for j, outcome in enumerate(row) if outcome is None]
    for ends in product([True, False], repeat=len(places)):
        full = [list(row) for row in rows]
        for (i, j), end in zip(places, ends, strict=True):
            full[i][j] = end
        yield full


def same(found, expected):
    return found is None if expected is None else isclose(found, expected, abs_tol=1e-12)


@settings(deadline=None, max_examples=30)
@given(tables(most_missing=6))
def test_rates_and_their_bounds(rows):
    """pass@1, pass@k and pass^k are shares of subsets; their bounds are the extremes over all ways to fill the gaps."""
    k = len(rows[0])
    figures = result_of(rows).figures
    for at in range(1, k + 1):
        for name, of_row in RATES.items():
            found = figures.named(at)[name]
            value, values = counted(of_row, rows, at)
            assert same(found.value, value)
            assert found.tasks == len(values)
            ends = [counted(of_row, full, at)[0] for full in completions(rows)]
            assert same(found.bounds.low, min(ends))
            assert same(found.bounds.high, max(ends))


@settings(deadline=None, max_examples=60)
@given(tables())
def test_counts_of_tasks_and_their_bounds(rows):
    """What is certain of a task is what is so however its missing trials had ended; what could be either is open."""
    figures = result_of(rows).figures
    for name, holds in (("observed k/k", all), ("solved at least once", any)):
        found = figures.named()[name]
        certain = [{bool(holds(full[i])) for full in completions(rows)} for i in range(len(rows))]
        assert found.count == sum(states == {True} for states in certain)
        assert found.undetermined == sum(len(states) == 2 for states in certain)
        assert found.of == len(rows)
        ends = [sum(map(bool, map(holds, full))) / len(rows) for full in completions(rows)]
        assert same(found.bounds.low, min(ends))
        assert same(found.bounds.high, max(ends))


@settings(deadline=None, max_examples=60)
@given(tables(), st.data())
def test_money_tokens_retention_and_coverage(rows, data):
    """Costs and tokens of all valid trials are added up and shared out; what is missing is in none of them."""
    found = result_of(rows)
    cents = [data.draw(st.integers(0, 500)) for _ in found.records]
    records = tuple(
        replace(record(r.task, r.index, r.passed, usage=Usage(cent, 0, 3)), cost=cent / 100)
        for r, cent in zip(found.records, cents, strict=True)
    )
    found = replace(found, records=records)
    valid = [(r, cent) for r, cent in zip(found.records, cents, strict=True) if r.passed is not None]
    money = Fraction(sum(cent for _, cent in valid), 100)
    tokens = sum(cent + 3 + 10 + 5 for _, cent in valid)  # and the second request of each trial
    passes = sum(outcome is True for row in rows for outcome in row)
    whole = sum(all(row) for row in rows)
    named = found.figures.named()
    assert same(named["cost per trial"].value, money / len(valid) if valid else None)
    assert same(named["cost per success"].value, money / passes if passes else None)
    assert same(named["tokens per success"].value, Fraction(tokens, passes) if passes else None)
    single = counted(RATES["pass@1"], rows, 1)[0]
    undetermined = any(None in row and False not in row for row in rows)
    assert same(named["cost per reliable task"].value, money / whole if whole and not undetermined else None)
    kept = Fraction(whole, len(rows)) / single if single and not undetermined else None
    assert same(named["retention"].value, kept)
    planned = sum(map(len, rows))
    assert found.coverage.to_dict() == {"planned": planned, "valid": len(valid), "missing": planned - len(valid)}


@settings(deadline=None, max_examples=60)
@given(tables())
def test_intervals(rows):
    """Wilson's ends are where the score test just rejects; Clopper and Pearson's where a tail just has 2.5 %."""
    figures = result_of(rows).figures
    values = [float(value) for value in counted(RATES["pass@1"], rows, 1)[1]]
    found = figures.pass_at_1.interval
    if len(values) < 2:
        assert found is None
    else:
        p, size = sum(values) / len(values), len(values)
        variance = sum((value - p) ** 2 for value in values) / (size * (size - 1))
        n = size if variance < 1e-30 else p * (1 - p) / variance * (Z / t.ppf(0.975, size - 1)) ** 2

        def score(truth):
            return (p - truth) ** 2 * n - Z**2 * truth * (1 - truth)

        # Both ends exist on either side of p, which itself is never rejected.
        low = 0.0 if p < 1e-12 else brentq(score, 1e-15, min(p, 1 - 1e-12))
        high = 1.0 if p > 1 - 1e-12 else brentq(score, max(p, 1e-12), 1 - 1e-15)
        assert found == pytest.approx((low, high), abs=1e-6)
    counts = [sum(map(all, full)) for full in completions(rows)]
    least, most, of, (low, high) = min(counts), max(counts), len(rows), figures.observed_all.interval
    assert low == 0.0 if not least else isclose(tail(least, of, low, upper=True), 0.025, rel_tol=1e-6)
    assert high == 1.0 if most == of else isclose(tail(most, of, high), 0.025, rel_tol=1e-6)


def tail(count, of, p, *, upper=False):
    """Add up the binomial probabilities of at least (or at most) so many."""
    span = range(count, of + 1) if upper else range(count + 1)
    return sum(comb(of, i) * p**i * (1 - p) ** (of - i) for i in span)


def test_the_unit_of_the_standard_error_is_the_task():
    """Twenty trials that all repeat their task's first outcome tell no more of other tasks than one trial each."""
    once, repeated = result_of([[True], [False], [True]]), result_of([[True] * 20, [False] * 20, [True] * 20])
    assert once.figures.pass_at_1.interval == repeated.figures.pass_at_1.interval
    pooled = sqrt(2 / 3 * 1 / 3 / 60) * Z
    low, high = repeated.figures.pass_at_1.interval
    assert high - low > 4 * 2 * pooled / 2
