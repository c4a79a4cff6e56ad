"""Agents of all frameworks run in processes of their own, through their real clients, as they do in this one."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tbadapters import Limits, Retries, RunStopped, evaluate
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer

AGENTS = Path(__file__).parent.parent / "data" / "isolated"
SPECS = {
    "langgraph": f"{AGENTS}/langgraph_agent.py:agent",
    "openai-agents": f"{AGENTS}/openai_agent.py:agent",
    "pydantic-ai": f"{AGENTS}/pydantic_agent.py:agent",
    "factory": f"{AGENTS}/langgraph_agent.py:made",
}
OUTCOMES = Outcomes(pass_rate=0.5, seed=8)
LIMITS = Limits(model_requests=12, tool_calls=8)


@pytest.fixture
def play(desk, tmp_path, monkeypatch):
    """Return what evaluates an agent's file with a scripted model, here or in processes of its own."""

    async def play(spec, isolation, *, faults=None, outcomes=OUTCOMES, **options):
        policy = GoldenPolicy(desk, outcomes=outcomes)
        async with ScriptedModelServer(policy, faults=faults) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            options = {"trials": 3, "limits": LIMITS, "concurrency": 4} | options
            result = await evaluate(spec, suite=desk, isolation=isolation, out=tmp_path, progress="off", **options)
            return result, server

    return play


@pytest.mark.parametrize("framework", SPECS)
async def test_the_same_figures_and_tokens(play, framework):
    """The verdicts of each task, the calls and the tokens are those that were injected, and what the server counted."""
    result, server = await play(SPECS[framework], "process")
    assert result.framework == ("langgraph" if framework == "factory" else framework)
    for task in result.tasks:
        passed = Counter(r.passed for r in result.records if r.task == task.id)
        injected = Counter(OUTCOMES.flaw(task.id, index) is None for index in range(3))
        assert passed == injected
    assert sum((r.usage for r in result.records), start=type(server.totals)()) == server.totals
    assert {r.requests[0].model for r in result.records} == {"scripted"}


async def test_trial_by_trial_as_in_process(play):
    """One trial at a time, records are the same with and without isolation: calls, answers, verdicts, tokens."""

    def told(result):
        return [
            (
                r.task,
                r.index,
                r.passed,
                r.end_reason,
                r.usage,
                r.messages,
                [(c.name, c.arguments) for c in r.tool_calls],
            )
            for r in result.records
        ]

    spec = SPECS["openai-agents"]
    here, _ = await play(spec, "none", concurrency=1)
    await next(m for name, m in sys.modules.items() if name.startswith("tbadapters_agent_openai_agent_")).client.close()
    there, _ = await play(spec, "process", concurrency=1)
    assert told(there) == told(here)


async def test_a_providers_fault_is_the_providers(play):
    """A 429 that ends the agent in its process is the provider's fault, and another attempt is made."""
    plan = {0: "rate_limit"}.get
    result, _ = await play(
        SPECS["pydantic-ai"], "process", faults=plan, outcomes=Outcomes(pass_rate=1.0), tasks=1, trials=1,
        retries=Retries(wait_initial=0, wait_max=0), concurrency=1,
    )  # fmt: skip
    assert [r.passed for r in result.records] == [True]
    assert [(r.fault.owner, r.fault.code) for r in result.faulted] == [("provider", "rate_limit")]
    assert result.faulted[0].provider_faults == {"rate_limit": 1}


async def test_refused_access_stops_the_run(play):
    """A quota that is used up, told to the agent in its process, stops the run."""
    with pytest.raises(RunStopped, match="quota"):
        await play(SPECS["openai-agents"], "process", faults=lambda number: "quota", tasks=1, trials=1)


async def test_a_stalled_request_is_the_providers(play):
    """A deadline that expires while the agent's process waits for a model is the provider's fault."""
    result, _ = await play(
        SPECS["pydantic-ai"], "process", faults=lambda number: "timeout", tasks=1, trials=1,
        limits=Limits(seconds=1, grace=0.5), retries=Retries(attempts=1),
    )  # fmt: skip
    assert [(r.passed, r.fault.owner, r.fault.code) for r in result.records] == [(None, "provider", "stalled")]


async def test_requests_are_paced(play):
    """Requests of an agent's process are held back, and their number is right, where concurrency adapts."""
    result, server = await play(SPECS["openai-agents"], "process", concurrency=None, outcomes=Outcomes(pass_rate=1.0))
    assert {r.passed for r in result.records} == {True}
    assert sum(len(r.requests) for r in result.records) == len(server.requests)
