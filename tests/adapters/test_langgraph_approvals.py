"""Interrupts of LangGraph graphs, answered by the user's approvals."""

from __future__ import annotations

from typing import Any

import pytest
from fake_attempt import CLOSE_ACCOUNT, TOOLS, FakeAttempt
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from langgraph_graphs import chat, react_graph

from tbadapters.adapters.langgraph import FRAMEWORK, LangGraphAgent
from tbadapters.core.agent import Approvals, NeedsApproval, Said
from tbadapters.core.errors import AgentFault
from tbadapters.core.messages import Message
from tbadapters.testing import FixedPolicy, Reply, ScriptedModelServer

BALANCE = ("get_balance", {"account": "A1"})
CLOSE = ("close_account", {"account": "A1"})
CLOSE_B = ("close_account", {"account": "B2"})
DENIED = "The user did not agree to this call."


def suite_tools() -> list[Any]:
    return FRAMEWORK.tools(TOOLS)


def asked(answer: object) -> list[tuple[str, dict[str, Any]]]:
    assert isinstance(answer, NeedsApproval)
    return [(call.tool, dict(call.arguments)) for call in answer.calls]


def all_of(answer: object, *, agreed: bool) -> Approvals:
    assert isinstance(answer, NeedsApproval)
    return Approvals({call.id: agreed for call in answer.calls})


@pytest.mark.parametrize("prebuilt", [True, False])
@pytest.mark.parametrize("agreed", [True, False])
async def test_a_suite_tool_that_needs_approval_waits_for_it(
    attempt: FakeAttempt, prebuilt: bool, agreed: bool
) -> None:
    """The call is executed once and only when agreed to, calls beside it once; the model is told of a denial."""
    script = FixedPolicy([Reply(tool_calls=[BALANCE, CLOSE]), "Done."])
    async with ScriptedModelServer(script) as server:
        build = create_agent if prebuilt else react_graph
        async with attempt.session(LangGraphAgent(build(chat(server), suite_tools()))) as session:
            waiting = await session.send(Message("Close it"))
            assert asked(waiting) == [CLOSE]
            assert CLOSE not in attempt.called
            assert await session.send(all_of(waiting, agreed=agreed)) == Said("Done.")
    assert attempt.called == ([BALANCE, CLOSE] if agreed else [BALANCE])
    results = [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
    assert results == ["ok", "ok" if agreed else DENIED]


@pytest.mark.parametrize("prebuilt", [True, False])
async def test_each_of_several_calls_gets_its_own_answer(attempt: FakeAttempt, prebuilt: bool) -> None:
    """Of two calls that wait, the one agreed to is executed and the other is not, whichever comes first."""
    script = FixedPolicy([Reply(tool_calls=[CLOSE, CLOSE_B]), "Done."])
    async with ScriptedModelServer(script) as server:
        build = create_agent if prebuilt else react_graph
        async with attempt.session(LangGraphAgent(build(chat(server), suite_tools()))) as session:
            answer = await session.send(Message("Close both"))
            while isinstance(answer, NeedsApproval):
                answer = await session.send(Approvals({c.id: c.arguments["account"] == "B2" for c in answer.calls}))
    assert answer == Said("Done.")
    assert attempt.called == [CLOSE_B]


async def test_a_second_turn_asks_again(attempt: FakeAttempt) -> None:
    """An approval is for one call: the same call in a later turn waits again."""
    script = FixedPolicy([Reply(tool_calls=[CLOSE]), "Closed.", Reply(tool_calls=[CLOSE]), "Closed again."])
    async with ScriptedModelServer(script) as server:
        agent = LangGraphAgent(create_agent(chat(server), suite_tools()))
        async with attempt.session(agent) as session:
            waiting = await session.send(Message("Close it"))
            assert await session.send(all_of(waiting, agreed=True)) == Said("Closed.")
            waiting = await session.send(Message("Once more"))
            assert asked(waiting) == [CLOSE]
            assert await session.send(all_of(waiting, agreed=False)) == Said("Closed again.")
    assert attempt.called == [CLOSE]


@pytest.mark.parametrize("agreed", [True, False])
async def test_the_human_in_the_loop_middleware_is_understood(attempt: FakeAttempt, agreed: bool) -> None:
    """LangChain's own middleware asks through the same approvals."""
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "Done."])) as server:
        middleware = [HumanInTheLoopMiddleware(interrupt_on={"get_balance": True})]
        agent = LangGraphAgent(create_agent(chat(server), suite_tools(), middleware=middleware))
        async with attempt.session(agent) as session:
            waiting = await session.send(Message("Balance?"))
            assert asked(waiting) == [BALANCE]
            assert await session.send(all_of(waiting, agreed=agreed)) == Said("Done.")
    assert attempt.called == ([BALANCE] if agreed else [])


@pytest.mark.parametrize("value", ["Shall I?", {"plan": "close"}])
async def test_any_other_interrupt_is_answered_with_true_or_false(attempt: FakeAttempt, value: Any) -> None:
    """``interrupt(anything)`` in a node is resumed with the decision."""

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"answer {interrupt(value)}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    async with attempt.session(LangGraphAgent(graph.compile(), tools="suite")) as session:
        waiting = await session.send(Message("Go"))
        assert asked(waiting) == [("interrupt", value if isinstance(value, dict) else {"value": value})]
        assert await session.send(all_of(waiting, agreed=True)) == Said("answer True")
        waiting = await session.send(Message("Go"))
        assert await session.send(all_of(waiting, agreed=False)) == Said("answer False")


@pytest.mark.parametrize("old_form", [[{"action_request": {"action": "wire", "args": {"to": "B"}}, "config": {}}]])
async def test_the_older_human_interrupt_is_understood(attempt: FakeAttempt, old_form: Any) -> None:
    """A ``HumanInterrupt`` is resumed with its own kind of answer."""

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(interrupt(old_form)[0]["type"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    async with attempt.session(LangGraphAgent(graph.compile(), tools="suite")) as session:
        waiting = await session.send(Message("Go"))
        assert asked(waiting) == [("wire", {"to": "B"})]
        assert await session.send(all_of(waiting, agreed=True)) == Said("accept")
        waiting = await session.send(Message("Go"))
        assert await session.send(all_of(waiting, agreed=False)) == Said("response")


@pytest.mark.parametrize("agreed", [True, False])
async def test_a_static_interrupt_before_the_tools_asks_for_the_calls(attempt: FakeAttempt, agreed: bool) -> None:
    """``interrupt_before=["tools"]`` asks for the pending calls; a denial is told to the model."""
    tools = FRAMEWORK.tools([tool for tool in TOOLS if tool is not CLOSE_ACCOUNT])
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "Done."])) as server:
        agent = LangGraphAgent(react_graph(chat(server), tools, interrupt_before=["tools"]))
        async with attempt.session(agent) as session:
            waiting = await session.send(Message("Balance?"))
            assert asked(waiting) == [BALANCE]
            assert await session.send(all_of(waiting, agreed=agreed)) == Said("Done.")
    assert attempt.called == ([BALANCE] if agreed else [])


async def test_a_static_interrupt_before_another_node_asks_for_the_node(attempt: FakeAttempt) -> None:
    """Where no call is pending the node itself is asked for; a denial ends the attempt by the agent's fault."""
    graph = StateGraph(MessagesState)
    graph.add_node("act", lambda _: {"messages": [AIMessage("acted")]})
    graph.add_edge(START, "act")
    agent = LangGraphAgent(graph.compile(interrupt_before=["act"]), tools="suite")
    async with attempt.session(agent) as session:
        waiting = await session.send(Message("Go"))
        assert asked(waiting) == [("act", {})]
        assert await session.send(all_of(waiting, agreed=True)) == Said("acted")
        waiting = await session.send(Message("Go"))
        with pytest.raises(AgentFault, match="did not agree to act"):
            await session.send(all_of(waiting, agreed=False))
