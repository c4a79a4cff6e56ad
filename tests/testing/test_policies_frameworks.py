"""Scripted models play agents of any framework and make alike, by either wire."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from policy_agent import policy_agent
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters import Limits, evaluate
from tbadapters.adapters.openai_agents import OpenAIAgentsAgent
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer

LIMITS = Limits(model_requests=12, tool_calls=8)
OUTCOMES = Outcomes(pass_rate=0.5, seed=8)


@asynccontextmanager
async def server_and_client(suite, **outcomes):
    policy = GoldenPolicy(suite, outcomes=Outcomes(**outcomes) if outcomes else OUTCOMES)
    async with ScriptedModelServer(policy) as server, AsyncOpenAI(base_url=server.url, api_key="k") as client:
        yield server, client


async def run(agent, suite, tmp_path, trials=3):
    return await evaluate(agent, suite=suite, trials=trials, limits=LIMITS, progress="off", out=tmp_path)


def langgraph(client, suite, wire):
    class Shared(ChatOpenAI):
        """Speaks through the test's client, which the test closes."""

    chat = Shared(
        model="m",
        api_key="k",
        base_url=str(client.base_url),
        use_responses_api=wire == "responses",
        http_async_client=client._client,
    )
    return create_agent(chat, tools=suite.tools("langgraph"))


def openai_agents(client, suite, wire):
    model = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}[wire]
    return Agent(name="desk", model=model(model="m", openai_client=client))


def pydantic_ai(client, suite, wire):
    model = {"chat": OpenAIChatModel, "responses": PydanticResponsesModel}[wire]
    return PydanticAgent(model("m", provider=OpenAIProvider(openai_client=client)))


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("framework", [langgraph, openai_agents, pydantic_ai])
async def test_any_framework_gives_the_same_verdicts(desk, tmp_path, framework, wire):
    """The same seeds through a framework's real client give the injected outcomes, trial by trial, and exact tokens."""
    async with server_and_client(desk) as (server, client):
        result = await run(framework(client, desk, wire), desk, tmp_path)
    assert [r.passed for r in result.records] == [OUTCOMES.flaw(r.task, r.index) is None for r in result.records]
    assert {exchange.path for exchange in server.requests} == {
        "/v1/chat/completions" if wire == "chat" else "/v1/responses"
    }
    assert {(r.task, r.index): r.usage for r in result.records} == server.usage_by_trial()


@pytest.mark.parametrize("wire", ["chat", "responses"])
async def test_handoffs(desk, tmp_path, wire):
    """A triage agent hands over, the next agent asks and acts; agents that hold a part of the tools pass it on."""
    async with server_and_client(desk) as (_, client):
        tools = {tool.name: tool for tool in desk.tools("openai-agents")}
        calls = openai_agents(client, desk, wire).clone(name="call booking", tools=[tools["book_call"]])
        status = calls.clone(name="ticket status", tools=[tools["set_status"], tools["get_ticket"]], handoffs=[calls])
        triage = calls.clone(name="triage", tools=[], handoffs=[calls, status])
        calls.handoffs = [status]
        result = await run(OpenAIAgentsAgent(triage, tools="suite"), desk, tmp_path)
    assert [r.passed for r in result.records] == [OUTCOMES.flaw(r.task, r.index) is None for r in result.records]


async def test_specialists_as_tools(desk, tmp_path):
    """A coordinator asks the user, calls specialists that hold a part of the tools each, and claims the end."""
    async with server_and_client(desk) as (_, client):
        tools = {tool.name: tool for tool in desk.tools("openai-agents")}
        plain = openai_agents(client, desk, "responses")
        calls = plain.clone(name="call booking", tools=[tools["book_call"]])
        status = plain.clone(name="ticket status", tools=[tools["set_status"], tools["get_ticket"]])
        coordinator = plain.clone(
            name="coordinator",
            tools=[
                calls.as_tool("call_booking", "Books calls."),
                status.as_tool("ticket_status", "Sets the status of tickets."),
            ],
            model_settings=ModelSettings(parallel_tool_calls=False),
        )
        result = await run(OpenAIAgentsAgent(coordinator, tools="suite"), desk, tmp_path)
    assert [r.passed for r in result.records] == [OUTCOMES.flaw(r.task, r.index) is None for r in result.records]


async def test_same_as_without_a_framework(desk, tmp_path):
    """An agent without a framework makes the same calls as one with it."""
    async with server_and_client(desk) as (_, client):
        framed = await run(openai_agents(client, desk, "chat"), desk, tmp_path / "a")
    plain = await run(policy_agent(GoldenPolicy(desk, outcomes=OUTCOMES)), desk, tmp_path / "b")

    def calls(result):
        done = {(r.task, r.index): [(c.name, c.arguments, c.result.text) for c in r.tool_calls] for r in result.records}
        return {trial: made for trial, made in done.items() if OUTCOMES.flaw(*trial) != "loop"}

    assert calls(framed) == calls(plain)
