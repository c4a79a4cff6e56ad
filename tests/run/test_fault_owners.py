"""Whose fault it is, through the doors: nobody is graded for what the infrastructure did, and what can't work stops."""

import asyncio

import pytest
from openai import AsyncOpenAI

from tbadapters import Retries, evaluate
from tbadapters.core.errors import RunStopped
from tbadapters.testing import FixedPolicy, Reply, ScriptedModelServer

QUICK = Retries(attempts=2, wait_initial=0, wait_max=0)


@pytest.fixture
def run(desk, tmp_path):
    """Return evaluate() on one trial of one task, with quiet defaults."""

    async def run(agent, **options):
        defaults = {"suite": desk, "tasks": 1, "trials": 1, "retries": QUICK, "out": tmp_path, "progress": "off"}
        return await evaluate(agent, **defaults | options)

    return run


@pytest.mark.parametrize("model", ["openai:gpt-4o", "nosuchprovider:some-model", "anthropic:claude-sonnet-4-5"])
async def test_pydantic_ai_without_a_key_a_provider_or_a_client_stops_the_run(run, monkeypatch, model):
    """A key, a provider's name or a client package that is missing stops the run with PydanticAI's mending sentence."""
    from pydantic_ai import Agent

    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RunStopped, match=r"No model can be asked.*(Set the|Unknown|install).*resume"):
        await run(Agent(model, defer_model_check=True))


async def test_other_mistakes_of_an_agents_author_are_the_agents(run):
    """A UserError that PydanticAI raises about the agent itself fails the trial and stops nothing."""
    from pydantic_ai import Agent
    from pydantic_ai.exceptions import UserError

    agent = Agent("test")

    @agent.instructions
    def wrong() -> str:
        raise UserError("not like this")

    result = await run(agent)
    (record,) = result.trials
    assert (record.passed, record.fault.owner) == (False, "agent")


async def test_a_sub_agents_swallowed_429_leaves_no_verdict(run):
    """A sub-agent's rate limit that the SDK turns into a polite sentence is the provider's, not a failed trial."""
    from agents import Agent, OpenAIChatCompletionsModel

    def policy(turn):
        if any(tool.name == "expert" for tool in turn.tools):
            said = turn.messages[-1].role == "tool"
            return "I'm sorry, that can't be done." if said else Reply(tool_calls=[("expert", {"input": "Help."})])
        return Reply(fault="rate_limit")

    async with (
        ScriptedModelServer(policy) as server,
        AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        model = OpenAIChatCompletionsModel("m", client)
        tool = Agent(name="expert", model=model).as_tool("expert", "Ask an expert.")
        from tbadapters.adapters.openai_agents import OpenAIAgentsAgent

        result = await run(OpenAIAgentsAgent(Agent(name="a", model=model, tools=[tool]), tools="suite"))
    (record,) = result.trials
    assert record.passed is None
    assert (record.fault.owner, record.fault.code) == ("provider", "rate_limit")
    assert len(result.faulted) == 1


async def test_an_exception_of_ours_is_never_graded(run, desk, monkeypatch):
    """What goes wrong in the core's own preparation of a trial is the harness's: no verdict, and the run goes on."""

    def broken(*args):
        raise ZeroDivisionError

    monkeypatch.setattr("tbadapters.core.trial.conversation_for", broken)
    result = await run(_polite)
    (record,) = result.trials
    assert record.passed is None
    assert record.fault.owner == "harness"


def bug_in(module):
    """Return a function that fails by itself, in a module of this name."""
    names = {"__name__": module}
    exec("def bug(*args, **options): return {}['missing']", names)
    return names["bug"]


async def test_a_bug_in_an_adapter_of_ours_is_never_graded(run, monkeypatch):
    """What our own code raises by mistake, while the agent is driven, leaves no verdict."""
    monkeypatch.setattr("tbadapters.adapters.function._is_async", bug_in("tbadapters.adapters.function"))
    (record,) = (await run(_polite)).trials
    assert (record.passed, record.fault.owner) == (None, "harness")
    assert "KeyError: 'missing'" in record.fault.message


@pytest.mark.parametrize("module", ["mine", "tbadapters_of_mine.core", "tbadapters.testing.model"])
async def test_a_bug_of_the_agents_own_is_the_agents(run, module):
    """The same mistake in whatever code is not ours fails the trial."""
    bug = bug_in(module)

    async def agent(message, ctx):
        return bug()

    (record,) = (await run(agent)).trials
    assert (record.passed, record.fault.owner) == (False, "agent")


async def test_a_tools_error_that_the_agent_does_not_handle_is_the_agents(run):
    """An error that we tell an agent on purpose is its own to handle."""

    async def agent(message, ctx):
        return await ctx.call("set_status", ticket_id="T-404", status="hold")

    (record,) = (await run(agent)).trials
    assert (record.passed, record.fault.owner) == (False, "agent")


async def _polite(message, ctx):
    await asyncio.sleep(0)
    return "I'm sorry, that can't be done."


@pytest.mark.parametrize("kind", ["quota", "forbidden"])
async def test_refused_access_ends_the_run_at_once(run, kind):
    """Quota and permission stop the run at the first refusal: no trial after it asks the model again."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with (
        ScriptedModelServer(FixedPolicy([Reply(fault=kind)])) as server,
        AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
    ):
        agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)))
        with pytest.raises(RunStopped, match="resume"):
            await run(agent, tasks=None, trials=5, concurrency=1)
        assert len(server.requests) == 1
