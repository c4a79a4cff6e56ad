"""The published figures of ThinkingBox-Bench follow from counts of trials by the figures' own definitions."""

import json
from importlib.resources import files

import pytest
from synthetic_runs import result_of

from tbadapters.core import statistics as stats
from tbadapters.core.failures import Share
from tbadapters.core.figures import figures
from tbadapters.core.statistics import Tally

PUBLISHED = json.loads((files("tbadapters.reports") / "data" / "thinkingbox_published.json").read_text("utf-8"))
K = PUBLISHED["trials_per_task"]
DOMAINS = PUBLISHED["pass_at_1_percent"]["columns"][:-1]
MODELS = {**PUBLISHED["pass_at_1_percent"]["proprietary"], **PUBLISHED["pass_at_1_percent"]["open_weights"]}


def domain_tallies(domain, percent):
    """Return tasks of a domain whose passed trials are as many as the published percentage says, spread unevenly."""
    tasks = PUBLISHED["tasks"][domain]
    passed = round(percent / 100 * tasks * K)
    # The percentage has digits enough to name one number of trials.
    assert 100 * passed / (tasks * K) == pytest.approx(percent, abs=0.00501)
    full, rest = divmod(passed, K)
    counts = [K] * full + [rest] * bool(rest)
    return [Tally(K, K, c) for c in (*counts, *[0] * (tasks - len(counts)))]


@pytest.mark.parametrize("model", MODELS)
def test_the_table_of_models(model):
    """Each overall pass@1 is the mean over all 507 tasks of what the five domains' counts of trials say."""
    *percents, overall = MODELS[model]
    domains = [domain_tallies(name, percent) for name, percent in zip(DOMAINS, percents, strict=True)]
    tallies = [tally for domain in domains for tally in domain]
    assert len(tallies) == PUBLISHED["tasks"]["total"] == 507
    assert 100 * stats.pass_at_1(tallies) == pytest.approx(overall, abs=0.01)
    assert 100 * figures(tallies, (), K).pass_at_1.value == pytest.approx(overall, abs=0.01)


def counted(*, whole, solved, passed):
    """Return 507 tasks: so many at 20/20, so many solved at least once, so many trials passed in all."""
    some = solved - whole
    share, rest = divmod(passed - K * whole, some)
    counts = [share + 1] * rest + [share] * (some - rest)
    assert all(0 < c < K for c in counts)
    return [Tally(K, K, c) for c in (*[K] * whole, *counts, *[0] * (507 - solved))]


CONSISTENCY = {"Kimi-K3": (68, 476, 13.41, 93.89), "Claude Opus 5": (241, 507 - 106, 47.53, 79.09)}


@pytest.mark.parametrize("model", CONSISTENCY)
def test_consistency(model):
    """Observed 20/20, pass@20, solved at least once and retention follow from the published counts."""
    whole, solved, percent_whole, percent_solved = CONSISTENCY[model]
    tallies = counted(whole=whole, solved=solved, passed=round(MODELS[model][-1] / 100 * 507 * K))
    found = figures(tallies, (), K)
    assert (found.observed_all.count, round(100 * found.observed_all.rate, 2)) == (whole, percent_whole)
    assert found.solved_at_least_once.count == solved
    assert round(100 * found.solved_at_least_once.rate, 2) == percent_solved
    assert 100 * found.pass_at_k[K].value == pytest.approx(percent_solved, abs=0.005)
    assert 100 * found.pass_hat_k[K].value == pytest.approx(percent_whole, abs=0.005)
    assert found.retention.value == pytest.approx(percent_whole / MODELS[model][-1], abs=0.0005)


def test_retention_as_published():
    """The published retention of Claude Opus 5 is that of its published counts."""
    published = PUBLISHED["retention_observed_20_of_20_over_pass_at_1"]["Claude Opus 5"]
    assert round(241 / 507 / (MODELS["Claude Opus 5"][-1] / 100), 2) == published


def test_failures_as_published():
    """Shares are of all failed trials, those of the classes of the ones that looked clean: the published numbers fit."""
    found = PUBLISHED["failures"]
    assert found["models"] * 507 * K == found["valid_trials"]
    clean = round(found["looked_clean_percent_of_failed"] / 100 * found["failed_trials"])
    wrong = round(found["of_those_wrong_value_percent"] / 100 * clean)
    looked_clean, of_clean = Share(clean, found["failed_trials"]), Share(wrong, clean)
    assert round(100 * looked_clean.share, 2) == 67.24
    assert round(100 * of_clean.share, 2) == 77.61
    run = result_of([[True, False], [False, False]]).failures
    assert (run.looked_clean.of, run.classes["wrong_value"].of) == (3, run.looked_clean.count)
