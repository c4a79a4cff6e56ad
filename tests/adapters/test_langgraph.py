"""LangGraph graphs, driven through the real client against a scripted model."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, TypedDict

import anyio
import pytest
from fake_attempt import CLOSE_ACCOUNT, GET_BALANCE, TOOLS, TRANSFER, FakeAttempt, make_tool
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph_graphs import chat, custom_state_graph, overwriting_graph, react_graph

from tbadapters.adapters.langgraph import FRAMEWORK, LangGraphAgent
from tbadapters.core.agent import Said
from tbadapters.core.context import TrialRef
from tbadapters.core.errors import AgentFault
from tbadapters.core.messages import Message
from tbadapters.core.tools import ToolResult
from tbadapters.testing import FixedPolicy, ModelTurn, Reply, ScriptedModelServer

BALANCE = ("get_balance", {"account": "A1"})
MOVE = ("transfer", {"source": "A1", "target": "B2", "amount": 25})
POLICY = "Policy: never move more than 100."


def suite_tools() -> list[Any]:
    return FRAMEWORK.tools(TOOLS)


async def test_a_prebuilt_agent_answers_and_its_calls_reach_the_sandbox(attempt: FakeAttempt) -> None:
    """The suite's tools of a compiled graph act on the running trial, and their results reach the model."""
    attempt.answers["get_balance"] = "120.50"
    script = FixedPolicy([Reply(tool_calls=[BALANCE]), Reply(tool_calls=[MOVE]), "Moved 25."])
    async with ScriptedModelServer(script) as server:
        agent = FRAMEWORK.adapt(create_agent(chat(server), suite_tools()))
        async with attempt.session(agent) as session:
            said = await session.send(Message("Move 25 to B2"))
    assert said == Said("Moved 25.")
    assert attempt.called == [BALANCE, MOVE]
    results = [m["content"] for m in server.requests[-1].body["messages"] if m["role"] == "tool"]
    assert results == ["120.50", "ok"]


@pytest.mark.parametrize("sync", [False, True])
async def test_a_hand_written_graph_works_with_async_and_sync_nodes(attempt: FakeAttempt, sync: bool) -> None:
    """Sync nodes, run in worker threads by LangGraph, find the trial and are recorded as async ones are."""
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "Done."])) as server:
        agent = LangGraphAgent(react_graph(chat(server), suite_tools(), sync=sync))
        async with attempt.session(agent) as session:
            assert await session.send(Message("Balance?")) == Said("Done.")
    assert attempt.called == [BALANCE]
    assert attempt.usage == server.totals
    assert len(attempt.requests) == len(attempt.started) == 2


async def test_sync_tool_calls_from_a_node_of_the_authors_own(attempt: FakeAttempt) -> None:
    """``tool.invoke`` in a sync node executes in the sandbox."""
    tools = {tool.name: tool for tool in suite_tools()}
    threads: set[str] = set()

    def work(state: MessagesState) -> dict[str, Any]:
        threads.add(threading.current_thread().name)
        return {"messages": [AIMessage(tools["get_balance"].invoke({"account": "A1"}))]}

    graph = StateGraph(MessagesState)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    attempt.answers["get_balance"] = "7"
    async with attempt.session(LangGraphAgent(graph.compile(), tools="suite")) as session:
        assert await session.send(Message("Balance?")) == Said("7")
    assert attempt.called == [BALANCE]
    assert threading.main_thread().name not in threads


async def test_the_conversation_is_kept_over_turns_without_the_authors_doing(attempt: FakeAttempt) -> None:
    """A graph without a checkpointer remembers the earlier turns of its trial, the policy and the history."""
    async with ScriptedModelServer(FixedPolicy(["Which account?", Reply(tool_calls=[BALANCE]), "120."])) as server:
        agent = LangGraphAgent(create_agent(chat(server), suite_tools(), system_prompt="You are a teller."))
        history = (Message("Hello."), Message("Hello, I am Ada.", "agent"))
        async with attempt.session(agent, instructions=POLICY, history=history) as session:
            # The history's answer counts as one reply of the scripted model.
            assert await session.send(Message("Balance?")) == Said("120.")
            assert await session.send(Message("And now?")) == Said("120.")
    sent = server.requests[-1].body["messages"]
    texts = [(m["role"], m["content"]) for m in sent if m["role"] != "tool" and m["content"]]
    assert texts == [
        ("system", "You are a teller."),
        ("system", POLICY),
        ("user", "Hello."),
        ("assistant", "Hello, I am Ada."),
        ("user", "Balance?"),
        ("assistant", "120."),
        ("user", "And now?"),
    ]
    assert attempt.notes == []


async def test_a_graph_whose_messages_are_overwritten_is_given_all_of_them(attempt: FakeAttempt) -> None:
    """Where ``messages`` has no reducer, the earlier turns are sent again, as its caller would."""
    async with ScriptedModelServer(FixedPolicy(["One.", "Two."])) as server:
        agent = LangGraphAgent(overwriting_graph(chat(server)), tools="suite")
        async with attempt.session(agent, instructions=POLICY) as session:
            assert await session.send(Message("First")) == Said("One.")
            assert await session.send(Message("Second")) == Said("Two.")
    sent = [m["content"] for m in server.requests[-1].body["messages"]]
    assert sent == ["Be brief.", POLICY, "First", "One.", "Second"]


async def test_a_custom_state_is_served_by_input_and_output(attempt: FakeAttempt) -> None:
    """A graph without ``messages`` runs by the author's input and output functions and keeps its state over turns."""
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "120.", "Bye."])) as server:
        agent = LangGraphAgent(
            custom_state_graph(chat(server), suite_tools()),
            input=lambda message, brief: {"question": f"{brief.instructions} {message}"},
            output=lambda state: f"{state['answer']} (turn {state['turns']})",
        )
        async with attempt.session(agent, instructions=POLICY) as session:
            assert await session.send(Message("Balance?")) == Said("120. (turn 1)")
            assert await session.send(Message("Thanks")) == Said("Bye. (turn 2)")
    sent = server.requests[-1].body["messages"]
    assert [m["content"] for m in sent if m["role"] == "user"] == [f"{POLICY} Balance?", f"{POLICY} Thanks"]


async def test_state_that_can_not_be_serialized_is_kept(attempt: FakeAttempt) -> None:
    """A client or a lock in the state does not stop the conversation from being kept."""

    class WithLock(MessagesState):
        lock: Any
        seen: int

    def work(state: WithLock) -> dict[str, Any]:
        lock = state.get("lock") or threading.Lock()
        with lock:
            seen = state.get("seen", 0) + 1
            return {"lock": lock, "seen": seen, "messages": [AIMessage(f"turn {seen}")]}

    graph = StateGraph(WithLock)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    async with attempt.session(LangGraphAgent(graph.compile(), tools="suite")) as session:
        assert await session.send(Message("a")) == Said("turn 1")
        assert await session.send(Message("b")) == Said("turn 2")


async def test_an_authors_checkpointer_does_not_leak_between_trials(new_attempt: Callable[..., FakeAttempt]) -> None:
    """Two trials of a graph with its author's checkpointer see nothing of each other."""
    async with ScriptedModelServer(FixedPolicy(["One.", "Two."])) as server:
        saver = InMemorySaver()
        agent = LangGraphAgent(react_graph(chat(server), suite_tools(), checkpointer=saver))
        for _ in range(2):
            async with new_attempt().session(agent) as session:
                assert await session.send(Message("First")) == Said("One.")
    assert len(saver.storage) == 2
    assert [len(r.body["messages"]) for r in server.requests] == [1, 1]


async def test_a_sync_only_checkpointer_is_replaced_and_noted(attempt: FakeAttempt) -> None:
    """A checkpointer without async methods, which ``ainvoke`` can't use, does not fail the trial."""

    class SyncSaver(InMemorySaver):
        pass

    from langgraph.checkpoint.base import BaseCheckpointSaver

    SyncSaver.aput = BaseCheckpointSaver.aput  # type: ignore[method-assign]
    async with ScriptedModelServer(FixedPolicy(["One.", "Two."])) as server:
        agent = LangGraphAgent(react_graph(chat(server), suite_tools(), checkpointer=SyncSaver()))
        async with attempt.session(agent) as session:
            await session.send(Message("First"))
            assert await session.send(Message("Second")) == Said("Two.")
    assert any("SyncSaver is sync only" in note for note in attempt.notes)


async def test_concurrent_trials_of_one_graph_do_not_mix(new_attempt: Callable[..., FakeAttempt]) -> None:
    """40 trials at once on one compiled graph: each sandbox sees its own calls, each recorder its own tokens."""

    def script(turn: ModelTurn) -> Reply | str:
        account = turn.messages[-1].text if turn.replies == 0 else turn.messages[0].text
        calls = [("get_balance", {"account": account}), ("get_balance", {"account": account + "x"})]
        return Reply(tool_calls=calls) if turn.replies == 0 else f"Done with {account}."

    attempts = [new_attempt(trial=TrialRef("t", n)) for n in range(40)]
    waiting, all_there = 0, anyio.Event()

    async def gathered(_: str) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == 2 * len(attempts):
            all_there.set()
        await all_there.wait()

    async def play(one: FakeAttempt) -> None:
        async with one.session(agent) as session:
            assert await session.send(Message(f"A{one.trial.index}")) == Said(f"Done with A{one.trial.index}.")

    async with ScriptedModelServer(script) as server:
        agent = LangGraphAgent(create_agent(chat(server), suite_tools()))
        async with anyio.create_task_group() as group:
            for one in attempts:
                one.before_call = gathered
                group.start_soon(play, one)
        used = server.usage_by_trial()
    for one in attempts:
        account = f"A{one.trial.index}"
        assert sorted(call.arguments["account"] for call in one.calls) == [account, account + "x"]
        assert one.usage == used["t", one.trial.index]


async def test_usage_is_exact_by_sub_agent(attempt: FakeAttempt) -> None:
    """Tokens, cached and reasoning ones too, equal what the server sent; named sub-agents and sub-graphs are told apart."""

    def script(turn: ModelTurn) -> Reply | str:
        if turn.model == "billing" and turn.messages[-1].text == "Said by front.":
            return Reply(tool_calls=[BALANCE])
        return f"Said by {turn.model}."

    async with ScriptedModelServer(script) as server:
        billing = create_agent(chat(server, "billing"), suite_tools(), name="billing")
        plain = react_graph(chat(server, "plain"), suite_tools())

        async def front(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await chat(server, "front").ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("front", front)
        graph.add_node("desk", billing)
        graph.add_node("closing", plain)
        graph.add_edge(START, "front")
        graph.add_edge("front", "desk")
        graph.add_edge("desk", "closing")
        async with attempt.session(LangGraphAgent(graph.compile(name="bank"))) as session:
            await session.send(Message("Balance?"))
            await session.send(Message("Again?"))
    assert attempt.usage == server.totals
    assert attempt.usage.cached_input_tokens > 0
    assert attempt.usage.reasoning_tokens > 0
    assert {(r.model, r.actor) for r in attempt.requests} == {
        ("front", None),
        ("billing", "billing"),
        ("plain", "closing"),
    }
    assert [r.usage for r in attempt.requests] == [r.usage for r in server.requests]
    assert {call.actor for call in attempt.calls} == {"billing"}


async def test_a_sub_agent_behind_a_kept_tool_is_counted_by_its_name(attempt: FakeAttempt) -> None:
    """A tool that asks a sub-agent, kept by its author's word, runs; tokens and tool calls are the sub-agent's."""
    from langchain_core.tools import tool

    def script(turn: ModelTurn) -> Reply | str:
        if turn.messages[-1].role == "tool":
            return f"Said by {turn.model}."
        return Reply(tool_calls=[BALANCE if turn.model == "billing" else ("ask_billing", {"question": "Balance?"})])

    async with ScriptedModelServer(script) as server:
        billing = create_agent(chat(server, "billing"), suite_tools(), name="billing")

        @tool
        async def ask_billing(question: str) -> str:
            """Ask the billing desk."""
            done = await billing.ainvoke({"messages": [("user", question)]})
            return str(done["messages"][-1].text)

        agent = LangGraphAgent(create_agent(chat(server, "front"), [ask_billing]), keep=["ask_billing"])
        async with attempt.session(agent, instructions=POLICY) as session:
            assert await session.send(Message("Balance?")) == Said("Said by front.")
    assert [(r.model, r.actor) for r in attempt.requests] == [
        ("front", None),
        ("billing", "billing"),
        ("billing", "billing"),
        ("front", None),
    ]
    assert attempt.usage == server.totals
    assert [call.actor for call in attempt.calls] == ["billing"]
    assert attempt.notes == [
        "The sub-agent billing made a model request without the suite's policy: the graph does not pass it on."
    ]


async def test_streaming_inside_a_node_is_counted(attempt: FakeAttempt) -> None:
    """A node that streams its model is recorded with tokens where the provider gives them, else with None, never 0."""
    for stream_usage in (True, False):
        async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "Done."])) as server:
            model = chat(server, stream_usage=stream_usage)
            agent = LangGraphAgent(react_graph(model, suite_tools(), streamed=True))
            async with attempt.session(agent) as session:
                assert await session.send(Message("Balance?")) == Said("Done.")
            if stream_usage:
                assert attempt.usage == server.totals
                assert server.totals.total_tokens > 0
    assert [request.usage is None for request in attempt.requests] == [False, False, True, True]
    assert {request.model for request in attempt.requests} == {"scripted"}


async def test_a_tools_error_is_answered_to_the_model(attempt: FakeAttempt) -> None:
    """A tool's own error is a tool message of status error that the model recovers from."""
    attempt.answers["transfer"] = ToolResult("Insufficient funds.", is_error=True)
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[MOVE]), "It can't be done."])) as server:
        agent = LangGraphAgent(create_agent(chat(server), suite_tools()))
        async with attempt.session(agent) as session:
            assert await session.send(Message("Move 25")) == Said("It can't be done.")
    assert server.requests[-1].body["messages"][-1]["content"] == "Insufficient funds."


async def test_an_output_that_is_no_text_is_the_agents_fault(attempt: FakeAttempt) -> None:
    """An ``output`` that returns a message instead of its text fails the trial with a sentence that says so."""
    async with ScriptedModelServer(FixedPolicy(["Done."])) as server:
        graph = create_agent(chat(server), suite_tools())
        agent = LangGraphAgent(graph, output=lambda state: state["messages"][-1])
        async with attempt.session(agent) as session:
            with pytest.raises(AgentFault, match="output= returned AIMessage"):
                await session.send(Message("Hello"))


async def test_arguments_of_any_name_reach_the_sandbox_as_they_are(attempt: FakeAttempt) -> None:
    """Nothing is dropped or renamed, though LangChain uses these names for its own ends."""
    names = ("config", "run_manager", "callbacks", "self", "input", "state", "runtime", "store", "tool_call_id", "args")
    odd = make_tool("odd", **dict.fromkeys(names, "string"))
    attempt.tools = [odd]
    arguments = {name: name.upper() for name in names} | {"nested": {"a": [1, None, True]}}
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[("odd", arguments)]), "Done."])) as server:
        agent = LangGraphAgent(create_agent(chat(server), FRAMEWORK.tools([odd])))
        async with attempt.session(agent) as session:
            await session.send(Message("Go"))
    assert attempt.called == [("odd", arguments)]
    offered = server.requests[0].body["tools"][0]["function"]
    assert offered["name"] == "odd"
    assert offered["description"] == odd.description
    assert {**offered["parameters"], "description": None} == {**odd.parameters, "description": None}


async def test_the_policy_that_a_graph_drops_is_noted(attempt: FakeAttempt) -> None:
    """A graph that trims its messages, or a sub-agent with messages of its own, is noted as asked without the policy."""
    async with ScriptedModelServer(FixedPolicy(["Fine."])) as server:
        model = chat(server)

        async def last_only(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"][-1:])]}

        graph = StateGraph(MessagesState)
        graph.add_node("ask", last_only)
        graph.add_edge(START, "ask")
        async with attempt.session(LangGraphAgent(graph.compile(), tools="suite"), instructions=POLICY) as session:
            await session.send(Message("a"))
            await session.send(Message("b"))
    assert [note for note in attempt.notes if "without the suite's policy" in note] == attempt.notes
    assert len(attempt.notes) == 1


async def test_malformed_arguments_refusals_and_cut_answers_are_noted(attempt: FakeAttempt) -> None:
    """What ends a LangGraph run silently is said in the trial's notes."""
    replies = [
        Reply(tool_calls=[BALANCE], fault="malformed_json"),
        Reply(refusal="I can't do that."),
        Reply(text="", fault="content_filter"),
    ]
    async with ScriptedModelServer(FixedPolicy(replies)) as server:
        agent = LangGraphAgent(create_agent(chat(server), suite_tools()))
        async with attempt.session(agent) as session:
            assert await session.send(Message("a")) == Said("")
            assert await session.send(Message("b")) == Said("I can't do that.")
            await session.send(Message("c"))
    assert attempt.called == []
    assert [note.split(";")[0] for note in attempt.notes] == [
        "The model called get_balance with malformed JSON arguments",
        "The model refused: I can't do that.",
        "The model's answer was cut off: content_filter.",
    ]


async def test_the_authors_config_and_context_are_used(attempt: FakeAttempt) -> None:
    """``config`` and ``context`` reach the nodes; the thread stays the attempt's own."""
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import Runtime

    class Context(TypedDict):
        branch: str

    seen: dict[str, Any] = {}

    async def look(state: MessagesState, config: RunnableConfig, runtime: Runtime[Context]) -> dict[str, Any]:
        seen.update(config["configurable"], tags=config["tags"], branch=runtime.context["branch"])
        return {"messages": [AIMessage("ok")]}

    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("look", look)
    graph.add_edge(START, "look")
    config = {"configurable": {"language": "de", "thread_id": "mine"}, "tags": ["trial"]}
    agent = LangGraphAgent(graph.compile(), tools="suite", config=config, context={"branch": "north"})
    async with attempt.session(agent) as session:
        await session.send(Message("a"))
    assert seen["language"] == "de"
    assert seen["tags"] == ["trial"]
    assert seen["branch"] == "north"
    assert seen["thread_id"].startswith("test/task-0")


async def test_structured_output_is_the_answer_where_the_agent_says_nothing_else(attempt: FakeAttempt) -> None:
    """An agent with a ``response_format`` answers with its JSON."""
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Balance(BaseModel):
        amount: float

    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[("Balance", {"amount": 12.5})])])) as server:
        graph = create_agent(chat(server), suite_tools(), response_format=ToolStrategy(Balance))
        async with attempt.session(LangGraphAgent(graph)) as session:
            said = await session.send(Message("Balance?"))
    assert isinstance(said, Said)
    assert json.loads(said.text) == {"amount": 12.5}


async def test_langsmith_is_off_though_the_environment_has_it_on(
    attempt: FakeAttempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials are not traced unless their author says so."""
    from langchain_core.callbacks.manager import AsyncCallbackManager
    from langchain_core.tracers.langchain import LangChainTracer
    from langsmith import utils

    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_API_KEY", "any")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    utils.get_env_var.cache_clear()
    traced: list[bool] = []

    async def look(state: MessagesState) -> dict[str, Any]:
        handlers = AsyncCallbackManager.configure().handlers
        traced.append(any(isinstance(handler, LangChainTracer) for handler in handlers) or utils.tracing_is_enabled())
        return {"messages": [AIMessage("ok")]}

    graph = StateGraph(MessagesState)
    graph.add_node("look", look)
    graph.add_edge(START, "look")
    try:
        assert utils.tracing_is_enabled()
        async with attempt.session(LangGraphAgent(graph.compile(), tools="suite")) as session:
            await session.send(Message("a"))
        assert utils.tracing_is_enabled()
    finally:
        utils.get_env_var.cache_clear()
    assert traced == [False]


def test_the_tools_are_of_the_suite_in_the_frameworks_form() -> None:
    """Every suite tool becomes a LangChain tool of the same name."""
    assert [tool.name for tool in suite_tools()] == [GET_BALANCE.name, TRANSFER.name, CLOSE_ACCOUNT.name]
