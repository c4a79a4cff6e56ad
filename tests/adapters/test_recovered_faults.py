"""What a framework makes of a model endpoint's fault, seen on the wire: overcome, or swallowed by a sub-agent's caller."""

import httpx2
import openai
import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters.adapters._shared import agent_fault
from tbadapters.core.errors import AccessFault
from tbadapters.core.transport import ProviderFaults
from tbadapters.testing import Reply, ScriptedModelServer


def client(server):
    return openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0)


@pytest.mark.parametrize("kind", ["rate_limit", "quota"])
async def test_a_fallback_to_another_api_is_a_recovery(kind):
    """PydanticAI's fallback from chat completions to responses leaves no fault, before and after a tool call."""

    def policy(turn):
        return "Done." if turn.messages[-1].role == "tool" else Reply(tool_calls=[("look", {})])

    plan = {0: kind, 2: kind}.get
    async with ScriptedModelServer(policy, faults=plan) as server, client(server) as model:
        provider = OpenAIProvider(openai_client=model)
        models = OpenAIChatModel("m", provider=provider), OpenAIResponsesModel("m2", provider=provider)
        agent = PydanticAgent(FallbackModel(*models), instructions="Be kind.")

        @agent.tool_plain
        def look() -> str:
            """Look."""
            return "seen"

        faults = ProviderFaults()
        with faults.observe():
            result = await agent.run("Look, please.")
    assert result.output == "Done."
    assert [seen.recovered for seen in faults.seen] == [True, True]
    assert faults.unrecovered() is None


async def test_a_sub_agent_asked_in_the_users_words_stays_failed():
    """The OpenAI Agents SDK's ``as_tool`` makes a sentence of a 429: the caller's success is no recovery."""

    def policy(turn):
        return "Sorry." if turn.messages[-1].role == "tool" else Reply(tool_calls=[("expert", {"input": "Help me."})])

    set_tracing_disabled(True)
    plan = {1: "rate_limit"}.get
    async with ScriptedModelServer(policy, faults=plan) as server, client(server) as model:
        chat = OpenAIChatCompletionsModel("m", model)
        expert = Agent(name="expert", instructions="Be kind.", model=chat)
        tool = expert.as_tool("expert", "Ask an expert.")
        faults = ProviderFaults()
        with faults.observe():
            result = await Runner.run(Agent(name="a", instructions="Be kind.", model=chat, tools=[tool]), "Help me.")
    assert result.final_output == "Sorry."
    assert faults.unrecovered().code == "rate_limit"


async def test_no_credit_is_refused_access():
    """An openai client's 402, which no class of its own stands for, is refused access."""
    request = httpx2.Request("POST", "http://localhost/v1/responses")
    error = openai.APIStatusError("No credit.", response=httpx2.Response(402, request=request), body=None)
    fault = agent_fault(error)
    assert type(fault) is AccessFault
    assert fault.code == "payment_required"
