"""How LangGraph runs end abnormally, and whose fault each end is."""

from __future__ import annotations

from typing import Any

import pytest
from blockbuster import BlockBuster
from fake_attempt import TOOLS, FakeAttempt
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph_graphs import chat, react_graph

from tbadapters.adapters.langgraph import FRAMEWORK, LangGraphAgent
from tbadapters.core.agent import Said
from tbadapters.core.errors import (
    AccessFault,
    AgentFault,
    Fault,
    LimitReached,
    NoRunningTrial,
    ProviderFault,
    SandboxFault,
)
from tbadapters.core.messages import Message
from tbadapters.testing import Faults, FixedPolicy, Reply, ScriptedModelServer

BALANCE = ("get_balance", {"account": "A1"})
LOOP = FixedPolicy([Reply(tool_calls=[BALANCE])])


def suite_tools() -> list[Any]:
    return FRAMEWORK.tools(TOOLS)


async def fault_of(attempt: FakeAttempt, agent: LangGraphAgent) -> Fault:
    async with attempt.session(agent) as session:
        with pytest.raises(Fault) as caught:
            await session.send(Message("Balance?"))
    return caught.value


@pytest.mark.parametrize(
    ("kind", "fault", "code"),
    [
        ("rate_limit", ProviderFault, "rate_limit"),
        ("server_error", ProviderFault, "server_error"),
        ("overloaded", ProviderFault, "server_error"),
        ("request_timeout", ProviderFault, "timeout"),
        ("conflict", ProviderFault, "conflict"),
        ("quota", AccessFault, "insufficient_quota"),
        ("forbidden", AccessFault, "permission"),
        ("context_length", AgentFault, "context_length_exceeded"),
    ],
)
async def test_an_error_answer_of_the_provider_has_its_owner(
    attempt: FakeAttempt, kind: str, fault: type[Fault], code: str
) -> None:
    """Each error status is the fault of its owner, recorded as a request without tokens."""
    async with ScriptedModelServer(FixedPolicy(["Hi."]), faults=lambda _: kind) as server:  # type: ignore[arg-type,return-value]
        raised = await fault_of(attempt, LangGraphAgent(create_agent(chat(server), suite_tools())))
    assert type(raised) is fault
    assert raised.code == code
    assert [(r.usage, r.model) for r in attempt.requests] == [(None, "scripted")]
    assert attempt.faults == [raised]
    assert (raised.retry_after == pytest.approx(0.02)) == (kind == "rate_limit")


@pytest.mark.parametrize(
    ("options", "code"),
    [({"api_key": "other"}, "invalid_api_key"), ({"missing_models": ["scripted"]}, "model_not_found")],
)
async def test_a_wrong_key_or_model_stops_the_run(attempt: FakeAttempt, options: dict[str, Any], code: str) -> None:
    """A wrong key and a missing model are faults of access: another attempt can't help."""
    async with ScriptedModelServer(FixedPolicy(["Hi."]), **options) as server:
        raised = await fault_of(attempt, LangGraphAgent(create_agent(chat(server), suite_tools())))
    assert type(raised) is AccessFault
    assert raised.code == code


async def test_a_model_that_is_silent_or_gone_is_the_providers(attempt: FakeAttempt) -> None:
    """Timeout, refused connection and a stream cut in the middle are the provider's faults."""
    async with ScriptedModelServer(FixedPolicy(["Hi."]), faults=Faults(timeout=1.0, stall_seconds=5)) as server:
        agent = LangGraphAgent(create_agent(chat(server, timeout=0.2), suite_tools()))
        assert (type(raised := await fault_of(attempt, agent)), raised.code) == (ProviderFault, "timeout")
        gone = LangGraphAgent(create_agent(chat(server), suite_tools()))
    assert (type(raised := await fault_of(attempt, gone)), raised.code) == (ProviderFault, "connection")
    async with ScriptedModelServer(FixedPolicy(["Hi."]), faults=lambda _: "cut_stream") as server:
        agent = LangGraphAgent(react_graph(chat(server), suite_tools(), streamed=True))
        assert (type(raised := await fault_of(attempt, agent)), raised.code) == (ProviderFault, "connection")


async def test_a_fault_that_the_author_recovers_from_is_recorded_but_ends_nothing(attempt: FakeAttempt) -> None:
    """A model with a fallback answers; the first request stays in the record with its fault."""
    faults = {0: "server_error"}
    async with ScriptedModelServer(FixedPolicy(["Hi."]), faults=faults.get) as server:  # type: ignore[arg-type]
        model = chat(server).with_fallbacks([chat(server, "spare")])

        async def ask(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("ask", ask)
        graph.add_edge(START, "ask")
        async with attempt.session(LangGraphAgent(graph.compile(), tools="suite")) as session:
            assert await session.send(Message("Hello")) == Said("Hi.")
    assert [(r.model, r.usage is None, r.fault is None) for r in attempt.requests] == [
        ("scripted", True, False),
        ("spare", False, True),
    ]
    assert attempt.usage == server.totals


@pytest.mark.parametrize("sync", [False, True])
async def test_a_limit_that_is_reached_ends_the_run(
    attempt: FakeAttempt, sync: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """No model request is made beyond the limit, in async and sync graphs; the limit is raised and logged nowhere."""
    attempt.max_requests = 3
    async with ScriptedModelServer(LOOP) as server:
        raised = await fault_of(attempt, LangGraphAgent(react_graph(chat(server), suite_tools(), sync=sync)))
    assert isinstance(raised, LimitReached)
    assert raised.code == "model_requests"
    assert len(server.requests) == 3
    assert attempt.usage == server.totals
    assert "LimitReached" not in caplog.text


async def test_a_limit_that_the_author_swallows_still_ends_the_turn(attempt: FakeAttempt) -> None:
    """An ``except Exception`` around the model does not turn a limit into an answer."""
    attempt.max_requests = 1

    async with ScriptedModelServer(FixedPolicy(["Hi."])) as server:
        model = chat(server)

        async def ask(state: MessagesState) -> dict[str, Any]:
            for _ in range(2):
                try:
                    await model.ainvoke(state["messages"])
                except Exception:  # noqa: BLE001  # what authors write
                    return {"messages": [AIMessage("Sorry, something went wrong.")]}
            return {"messages": [AIMessage("never")]}

        graph = StateGraph(MessagesState)
        graph.add_node("ask", ask)
        graph.add_edge(START, "ask")
        raised = await fault_of(attempt, LangGraphAgent(graph.compile(), tools="suite"))
    assert isinstance(raised, LimitReached)


async def test_a_sandbox_that_dies_is_not_the_agents_fault(attempt: FakeAttempt) -> None:
    """A sandbox's fault passes, even through a tool node that turns every error into a message."""
    attempt.answers["get_balance"] = SandboxFault("The database is gone.")
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "Sorry."])) as server:
        agent = LangGraphAgent(create_agent(chat(server), suite_tools()))
        assert type(await fault_of(attempt, agent)) is SandboxFault
        model = chat(server).bind_tools(suite_tools())

        async def ask(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("ask", ask)
        graph.add_node("tools", ToolNode(suite_tools(), handle_tool_errors=True))
        graph.add_edge(START, "ask")
        graph.add_edge("ask", "tools")
        assert type(await fault_of(attempt, LangGraphAgent(graph.compile()))) is SandboxFault


async def test_an_exception_in_the_agents_own_code_is_its_fault(attempt: FakeAttempt) -> None:
    """What a node raises is the agent's fault, in one line."""

    def broken(state: MessagesState) -> dict[str, Any]:
        raise KeyError("customer")

    graph = StateGraph(MessagesState)
    graph.add_node("broken", broken)
    graph.add_edge(START, "broken")
    raised = await fault_of(attempt, LangGraphAgent(graph.compile(), tools="suite"))
    assert type(raised) is AgentFault
    assert str(raised) == "KeyError: 'customer'"


async def test_a_graph_invoked_synchronously_in_an_async_node_is_told_so_instead_of_hanging(
    attempt: FakeAttempt, unblocked_loop: BlockBuster
) -> None:
    """Its tool calls would wait for the loop that waits for them; the sentence says what to write."""
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "Done."])) as server:
        unblocked_loop.deactivate()
        model = chat(server)
        inner = create_agent(model, suite_tools())

        async def work(state: MessagesState) -> dict[str, Any]:
            return {"messages": inner.invoke({"messages": state["messages"]})["messages"]}  # type: ignore[arg-type,dict-item]

        graph = StateGraph(MessagesState)
        graph.add_node("work", work)
        graph.add_edge(START, "work")
        raised = await fault_of(attempt, LangGraphAgent(graph.compile(), tools="suite"))
        model.root_client.close()
    assert (type(raised), raised.code) == (AgentFault, "blocked_loop"), raised
    assert "await graph.ainvoke" in str(raised)
    assert len(attempt.notes) == 1
    assert "calls its model synchronously in async code" in attempt.notes[0]


async def test_the_frameworks_own_step_limit_is_above_ours_unless_the_author_sets_it(attempt: FakeAttempt) -> None:
    """LangGraph's recursion limit ends nothing by itself; an author's own is the agent's fault, by name."""
    attempt.max_requests = 40
    async with ScriptedModelServer(LOOP) as server:
        graph = react_graph(chat(server), suite_tools()).with_config({"recursion_limit": 10})
        assert isinstance(await fault_of(attempt, LangGraphAgent(graph)), LimitReached)
        assert len(server.requests) == 40
        attempt.max_requests = None
        raised = await fault_of(attempt, LangGraphAgent(graph, config={"recursion_limit": 6}))
    assert type(raised) is AgentFault
    assert raised.code == "recursion_limit"


async def test_a_graph_that_answers_nothing_is_told_so(attempt: FakeAttempt) -> None:
    """A graph without an answer of the agent's fails by the agent's fault."""
    graph = StateGraph(MessagesState)
    graph.add_node("silent", lambda _: {})
    graph.add_edge(START, "silent")
    raised = await fault_of(attempt, LangGraphAgent(graph.compile(), tools="suite"))
    assert (type(raised), raised.code) == (AgentFault, "no_answer")


async def test_a_suite_tool_outside_a_trial_refuses() -> None:
    """Called outside ``evaluate()`` a suite's tool says so instead of acting on anything."""
    with pytest.raises(NoRunningTrial, match="get_balance"):
        await suite_tools()[0].ainvoke({"account": "A1"})
