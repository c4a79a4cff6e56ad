"""Any stack that plays the same script gets the same verdicts."""

import pytest

from tbadapters.testing import Outcomes


@pytest.mark.timeout(1800)
async def test_three_frameworks_get_the_same_verdicts(play, size):
    """The same seeded script through the three frameworks gives the same verdicts and effects, trial by trial."""
    tasks, trials = size
    seen = {}
    for framework in ("langgraph", "openai-agents", "pydantic-ai"):
        result, *_ = await play(framework, outcomes=Outcomes(pass_rate=0.5, seed=3), tasks=tasks, trials=trials)
        seen[framework] = [
            (
                r.task,
                r.index,
                r.passed,
                r.end_reason,
                [(e.kind, e.table, e.column, e.golden) for e in r.verdict.effects],
            )
            for r in result.trials
        ]
    assert seen["langgraph"] == seen["openai-agents"] == seen["pydantic-ai"]
    assert {passed for _, _, passed, *_ in seen["langgraph"]} == {True, False}
