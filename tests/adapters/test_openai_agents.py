"""OpenAI Agents SDK agents through their real client: conversations, tools, handoffs, sub-agents, usage."""

from __future__ import annotations

import subprocess
import sys

import agents
import anyio
import openai_agents_stage
import pytest
from agents import Agent, ModelSettings, RunConfig, handoff
from agents.run_config import ModelInputData
from openai_agents_stage import Stage, staged
from pydantic import BaseModel

from tbadapters.adapters.openai_agents import OpenAIAgentsAgent, tools
from tbadapters.core.agent import ApprovalRequest, Approvals, NeedsApproval, Said
from tbadapters.core.context import TrialRef
from tbadapters.core.errors import InvalidOption, MissingFramework, UsageError
from tbadapters.core.frameworks import framework
from tbadapters.core.messages import Message
from tbadapters.testing.turns import ModelTurn, Reply

stage = openai_agents_stage.stage
BALANCE = ("get_balance", {"account": "A-1"})


async def test_a_conversation_goes_on_over_turns(stage, attempt):
    """The second turn is sent with everything said, called and answered before it, history included."""
    history = (Message("Hello."), Message("Hello, how can I help?", "agent"))
    attempt.answers["get_balance"] = "12 EUR"
    async with stage(bank=["?", Reply(tool_calls=[BALANCE]), "You have 12 EUR.", "Bye."]) as on:
        agent = on.agent("bank", instructions="Be kind.")
        async with attempt.session(OpenAIAgentsAgent(agent), history=history) as session:
            first, second = await session.send(Message("My balance?")), await session.send(Message("Thanks."))
        last = on.seen("bank")[-1].messages
    assert (first, second) == (Said("You have 12 EUR."), Said("Bye."))
    assert [m.text for m in last if m.role in ("user", "tool")] == ["Hello.", "My balance?", "12 EUR", "Thanks."]
    assert [m.text for m in last if m.role == "agent" and m.text] == ["Hello, how can I help?", "You have 12 EUR."]
    assert attempt.called == [BALANCE]


async def test_usage_is_exact_by_request_and_actor(stage, attempt):
    """Each request's tokens are what the server counted, in order, under the name of the agent that asked."""
    async with stage(
        triage=[Reply(tool_calls=[("transfer_to_refunds", {})])],
        refunds=[
            "?",
            Reply(tool_calls=[BALANCE, BALANCE]),
            Reply(tool_calls=[("ask_clerk", {"input": "go"})]),
            "Done.",
        ],
        clerk=[Reply(tool_calls=[BALANCE]), "Checked."],
    ) as on:
        clerk = on.agent("clerk", tools=tools(attempt.tools))
        refunds = on.agent("refunds", tools=[*tools(attempt.tools), clerk.as_tool("ask_clerk", "Ask the clerk.")])
        async with attempt.session(OpenAIAgentsAgent(on.agent("triage", handoffs=[refunds]))) as session:
            assert await session.send(Message("Refund me.")) == Said("Done.")
        sent = [(e.model, e.usage) for e in on.server.requests]
        assert attempt.usage == on.server.totals
    assert [(r.model, r.usage) for r in attempt.requests] == sent
    assert [r.actor for r in attempt.requests] == [None, "refunds", "refunds", "clerk", "clerk", "refunds"]
    assert attempt.started == [r.actor for r in attempt.requests]
    assert [c.actor for c in attempt.calls] == ["refunds", "refunds", "clerk"]
    assert sum(usage.cached_input_tokens for _, usage in sent) > 0
    assert sum(usage.reasoning_tokens for _, usage in sent) > 0


@pytest.mark.parametrize("own", ["Own.", lambda c, a: "Own.", "async", None])
async def test_the_policy_is_told_beside_the_agents_own_instructions(stage, attempt, own):
    """Instructions of any kind are kept, the policy follows them, on every turn and after a handoff."""

    async def later(context, agent) -> str:
        return "Own."

    own = later if own == "async" else own
    async with stage(a=[Reply(tool_calls=[("transfer_to_b", {})])], b=["?", "One.", "Two."]) as on:
        root = on.agent("a", instructions=own, handoffs=[handoff(on.agent("b", instructions=own))])
        async with attempt.session(OpenAIAgentsAgent(root), instructions="Policy.") as session:
            await session.send(Message("Hi."))
            await session.send(Message("Again."))
        told = [m.text for turn in on.seen("a") + on.seen("b") for m in turn.messages if m.role == "system"]
    assert told == ["Own.\n\nPolicy." if own else "Policy."] * 3


async def test_without_a_policy_the_agent_stays_as_it_was_built(stage, attempt):
    """With no instructions in the brief nothing is added to the agent's own."""
    async with stage(a=["Hi."]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("a"))) as session:
            await session.send(Message("Hi."))
        assert [m.role for m in on.seen("a")[0].messages] == ["user"]


async def test_agents_in_a_circle_of_handoffs_all_get_the_tools(stage, attempt):
    """Agents built without tools get the suite's, across a circle; the next turn starts with the one that spoke last."""
    back = Reply(tool_calls=[("transfer_to_a", {})])
    async with stage(
        a=[Reply(tool_calls=[("transfer_to_b", {})]), "?", "?", Reply(tool_calls=[BALANCE]), "From a."],
        b=["?", Reply(tool_calls=[BALANCE]), back],
    ) as on:
        a, b = on.agent("a"), on.agent("b")
        a.handoffs, b.handoffs = [b], [handoff(a)]
        async with attempt.session(OpenAIAgentsAgent(a)) as session:
            assert await session.send(Message("Hi.")) == Said("From a.")
            on.server.requests.clear()
            await session.send(Message("And?"))
            assert on.server.requests[0].model == "a"
    assert [c.actor for c in attempt.calls[:2]] == ["b", None]
    assert "a handed off to b." in attempt.notes
    assert "b was given the suite's tools." in attempt.notes
    assert (a.tools, b.tools, a.handoffs) == ([], [], [b])


async def test_the_next_turn_goes_to_the_agent_that_spoke_last(stage, attempt):
    """After a handoff the user talks on with the agent that was handed to."""
    async with stage(a=[Reply(tool_calls=[("transfer_to_b", {})])], b=["?", "One.", "Two."]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("a", handoffs=[on.agent("b")]))) as session:
            assert [await session.send(Message(t)) for t in "xy"] == [Said("One."), Said("Two.")]
        assert [e.model for e in on.server.requests] == ["a", "b", "b"]


async def test_an_agent_inside_a_handoff_object_gets_the_tools(stage, attempt):
    """``handoff(agent, on_handoff=...)`` is gone through: its callback runs, its agent has the suite's tools."""
    handed = []
    async with stage(
        a=[Reply(tool_calls=[("transfer_to_b", {})])], b=["?", Reply(tool_calls=[BALANCE]), "Done."]
    ) as on:
        b = on.agent("b")
        a = on.agent("a", handoffs=[handoff(b, on_handoff=lambda context: handed.append("b"))])
        async with attempt.session(OpenAIAgentsAgent(a)) as session:
            assert await session.send(Message("Hi.")) == Said("Done.")
    assert handed == ["b"]
    assert [(c.name, c.actor) for c in attempt.calls] == [("get_balance", "b")]
    assert b.tools == []


async def test_a_sub_agent_as_a_tool_is_allowed_and_told_the_policy(stage, attempt):
    """An orchestrator keeps its sub-agents as its only tools; a sub-agent with suite tools acts in the trial."""
    async with stage(
        boss=[Reply(tool_calls=[("ask_clerk", {"input": "check"})]), "All done."],
        clerk=[Reply(tool_calls=[BALANCE]), "Checked."],
    ) as on:
        clerk = on.agent("clerk", instructions="Own.", tools=tools(attempt.tools))
        boss = on.agent("boss", tools=[clerk.as_tool("ask_clerk", "Ask.")])
        async with attempt.session(OpenAIAgentsAgent(boss), instructions="Policy.") as session:
            assert await session.send(Message("Hi.")) == Said("All done.")
        assert on.seen("boss")[0].offered == {"ask_clerk"}
        assert on.seen("clerk")[0].messages[0].text == "Own.\n\nPolicy."
    assert [(c.name, c.actor) for c in attempt.calls] == [("get_balance", "clerk")]


async def test_a_sub_agent_without_suite_tools_is_noted(stage, attempt):
    """A sub-agent that can't touch the records is not told the policy; the record says so, once."""
    asks = Reply(tool_calls=[("ask_clerk", {"input": "x"})])
    async with stage(boss=[asks, asks, "Done."], clerk=["Text."]) as on:
        boss = on.agent("boss", tools=[on.agent("clerk").as_tool("ask_clerk", "Ask.")])
        async with attempt.session(OpenAIAgentsAgent(boss), instructions="Policy.") as session:
            await session.send(Message("Hi."))
        assert [m.role for m in on.seen("clerk")[0].messages] == ["user"]
    assert attempt.notes == ["The sub-agent clerk has no suite tools and was not told the policy."]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_streaming_sub_agent_without_usage_is_noted(attempt, streams):
    """A sub-agent that streams chat completions has exact usage if its author asks for it; else None and a note."""
    async with staged("chat", boss=[Reply(tool_calls=[("ask_clerk", {"input": "x"})]), "Done."], clerk=["Text."]) as on:
        clerk = on.agent("clerk", model_settings=ModelSettings(include_usage=streams or None))
        boss = on.agent("boss", tools=[clerk.as_tool("ask_clerk", "Ask.", on_stream=lambda event: None)])
        async with attempt.session(OpenAIAgentsAgent(boss)) as session:
            await session.send(Message("Hi."))
        assert attempt.usage == on.server.totals
    assert [r.usage is None for r in attempt.requests] == [False, not streams, False]
    assert any("include_usage" in note for note in attempt.notes) is not streams


@pytest.mark.parametrize("agreed", [True, False])
async def test_calls_that_need_approval_wait_for_it(stage, attempt, agreed):
    """A call that needs approval is executed only when it is agreed to, and the conversation goes on either way."""
    call = ("close_account", {"account": "A-1"})
    async with stage(bank=[Reply(tool_calls=[call, BALANCE]), "Done.", "Bye."]) as on:
        async with attempt.session(OpenAIAgentsAgent(on.agent("bank"))) as session:
            asked = await session.send(Message("Close it."))
            assert isinstance(asked, NeedsApproval)
            (request,) = asked.calls
            assert request == ApprovalRequest(request.id, *call)
            assert call not in attempt.called
            assert await session.send(Approvals({request.id: agreed})) == Said("Done.")
            assert await session.send(Message("Bye.")) == Said("Bye.")
        assert attempt.usage == on.server.totals
        assert [m.text for m in on.seen("bank")[-1].messages if m.role == "user"] == ["Close it.", "Bye."]
    assert (call in attempt.called) is agreed
    assert attempt.called.count(BALANCE) == 1


async def test_a_sub_agents_call_waits_for_approval_too(stage, attempt):
    """Behind ``as_tool()`` a call that needs approval comes to the user, and runs once when it is agreed to."""
    call = ("close_account", {"account": "A-1"})
    async with stage(
        boss=[Reply(tool_calls=[("ask_clerk", {"input": "x"})]), "Done."], clerk=[Reply(tool_calls=[call]), "Closed."]
    ) as on:
        clerk = on.agent("clerk", tools=tools(attempt.tools))
        boss = on.agent("boss", tools=[clerk.as_tool("ask_clerk", "Ask.")])
        async with attempt.session(OpenAIAgentsAgent(boss)) as session:
            asked = await session.send(Message("Close it."))
            assert await session.send(Approvals({asked.calls[0].id: True})) == Said("Done.")
        assert attempt.usage == on.server.totals
    assert [(c.name, c.actor) for c in attempt.calls] == [("close_account", "clerk")]


class Decision(BaseModel):
    refund: bool
    amount: float


async def test_structured_output_is_answered_as_json(stage, attempt):
    """An agent with an output type answers with its JSON."""
    async with (
        stage(a=['{"refund": true, "amount": 2.5}']) as on,
        attempt.session(OpenAIAgentsAgent(on.agent("a", output_type=Decision))) as session,
    ):
        assert await session.send(Message("Hi.")) == Said('{"refund":true,"amount":2.5}')


@pytest.mark.parametrize("built", [True, False])
async def test_trials_of_one_shared_agent_never_mix(stage, new_attempt, built):
    """20 concurrent trials on one agent object: each sees its own calls, tokens and conversation only."""
    waiting, all_in = [], anyio.Event()

    async def meet(name: str) -> None:
        waiting.append(name)
        if len(waiting) == 20:
            all_in.set()
        await all_in.wait()

    def clerk(turn: ModelTurn) -> Reply | str:
        (user,) = [m.text for m in turn.messages if m.role == "user"]
        results = [m.text for m in turn.messages if m.role == "tool"]
        return results[-1] if len(results) == 2 else Reply(tool_calls=[("get_balance", {"account": user})])

    async def trial(on: Stage, agent: Agent, index: int) -> None:
        attempt = new_attempt(trial=TrialRef("t", index), before_call=meet)
        attempt.answers["get_balance"] = lambda name, arguments: f"seen {arguments['account']} by {index}"
        async with attempt.session(OpenAIAgentsAgent(agent)) as session:
            assert await session.send(Message(f"A-{index}")) == Said(f"seen A-{index} by {index}")
        assert attempt.called == [("get_balance", {"account": f"A-{index}"})]
        assert attempt.usage == on.server.usage_by_trial()["t", index]

    async with stage(a=[Reply(tool_calls=[("transfer_to_b", {})])], b=clerk) as on:
        given = tools(new_attempt().tools) if built else []
        agent = on.agent("a", handoffs=[on.agent("b", tools=given)])
        before = repr(agent)
        async with anyio.create_task_group() as group:
            for index in range(20):
                group.start_soon(trial, on, agent, index)
        assert repr(agent) == before


class Traces(agents.TracingProcessor):
    """Keeps the names of the traces that were begun."""

    def __init__(self) -> None:
        self.begun = []

    def on_trace_start(self, trace) -> None:
        self.begun.append(trace.name)

    def on_trace_end(self, trace) -> None: ...
    def on_span_start(self, span) -> None: ...
    def on_span_end(self, span) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


@pytest.mark.parametrize("tracing", [True, False])
async def test_tracing_is_off_unless_the_user_turns_it_on(stage, attempt, tracing):
    """No trace is begun without ``tracing=True``, sub-agents included."""
    traces = Traces()
    agents.set_trace_processors([traces])  # the SDK's own exporter stays out of this process from here on
    async with stage(boss=[Reply(tool_calls=[("ask_clerk", {"input": "x"})]), "Done."], clerk=["Text."]) as on:
        boss = on.agent("boss", tools=[on.agent("clerk").as_tool("ask_clerk", "Ask.")])
        async with attempt.session(OpenAIAgentsAgent(boss, tracing=tracing)) as session:
            await session.send(Message("Hi."))
    assert bool(traces.begun) is tracing


async def test_the_authors_filter_and_context_are_kept(stage, new_attempt):
    """A filter of model input in the run configuration still applies, and each attempt gets a context of its own."""
    contexts = []

    def shout(data) -> ModelInputData:
        contexts.append(data.context)
        return ModelInputData(input=data.model_data.input, instructions="Filtered.")

    async with stage(a=["Hi."]) as on:
        adapter = OpenAIAgentsAgent(on.agent("a"), run_config=RunConfig(call_model_input_filter=shout), context=list)
        for _ in range(2):
            async with new_attempt().session(adapter, instructions="Policy.") as session:
                await session.send(Message("Hi."))
        assert on.seen("a")[0].messages[0].text == "Filtered.\n\nPolicy."
    assert contexts == [[], []]
    assert contexts[0] is not contexts[1]


def test_a_bare_agent_is_known_by_its_type():
    """The entry point's framework accepts agents of the SDK and subclasses of them, and nothing else."""

    class Own(Agent):
        pass

    known = framework("openai-agents")
    assert known.matches(Own("x"))
    assert known.adapt(Agent("triage")).name == "triage"
    assert not known.matches(Agent)
    assert not known.matches("agents.Agent")


def test_bad_options_are_refused():
    """What is no agent, and a word that is not known, are refused in one sentence."""
    with pytest.raises(UsageError, match=r"takes an agents\.Agent, not str"):
        OpenAIAgentsAgent("agent")
    with pytest.raises(InvalidOption, match="tools='own'"):
        OpenAIAgentsAgent(Agent("a"), tools="own")


def test_without_the_sdk_its_extra_is_named(monkeypatch):
    """Asking for the suite's tools without the SDK names the extra that installs it."""
    monkeypatch.setitem(sys.modules, "agents", None)
    with pytest.raises(MissingFramework, match=r"tbadapters\[openai-agents\]"):
        tools([])


def test_importing_the_adapter_does_not_import_the_sdk():
    """The framework is known without paying for its import."""
    code = "import sys, tbadapters.adapters.openai_agents; sys.exit('agents' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
