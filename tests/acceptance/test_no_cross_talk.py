"""Trials never mix: not in one run, not in two runs in one loop."""

import anyio
import pytest

from tbadapters.testing import Outcomes


@pytest.mark.timeout(300)
async def test_concurrent_trials_and_runs_keep_apart(play, framework, neobank):
    """Of 100 concurrent trials in each of two runs at once, each sandbox saw exactly the calls of its own script."""
    results = {}

    async def one(name, outcomes):
        results[name] = await play(framework, outcomes=outcomes, tasks=20, trials=5, concurrency=100)

    async with anyio.create_task_group() as group:
        group.start_soon(one, "right", Outcomes(pass_rate=1.0))
        group.start_soon(one, "wrong", Outcomes(pass_rate=0.0, flaws=("lie",)))
    for name, rate in (("right", 1.0), ("wrong", 0.0)):
        result, policy, _ = results[name]
        assert result.pass_at_1 == rate
        for record in result.trials:
            expected = [step.tool for step in policy.script(record.task, record.index).steps]
            assert sorted(call.name for call in record.tool_calls) == sorted(expected)
            opening = neobank.task(record.task).opening
            assert record.messages[0].text == opening
