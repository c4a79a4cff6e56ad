"""Injected flaws fail their trials by the effects they have, and the cause is named."""

import pytest

from tbadapters.testing import FLAWS, Outcomes

CLASSES = {
    "wrong_value": "wrong_value",
    "missing": "missing",
    "extra": "unexpected",
    "lie": "missing",
    "loop": "missing",
}


@pytest.mark.timeout(1800)
async def test_every_flaw_fails_with_its_effects_and_its_cause(play, framework, flaws_a_kind):
    """All flawed trials fail; the effect classes are the injected ones; the causing call or golden action is named."""
    for flaw in FLAWS:
        outcomes = Outcomes(pass_rate=0.0, flaws=(flaw,), seed=5)
        result, policy, _ = await play(framework, outcomes=outcomes, tasks=flaws_a_kind, trials=1)
        assert len(result.trials) == flaws_a_kind
        for record in result.trials:
            injected = policy.injected(record.task, record.index)
            assert record.passed is False
            effects = [e for e in record.verdict.effects if e.kind == CLASSES[injected.flaw]]
            assert effects, (record.task, injected, record.verdict)
            if injected.flaw in ("extra", "wrong_value"):
                causes = {record.tool_calls[e.caused_by].name for e in effects if e.caused_by is not None}
                assert injected.tool in causes, (record.task, injected, record.verdict.effects)
            else:
                assert all(e.golden is not None for e in effects)
            if injected.flaw == "loop":
                assert record.end_reason == "model_requests"
            else:
                assert record.end_reason == "settled"
