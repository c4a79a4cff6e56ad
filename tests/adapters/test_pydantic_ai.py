"""The PydanticAI adapter, through the real clients against the scripted model server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import anyio
import pydantic_ai_lab
import pytest
from fake_attempt import TOOLS, FakeAttempt, make_tool
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, RunContext
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import ProcessEventStream
from pydantic_ai_lab import BALANCE, CLOSE, WIRES, system_texts

from tbadapters.adapters.pydantic_ai import FRAMEWORK, PydanticAIAgent
from tbadapters.core.agent import Approvals, NeedsApproval, Said
from tbadapters.core.context import TrialRef
from tbadapters.core.errors import LimitReached, SandboxFault
from tbadapters.core.messages import Message, Usage
from tbadapters.core.tools import ToolResult
from tbadapters.testing import FixedPolicy, ModelTurn, Reply

lab = pydantic_ai_lab.lab


@pytest.mark.parametrize("wire", WIRES)
async def test_an_agent_without_tools_gets_the_suites(lab, attempt, wire):
    """An agent that brings no tool calls the suite's, schema as given, and its calls reach the attempt."""
    here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE]), "It is 3."]))
    attempt.answers["get_balance"] = "3"
    async with attempt.session(PydanticAIAgent(Agent(here.model(wire)))) as session:
        assert await session.send(Message("How much?")) == Said("It is 3.")
    assert attempt.called == [BALANCE]
    assert {t.name: t.parameters for t in here.shown[0].tools} == {t.name: t.parameters for t in TOOLS}
    assert '"strict": true' not in json.dumps(here.shown[0].body["tools"])
    assert here.shown[1].messages[-1].text == "3"


@pytest.mark.parametrize("wire", WIRES)
async def test_turns_go_on_and_the_policy_stays(lab, attempt, wire):
    """Every turn shows the model the earlier ones, and the agent's instructions and the policy once each."""
    here = await lab(FixedPolicy(["First.", Reply(tool_calls=[BALANCE]), "Second.", "Third."]))
    agent = Agent(here.model(wire), instructions="Be kind.")
    async with attempt.session(PydanticAIAgent(agent), instructions="No refunds.") as session:
        said = [await session.send(Message(text)) for text in ("one", "two", "three")]
    assert said == [Said("First."), Said("Second."), Said("Third.")]
    for turn in here.shown:
        assert system_texts(turn).count("Be kind.") == 1
        assert system_texts(turn).count("No refunds.") == 1
    users = [m.text for m in here.shown[-1].messages if m.role == "user"]
    assert users == ["one", "two", "three"]


async def test_a_history_from_before_the_trial_is_shown_beside_the_system_prompt(lab, attempt):
    """What was said before the trial comes before the first turn, and the author's system prompt is not lost by it."""
    here = await lab(FixedPolicy(["Never shown.", "Hello again."]))
    history = (Message("Customer is blind.", "system"), Message("Hi", "user"), Message("Hello.", "agent"))
    agent = Agent(here.model(), system_prompt="I am Ada.")
    async with attempt.session(PydanticAIAgent(agent), instructions="Rules.", history=history) as session:
        assert await session.send(Message("Me again")) == Said("Hello again.")
    (turn,) = here.shown
    assert [(m.role, m.text) for m in turn.messages if m.role != "system"] == [
        ("user", "Hi"),
        ("agent", "Hello."),
        ("user", "Me again"),
    ]
    for text in ("I am Ada.", "Rules.", "Customer is blind."):
        assert system_texts(turn).count(text) == 1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("streamed", [False, True])
async def test_usage_is_exact(lab, attempt, wire, streamed):
    """The recorded tokens, cached and reasoning ones too, are those that the server told, whole or streamed."""

    async def watch(_ctx: Any, events: Any) -> None:
        async for _ in events:
            pass

    here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE, BALANCE]), "One.", Reply(tool_calls=[BALANCE]), "Two."]))
    agent = Agent(here.model(wire), capabilities=[ProcessEventStream(watch)] if streamed else [])
    async with attempt.session(PydanticAIAgent(agent)) as session:
        await session.send(Message("one"))
        await session.send(Message("two"))
    assert {turn.stream for turn in here.shown} == {streamed}
    assert attempt.usage == here.server.totals
    assert attempt.usage.cached_input_tokens > 0
    assert attempt.usage.reasoning_tokens > 0
    assert [r.usage for r in attempt.requests] == [e.usage for e in here.server.requests]
    assert attempt.started == [None] * 4
    assert {r.model for r in attempt.requests} == {"scripted"}
    assert attempt.notes == []


async def test_usage_survives_a_run_that_raises(lab, attempt):
    """Requests that were answered before a run fails are recorded with their tokens."""
    here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE]), Reply(fault="context_length")]))
    async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
        with pytest.raises(Exception, match="maximum context length"):
            await session.send(Message("one"))
    assert attempt.usage == here.server.totals != Usage()
    assert [r.usage is None for r in attempt.requests] == [False, True]


async def test_a_shared_agent_serves_concurrent_trials_without_cross_talk(lab, new_attempt):
    """Twenty concurrent trials on one agent object: each attempt sees its own calls, tokens and answers only."""

    def policy(turn: ModelTurn) -> Reply:
        mine = next(m.text for m in turn.messages if m.role == "user")
        if turn.replies < 3:
            return Reply(tool_calls=[("get_balance", {"account": f"{mine}-{turn.replies}"})])
        return Reply(text=f"{mine}: {turn.messages[-1].text}")

    here = await lab(policy)
    agent = Agent(here.model(), instructions="Be kind.")
    adapter = PydanticAIAgent(agent)
    answers: dict[int, str] = {}
    attempts: dict[int, FakeAttempt] = {}
    together = anyio.Semaphore(0)

    async def trial(index: int) -> None:
        async def wait(_name: str) -> None:  # until calls of every trial are under way
            together.release()
            if together.value >= 20:
                everyone.set()
            await everyone.wait()

        attempts[index] = new_attempt(
            trial=TrialRef("t", index), answers={"get_balance": lambda _n, a: f"of {a['account']}"}, before_call=wait
        )
        async with attempts[index].session(adapter) as session:
            answers[index] = (await session.send(Message(f"user{index}"))).text

    everyone = anyio.Event()
    async with anyio.create_task_group() as group:
        for index in range(20):
            group.start_soon(trial, index)
    for index in range(20):
        assert [a["account"] for _, a in attempts[index].called] == [f"user{index}-{n}" for n in range(3)]
        assert answers[index] == f"user{index}: of user{index}-2"
        assert attempts[index].usage == here.server.usage_by_trial()["t", index]
    assert len(agent.toolsets[0].tools) == 0


async def test_an_error_of_a_tool_is_told_to_the_model(lab, attempt):
    """A tool's error is text that the model reads; it may err as often as it likes and go on."""
    here = await lab(FixedPolicy([*[Reply(tool_calls=[BALANCE])] * 4, "Sorry."]))
    attempt.answers["get_balance"] = ToolResult("There is no account 'A'.", is_error=True)
    async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
        assert await session.send(Message("How much?")) == Said("Sorry.")
    assert len(attempt.called) == 4
    assert "There is no account 'A'." in here.shown[-1].messages[-1].text


@pytest.mark.parametrize("fault", [SandboxFault("It died."), LimitReached("tool_calls", 1)])
async def test_a_fault_in_a_tool_passes_as_it_is(lab, attempt, fault):
    """What ends an attempt inside a tool leaves the agent unchanged and is not shown to the model."""
    here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE]), "Never."]))
    attempt.answers["get_balance"] = fault
    async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
        with pytest.raises(type(fault)) as raised:
            await session.send(Message("How much?"))
    assert raised.value is fault
    assert len(here.shown) == 1


async def test_the_limit_on_model_requests_stops_a_loop_without_end(lab, attempt):
    """A model that calls tools for ever is stopped by the recorder's limit, not by the framework's own of 50."""
    here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE])]))
    attempt.max_requests = 60
    async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
        with pytest.raises(LimitReached, match="60 model_requests"):
            await session.send(Message("How much?"))
    assert len(here.shown) == len(attempt.called) == 60


async def test_a_cancelled_request_is_started_and_never_ended(lab, attempt):
    """A request that is cancelled while it waits is not recorded as ended: so the core sees a stalled endpoint."""
    here = await lab(FixedPolicy([Reply(fault="timeout")]))
    async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
        with anyio.move_on_after(0.2) as scope:
            await session.send(Message("Hello?"))
    assert scope.cancelled_caught
    assert (attempt.started, attempt.requests) == ([None], [])


class TestApprovals:
    @pytest.mark.parametrize("wire", WIRES)
    async def test_a_call_waits_for_approval_and_is_executed_after_it(self, lab, attempt, wire):
        """A tool that needs approval is executed only once it is approved, its sibling at once."""
        here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE, CLOSE]), "Closed."]))
        async with attempt.session(PydanticAIAgent(Agent(here.model(wire)))) as session:
            asked = await session.send(Message("Close it"))
            assert isinstance(asked, NeedsApproval)
            assert [(c.tool, c.arguments) for c in asked.calls] == [CLOSE]
            assert attempt.called == [BALANCE]
            assert await session.send(Approvals({asked.calls[0].id: True})) == Said("Closed.")
        assert attempt.called == [BALANCE, CLOSE]
        assert attempt.usage == here.server.totals

    async def test_a_declined_call_is_never_executed(self, lab, attempt):
        """A declined call does not reach the backend, and the model is told so."""
        here = await lab(FixedPolicy([Reply(tool_calls=[CLOSE]), "Left open."]))
        async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
            asked = await session.send(Message("Close it"))
            assert await session.send(Approvals({asked.calls[0].id: False})) == Said("Left open.")
        assert attempt.called == []
        assert "denied" in here.shown[-1].messages[-1].text

    async def test_a_message_instead_of_an_answer_declines(self, lab, attempt):
        """A user who goes on talking has not agreed to what waits."""
        here = await lab(FixedPolicy([Reply(tool_calls=[CLOSE]), "Left open."]))
        async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
            await session.send(Message("Close it"))
            assert await session.send(Message("Wait, no")) == Said("Left open.")
        assert attempt.called == []
        assert here.shown[-1].messages[-1].text == "Wait, no"

    async def test_an_author_who_handles_approvals_is_left_alone(self, lab, attempt):
        """An agent whose output type already allows for approvals keeps it, structured output beside it."""

        class Done(BaseModel):
            closed: bool

        here = await lab(
            FixedPolicy([Reply(tool_calls=[CLOSE]), Reply(tool_calls=[("final_result", {"closed": True})])])
        )
        agent = Agent(here.model(), output_type=[Done, DeferredToolRequests])
        async with attempt.session(PydanticAIAgent(agent)) as session:
            asked = await session.send(Message("Close it"))
            assert await session.send(Approvals({asked.calls[0].id: True})) == Said('{"closed":true}')


async def test_structured_output_is_said_as_json(lab, attempt):
    """An agent with an output type of its own answers with that as JSON."""

    class Answer(BaseModel):
        amount: int

    here = await lab(FixedPolicy([Reply(tool_calls=[("final_result", {"amount": 3})])]))
    async with attempt.session(PydanticAIAgent(Agent(here.model(), output_type=Answer))) as session:
        assert await session.send(Message("How much?")) == Said('{"amount":3}')


async def test_deps_are_made_afresh_for_each_attempt(lab, new_attempt):
    """deps_factory is called once an attempt, with its brief, and its deps reach every turn."""
    here = await lab(FixedPolicy(["One.", "Two."]))
    made: list[str] = []

    async def make(brief: Any) -> dict[str, str]:
        made.append(brief.id)
        return {"id": brief.id}

    agent = Agent(here.model(), deps_type=dict)

    @agent.instructions
    def show(ctx: RunContext[dict[str, str]]) -> str:
        return f"deps {ctx.deps['id']}"

    for index in range(2):
        async with new_attempt(trial=TrialRef("t", index)).session(
            PydanticAIAgent(agent, deps_factory=make)
        ) as session:
            await session.send(Message("one"))
            await session.send(Message("two"))
    assert len(set(made)) == 2
    assert [system_texts(turn) for turn in here.shown] == [f"deps {i}" for i in (made[0], made[0], made[1], made[1])]


async def test_model_settings_reach_the_model(lab, attempt):
    """model_settings of the adapter are sent with every request."""
    here = await lab(FixedPolicy(["Hi."]))
    adapter = PydanticAIAgent(Agent(here.model()), model_settings={"temperature": 0.25})
    async with attempt.session(adapter) as session:
        await session.send(Message("Hi"))
    assert here.server.requests[0].body["temperature"] == 0.25


class TestBuiltWithTheSuitesTools:
    async def test_tools_given_at_build_time_find_the_running_attempt(self, lab, attempt):
        """An agent that was built with some of the suite's tools has exactly those, and they reach the attempt."""
        here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE]), "3."]))
        some = [tool for tool in FRAMEWORK.tools(TOOLS) if tool.name != "transfer"]
        async with attempt.session(PydanticAIAgent(Agent(here.model(), tools=some))) as session:
            assert await session.send(Message("How much?")) == Said("3.")
        assert attempt.called == [BALANCE]
        assert here.shown[0].offered == {"get_balance", "close_account"}

    async def test_they_work_as_a_toolset_too(self, lab, attempt):
        """The suite's tools are recognised inside the author's own nested toolsets, whatever he calls them."""
        here = await lab(FixedPolicy([Reply(tool_calls=[("bank_get_balance", {"account": "A"})]), "3."]))
        nested = FunctionToolset(FRAMEWORK.tools(TOOLS)).prefixed("bank")
        async with attempt.session(PydanticAIAgent(Agent(here.model(), toolsets=[nested]))) as session:
            assert await session.send(Message("How much?")) == Said("3.")
        assert attempt.called == [BALANCE]

    async def test_approvals_work_for_them(self, lab, attempt):
        """A tool that needs approval asks for it when it was given at build time, too."""
        here = await lab(FixedPolicy([Reply(tool_calls=[CLOSE]), "Closed."]))
        async with attempt.session(PydanticAIAgent(Agent(here.model(), tools=FRAMEWORK.tools(TOOLS)))) as session:
            asked = await session.send(Message("Close it"))
            assert await session.send(Approvals({asked.calls[0].id: True})) == Said("Closed.")
        assert attempt.called == [CLOSE]


async def test_arguments_of_any_name_arrive(lab, attempt):
    """A tool may have arguments that are named like our own parameters."""
    odd = make_tool("odd", ctx="string", self="string", arguments="string", tool="string")
    arguments = {"ctx": "a", "self": "b", "arguments": "c", "tool": "d"}
    here = await lab(FixedPolicy([Reply(tool_calls=[("odd", arguments)]), "Done."]))
    attempt.tools = (odd,)
    async with attempt.session(PydanticAIAgent(Agent(here.model()))) as session:
        assert await session.send(Message("Do")) == Said("Done.")
    assert attempt.called == [("odd", arguments)]


async def test_a_wrapped_agent_is_itself(lab, attempt):
    """A WrapperAgent is driven like the agent in it, and its calls are the agent's own, not a sub-agent's."""
    here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE]), "3."]))
    wrapped = WrapperAgent(Agent(here.model(), name="inner"))
    async with attempt.session(PydanticAIAgent(wrapped)) as session:
        assert await session.send(Message("How much?")) == Said("3.")
    assert [call.actor for call in attempt.calls] == [None]


async def test_the_agent_is_left_as_it_was(lab, attempt):
    """Nothing of a trial stays in the author's agent: no tool, no name."""
    here = await lab(FixedPolicy([Reply(tool_calls=[BALANCE]), "3."]))
    agent = Agent(here.model())
    async with attempt.session(PydanticAIAgent(agent)) as session:
        await session.send(Message("How much?"))
    assert agent.name is None
    assert [list(toolset.tools) for toolset in agent.toolsets] == [[]]


def test_the_adapter_is_found_without_importing_the_framework():
    """Loading the entry point and asking whether it matches does not import PydanticAI."""
    code = (
        "import sys\n"
        "from tbadapters.core.frameworks import framework\n"
        "found = framework('pydantic-ai')\n"
        "assert not found.matches(object())\n"
        "assert 'pydantic_ai' not in sys.modules\n"
        "sys.modules['pydantic_ai'] = None\n"
        "from tbadapters.core.errors import MissingFramework\n"
        "try:\n    found.tools([])\n"
        "except MissingFramework as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert "pip install 'tbadapters[pydantic-ai]'" in done.stdout


async def test_matches_agents_only(lab):
    """Agents and wrapped agents are recognised; a model is not."""
    here = await lab(FixedPolicy(["x"]))
    agent = Agent(here.model())
    assert FRAMEWORK.matches(agent)
    assert FRAMEWORK.matches(WrapperAgent(agent))
    assert not FRAMEWORK.matches(here.model())
