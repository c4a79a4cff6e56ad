"""OpenAI Agents SDK agents that end abnormally: whose fault it is, and what is recorded all the same."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import openai_agents_stage
import pytest
from agents import GuardrailFunctionOutput, InputGuardrail, ModelSettings, OutputGuardrail

from tbadapters.adapters.openai_agents import OpenAIAgentsAgent, tools
from tbadapters.core.agent import Approvals, Said
from tbadapters.core.errors import (
    AccessFault,
    AgentFault,
    HarnessFault,
    LimitReached,
    ProviderFault,
    SandboxFault,
)
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Message
from tbadapters.core.tools import ToolResult
from tbadapters.testing.turns import Call, Reply

stage = openai_agents_stage.stage
CALL = Reply(tool_calls=[("get_balance", {"account": "A-1"})])
ASK = Reply(tool_calls=[("ask_clerk", {"input": "x"})])


@pytest.mark.parametrize(
    ("fault", "owner", "code"),
    [
        ("rate_limit", ProviderFault, "rate_limit"),
        ("quota", AccessFault, "insufficient_quota"),
        ("server_error", ProviderFault, "server_error"),
        ("overloaded", ProviderFault, "server_error"),
        ("request_timeout", ProviderFault, "timeout"),
        ("conflict", ProviderFault, "conflict"),
        ("forbidden", AccessFault, "permission"),
        ("context_length", AgentFault, "context_length_exceeded"),
        ("cut_stream", ProviderFault, "connection"),
        ("timeout", ProviderFault, "timeout"),
    ],
)
async def test_a_failed_model_request_has_its_owner(stage, attempt, fault, owner, code):
    """An endpoint's failure is the provider's, a full context the agent's; what was used before is recorded exactly."""
    async with stage(seconds=0.4, bank=[CALL, Reply(fault=fault)]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("bank"))) as session:
            with pytest.raises(owner) as caught:
                await session.send(Message("Hi."))
        assert attempt.usage == on.server.totals
    assert (type(caught.value), caught.value.code) == (owner, code)
    assert caught.value.retry_after == (7 if fault == "rate_limit" else None)
    assert [request.usage is None for request in attempt.requests] == [False, True]
    assert attempt.faults == [caught.value]


async def test_the_sdks_own_timeout_of_a_model_request_is_the_providers(stage, attempt):
    """A timeout set in the model settings is a provider's fault, as one of the client is."""
    async with stage(bank=[Reply(fault="timeout")]) as on:
        agent = on.agent("bank", model_settings=ModelSettings(timeout=0.2))
        async with attempt.session(OpenAIAgentsAgent(agent)) as session:
            with pytest.raises(ProviderFault) as caught:
                await session.send(Message("Hi."))
    assert (caught.value.code, attempt.faults) == ("timeout", [caught.value])


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ([Reply(refusal="No.")], "refusal"),
        ([Reply(tool_calls=[("no_such_tool", {})])], "model_behavior"),
    ],
)
async def test_what_a_model_does_wrong_is_the_agents(stage, attempt, script, code):
    """A refusal and a call of an unknown tool end the attempt under their own labels, with their tokens recorded."""
    async with stage(bank=script) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("bank"))) as session:
            with pytest.raises(AgentFault) as caught:
                await session.send(Message("Hi."))
        assert attempt.usage == on.server.totals
    assert (type(caught.value), caught.value.code) == (AgentFault, code)
    assert attempt.faults == []


@pytest.mark.parametrize("kind", ["input", "output"])
async def test_a_tripped_guardrail_is_the_agents(stage, attempt, kind):
    """An author's guardrail that trips ends the attempt under its own label."""

    async def trip(context, agent, said) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    rails = {
        "input": {"input_guardrails": [InputGuardrail(trip)]},
        "output": {"output_guardrails": [OutputGuardrail(trip)]},
    }
    async with (
        stage(bank=["Hi."]) as on,
        attempt.session(OpenAIAgentsAgent(on.agent("bank", **rails[kind]))) as session,
    ):
        with pytest.raises(AgentFault) as caught:
            await session.send(Message("Hi."))
    assert caught.value.code == "tripwire"
    assert attempt.faults == []


async def test_an_exception_in_the_authors_code_is_the_agents(stage, attempt):
    """What an author's own code raises is the agent's fault and names the exception."""

    def instructions(context, agent) -> str:
        raise KeyError("customer")

    async with (
        stage(bank=["Hi."]) as on,
        attempt.session(OpenAIAgentsAgent(on.agent("bank", instructions=instructions))) as session,
    ):
        with pytest.raises(AgentFault, match="KeyError: 'customer'") as caught:
            await session.send(Message("Hi."))
    assert (type(caught.value), caught.value.code) == (AgentFault, "exception")


@pytest.mark.parametrize("place", ["itself", "sub-agent", "last sub-agent"])
async def test_our_limit_ends_the_attempt(stage, attempt, place):
    """The core's limit of model requests ends the run, in a sub-agent too, before a further model is asked."""
    attempt.max_requests = 3
    async with stage(bank=[CALL], boss=[ASK], clerk=[CALL]) as on:
        behavior = "stop_on_first_tool" if place == "last sub-agent" else "run_llm_again"
        clerk = on.agent("clerk", tools=tools(attempt.tools)).as_tool("ask_clerk", "Ask.")
        boss = on.agent("boss", tools=[clerk], tool_use_behavior=behavior)
        async with attempt.session(OpenAIAgentsAgent(on.agent("bank") if place == "itself" else boss)) as session:
            with pytest.raises(LimitReached):
                await session.send(Message("Hi."))
        assert len(on.server.requests) == 3
        assert attempt.usage == on.server.totals


async def test_the_sdks_own_limit_lies_above_ours(stage, attempt):
    """The SDK's turn limit (10 by default) is set above the core's, and is the agent's fault where it is met."""
    async with stage(bank=[CALL]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("bank")), limits=Limits(model_requests=12)) as session:
            with pytest.raises(AgentFault) as caught:
                await session.send(Message("Hi."))
        assert len(on.server.requests) == 13
    assert (type(caught.value), caught.value.code) == (AgentFault, "max_turns")


async def test_without_a_limit_of_ours_the_sdk_sets_none(stage, attempt):
    """With ``model_requests=None`` more turns than the SDK's default are made."""
    async with (
        stage(bank=[CALL] * 15 + ["Done."]) as on,
        attempt.session(OpenAIAgentsAgent(on.agent("bank")), limits=Limits(model_requests=None)) as session,
    ):
        assert await session.send(Message("Hi.")) == Said("Done.")


async def test_a_tools_error_is_read_by_the_model(stage, attempt):
    """A tool's error, and arguments that are no JSON object, are answered to the model, which goes on."""
    attempt.answers["get_balance"] = ToolResult("No such account.", is_error=True)
    async with stage(bank=[CALL, Reply(tool_calls=CALL.tool_calls, fault="malformed_json"), "Sorry."]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("bank"))) as session:
            assert await session.send(Message("Hi.")) == Said("Sorry.")
        read = [m.text for m in on.seen("bank")[-1].messages if m.role == "tool"]
    assert read[0] == "No such account."
    assert read[1].startswith("The arguments of get_balance are no valid JSON")
    assert len(attempt.calls) == 1


@pytest.mark.parametrize("place", ["itself", "sub-agent", "last sub-agent"])
async def test_a_sandboxs_fault_in_a_tool_passes(stage, attempt, place):
    """A sandbox that dies inside a tool ends the run at once, as it is, though a sub-agent's caller is told politely."""
    attempt.answers["get_balance"] = dead = SandboxFault("The server died.")
    async with stage(bank=[CALL, "Fine."], boss=[ASK, "Fine."], clerk=[CALL, "Fine."]) as on:
        behavior = "stop_on_first_tool" if place == "last sub-agent" else "run_llm_again"
        clerk = on.agent("clerk", tools=tools(attempt.tools)).as_tool("ask_clerk", "Ask.")
        boss = on.agent("boss", tools=[clerk], tool_use_behavior=behavior)
        agent = on.agent("bank") if place == "itself" else boss
        async with attempt.session(OpenAIAgentsAgent(agent)) as session:
            with pytest.raises(SandboxFault) as caught:
                await session.send(Message("Hi."))
        assert len(on.server.requests) == (1 if place == "itself" else 2)
        assert attempt.usage == on.server.totals
    assert caught.value is dead
    assert dead.__cause__ is None


async def test_a_sub_agents_swallowed_fault_is_recorded(stage, attempt):
    """A sub-agent's 429 becomes a polite sentence and the run goes on; the record still shows the failed request."""
    async with stage(boss=[ASK, "Sorry."], clerk=[Reply(fault="rate_limit")]) as on:
        boss = on.agent("boss", tools=[on.agent("clerk").as_tool("ask_clerk", "Ask.")])
        async with attempt.session(OpenAIAgentsAgent(boss)) as session:
            assert await session.send(Message("Hi.")) == Said("Sorry.")
        assert attempt.usage == on.server.totals
    assert [(r.actor, r.usage is None) for r in attempt.requests] == [(None, False), (None, False), ("clerk", True)]
    assert attempt.notes == ["A model request of clerk failed, and its caller went on."]


async def test_a_sub_agents_fault_that_is_not_swallowed_is_the_providers(stage, attempt):
    """With ``failure_error_function=None`` a sub-agent's 429 ends the attempt as the provider's fault."""
    async with stage(boss=[ASK, "Sorry."], clerk=[Reply(fault="rate_limit")]) as on:
        tool = on.agent("clerk").as_tool("ask_clerk", "Ask.", failure_error_function=None)
        async with attempt.session(OpenAIAgentsAgent(on.agent("boss", tools=[tool]))) as session:
            with pytest.raises(ProviderFault) as caught:
                await session.send(Message("Hi."))
    assert (caught.value.code, caught.value.retry_after) == ("rate_limit", 7)
    assert [(r.actor, r.usage is None) for r in attempt.requests] == [(None, False), ("clerk", True)]


async def test_a_session_outlasts_its_tool_calls(stage, attempt):
    """When one of two parallel calls fails, the session ends only after the other's cleanup: the sandbox is in use."""
    slow_started, answered, events = anyio.Event(), anyio.Event(), []

    async def before_call(name: str) -> None:
        if name == "transfer":
            await slow_started.wait()
            raise SandboxFault("The server died.")
        try:
            slow_started.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await answered.wait()
                await anyio.lowlevel.checkpoint()
                events.append("cleaned up")

    attempt.before_call = before_call
    calls = [Call("get_balance", {"account": "A"}), Call("transfer", {"source": "A", "target": "B", "amount": 1})]
    async with stage(bank=[Reply(tool_calls=calls)]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("bank"))) as session:
            with pytest.raises(SandboxFault):
                await session.send(Message("Hi."))
            events.append("answered")
            answered.set()
        events.append("closed")
    assert events == ["answered", "cleaned up", "closed"]


async def test_turns_out_of_order_are_the_harness_fault(stage, attempt):
    """Approvals that nobody asked for, and a message where approvals are due, are refused as our own fault."""
    call = ("close_account", {"account": "A-1"})
    async with (
        stage(bank=[Reply(tool_calls=[call]), "Done."]) as on,
        attempt.session(OpenAIAgentsAgent(on.agent("bank"))) as session,
    ):
        with pytest.raises(HarnessFault):
            await session.send(Approvals({}))
        await session.send(Message("Close it."))
        with pytest.raises(HarnessFault):
            await session.send(Message("Well?"))
