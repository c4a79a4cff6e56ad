"""The figures are those that were injected, exactly: outcomes trial by trial, tokens as the server sent them."""

import pytest

from tbadapters.testing import Outcomes


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.8, 1.0])
async def test_outcomes_and_tokens_are_exact(play, framework, rate, size):
    """pass@1, observed k/k, every verdict and every token equal what was injected and sent."""
    tasks, trials = size
    outcomes = Outcomes(pass_rate=rate, seed=11)
    result, _, server = await play(framework, outcomes=outcomes, tasks=tasks, trials=trials)

    expected = {
        (task.id, index): outcomes.flaw(task.id, index) is None for task in result.tasks for index in range(trials)
    }
    assert {(r.task, r.index): r.passed for r in result.trials} == expected
    assert result.pass_at_1 == pytest.approx(sum(expected.values()) / len(expected), abs=1e-12)
    whole = sum(all(expected[task.id, index] for index in range(trials)) for task in result.tasks)
    assert result.observed_all.count == whole
    assert {(r.task, r.index): r.usage for r in result.trials} == dict(server.usage_by_trial())
    assert result.usage == server.totals
