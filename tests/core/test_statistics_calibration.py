"""What intervals, p-values and bounds promise holds over simulated runs whose truth is known.

Outcomes are clustered by task as in the published runs: each task has its own chance to pass, drawn from a beta
distribution whose mean and share of tasks at 20/20 are those of a published model. Tasks are redrawn in every run.
The sizes of docs/statistics.md are run with TBADAPTERS_FULL=1, which prints their figures; in between, smaller ones.
"""

import os
import random

import numpy as np
import pytest
from synthetic_runs import result_of

from tbadapters.core import statistics as stats
from tbadapters.core.figures import figures
from tbadapters.core.paired import TaskPair, all_passed_difference, exact_p, flipped_p, pair_tasks, rate_difference
from tbadapters.core.statistics import Tally

FULL = os.environ.get("TBADAPTERS_FULL") == "1"
TRIALS = 20
# Mean 0.665 with 47.5 % of tasks at 20/20 (Claude Opus 5), and 0.574 with 13.4 % (Kimi-K3).
PROFILES = {"consistent": (0.2084, 0.1050), "erratic": (0.7584, 0.5636)}


def tell(figure):
    print(figure)  # noqa: T201  (pytest -s shows what docs/statistics.md tells)


def chances(rng, profile, tasks):
    """Draw the chance to pass of each task."""
    return rng.beta(*PROFILES[profile], size=tasks)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tasks", [104, 507])
@pytest.mark.parametrize("profile", PROFILES)
def test_an_agent_against_itself(profile, tasks):
    """Of many comparisons of an agent with itself, between 3.5 and 6 % are rejected at 5 %."""
    runs = 5000 if FULL or tasks == 104 else 200
    rng, rejected = np.random.default_rng(2), 0
    for _ in range(runs):
        p = chances(rng, profile, tasks)
        steps = rng.binomial(TRIALS, p) - rng.binomial(TRIALS, p)
        rejected += exact_p(steps.tolist()).value <= 0.05
    tell(f"A/A, {profile}, {tasks} x {TRIALS}: {rejected} of {runs} rejected ({rejected / runs:.2%})")
    low, high = (0.035, 0.06) if runs == 5000 else (0.01, 0.1)
    assert low <= rejected / runs <= high


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("profile", PROFILES)
def test_an_agent_against_itself_with_missing_trials(profile):
    """Where trials are missing at random and signs are drawn by chance, no more are rejected."""
    runs, flips = (2000, 4_999) if FULL else (200, 999)
    rng, rejected = np.random.default_rng(3), 0
    for run in range(runs):
        p = chances(rng, profile, 104)
        valid = rng.binomial(TRIALS, 0.95, size=(2, 104))
        passed = rng.binomial(valid, p)
        a, b = (
            {str(i): Tally(TRIALS, int(n), int(c)) for i, (n, c) in enumerate(zip(valid[x], passed[x], strict=True))}
            for x in (0, 1)
        )
        steps = [pair.difference for pair in pair_tasks(a, b)]
        rejected += flipped_p(steps, seed=run, flips=flips).value <= 0.05
    tell(f"A/A with 5 % missing, {profile}, 104 x {TRIALS}: {rejected} of {runs} rejected ({rejected / runs:.2%})")
    low, high = (0.035, 0.06) if FULL else (0.005, 0.1)
    assert low <= rejected / runs <= high


def masked_tallies(rng, p, missing):
    """Draw 20 trials of each task, some of which are missing at random."""
    valid = rng.binomial(TRIALS, 1 - missing, size=len(p))
    passed = rng.binomial(valid, p)
    return [Tally(TRIALS, int(n), int(c)) for n, c in zip(valid, passed, strict=True)]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("profile", PROFILES)
def test_k_of_k_against_itself_where_one_run_lacks_trials(profile):
    """An agent whose trials are missing now and then does not seem less reliable than the same agent with all of them."""
    runs, tasks = 500 if FULL else 60, 507
    rng, rejected = np.random.default_rng(5), 0
    for _ in range(runs):
        p = chances(rng, profile, tasks)
        one, two = (dict(enumerate(masked_tallies(rng, p, missing))) for missing in (0.04, 0.0))
        rejected += all_passed_difference(pair_tasks(one, two)).p.value <= 0.05
    tell(f"A/A on k/k, 4 % of one run missing, {profile}, {tasks} x {TRIALS}: {rejected / runs:.2%} rejected")
    assert rejected / runs <= (0.06 if FULL else 0.12)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("tasks", [6, 10, 30, 104])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_paired_interval_holds_no_difference(profile, tasks):
    """Of many comparisons of an agent with itself, the interval of the difference holds 0 in at least 93 %."""
    rng, runs, held = np.random.default_rng(8), 2000 if FULL else 500, 0
    for _ in range(runs):
        p = chances(rng, profile, tasks)
        passed = zip(rng.binomial(TRIALS, p), rng.binomial(TRIALS, p), strict=True)
        pairs = [TaskPair("", *(Tally(TRIALS, TRIALS, int(c)) for c in both)) for both in passed]
        low, high = rate_difference(pairs).interval
        held += low <= 0 <= high
    tell(f"Paired interval, {profile}, {tasks} x {TRIALS}: holds 0 in {held / runs:.1%}")
    assert held / runs >= 0.93


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("profile", PROFILES)
def test_the_intervals_of_counts_hold_with_missing_trials(profile):
    """With 4 % of the trials missing, the intervals of the two counts of tasks still cover the truth."""
    runs, held, (a, b) = 500 if FULL else 60, {"every": 0, "once": 0}, PROFILES[profile]
    truth = np.random.default_rng(6).beta(a, b, size=200_000)
    every, once = float((truth**TRIALS).mean()), float((1 - (1 - truth) ** TRIALS).mean())
    rng = np.random.default_rng(7)
    for _ in range(runs):
        found = figures(masked_tallies(rng, chances(rng, profile, 507), 0.04), (), TRIALS)
        (low, high), (least, most) = found.observed_all.interval, found.solved_at_least_once.interval
        held["every"] += low <= every <= high
        held["once"] += least <= once <= most
    tell(
        f"Counts with 4 % missing, {profile}: k/k {held['every'] / runs:.1%}, solved {held['once'] / runs:.1%} covered"
    )
    assert min(held.values()) / runs >= 0.93


@pytest.mark.parametrize("tasks", [30, 104, 507])
@pytest.mark.parametrize("profile", PROFILES)
def test_the_interval_covers_where_a_pooled_one_does_not(profile, tasks):
    """Of 2,000 runs, the interval of pass@1 covers the truth in 93 to 97 %; one that pools all trials in under 60 %."""
    (a, b), rng, runs = PROFILES[profile], np.random.default_rng(1), 2000
    truth, clustered, pooled = a / (a + b), 0, 0
    for _ in range(runs):
        rates = rng.binomial(TRIALS, chances(rng, profile, tasks)) / TRIALS
        low, high = stats.mean_interval(rates.tolist())
        clustered += low <= truth <= high
        low, high = stats.wilson(float(rates.mean()), tasks * TRIALS)
        pooled += low <= truth <= high
    tell(f"Interval, {profile}, {tasks} x {TRIALS}: covers {clustered / runs:.2%}, pooled {pooled / runs:.2%}")
    assert 0.93 <= clustered / runs <= 0.97
    assert pooled / runs < 0.6


def masks(chance):
    """Yield ways to lose trials: at random, only passes, only failures, whole tasks, nearly all."""
    rate = chance.random()
    yield lambda _outcome, _task: chance.random() < rate / 3
    yield lambda outcome, _task: outcome and chance.random() < rate
    yield lambda outcome, _task: not outcome and chance.random() < rate
    lost = {task for task in range(104) if chance.random() < rate / 4}
    yield lambda _outcome, task: task in lost
    yield lambda _outcome, _task: chance.random() < 0.95


@pytest.mark.timeout(1800)
def test_bounds_hold_the_figures_of_the_full_run():
    """In every one of 1,000 runs with masked trials, each figure's bounds hold what it is with all of them."""
    tasks, trials = (104, TRIALS) if FULL else (12, 5)
    chance, rng, replays, held = random.Random(4), np.random.default_rng(4), 0, 0
    while replays < 1000:
        table = rng.random((tasks, trials)) < chances(rng, chance.choice(tuple(PROFILES)), tasks)[:, None]
        truth = of_table(table.tolist())
        for lost in masks(chance):
            rows = [
                [None if lost(outcome, task) else outcome for outcome in row] for task, row in enumerate(table.tolist())
            ]
            found = of_table(rows)
            replays += 1
            for k in range(1, trials + 1):
                for name in (
                    "pass@1",
                    "pass@k (unbiased)",
                    "pass^k (unbiased)",
                    "observed k/k",
                    "solved at least once",
                ):
                    full, seen = truth.named(k)[name], found.named(k)[name]
                    value = full.value if hasattr(full, "value") else full.rate
                    assert seen.bounds.low - 1e-12 <= value <= seen.bounds.high + 1e-12, (name, k, rows)
            held += 1
    tell(f"Bounds, {tasks} x {trials}: hold in {held} of {replays} masked replays, every k from 1 to {trials}")


def of_table(rows):
    """Return the figures of outcomes; None is a trial without verdict."""
    tallies = [Tally(len(row), len(row) - row.count(None), row.count(True)) for row in rows]
    return figures(tallies, (), len(rows[0]))


def test_the_tables_of_this_file_are_runs():
    """Figures of bare outcomes, as they are simulated here, are those of a run with the same outcomes."""
    rows = [[True, None], [True, False], [False, False]]
    run = result_of(rows).figures.named()
    for name, figure in of_table(rows).named().items():
        assert run[name] == figure or figure.value is None
