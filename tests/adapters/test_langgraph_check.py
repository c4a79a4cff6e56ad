"""Graphs that are refused before any trial, each with the sentence that shows the line which works."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from fake_attempt import TOOLS, make_tool
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from tbadapters.adapters.langgraph import FRAMEWORK, LangGraphAgent
from tbadapters.adapters.registry import resolve_agent
from tbadapters.core.errors import ForeignTools, InvalidOption, UnknownAgentType

MODEL = ChatOpenAI(model="scripted", base_url="http://127.0.0.1:9/v1", api_key="any")


@tool
def wire_money(amount: float) -> str:
    """Wire real money."""
    raise AssertionError(f"the author's production tool ran: {amount}")


BY_NAME = {"wire_money": wire_money}
SUITE_BY_NAME = {t.name: t for t in FRAMEWORK.tools(TOOLS)}


def graph_of(*nodes: Any) -> Any:
    graph = StateGraph(MessagesState)
    for number, node in enumerate(nodes):
        graph.add_node(f"n{number}", node)
        graph.add_edge(START, f"n{number}")
    return graph.compile()


def by_global(state: MessagesState) -> dict[str, Any]:
    return {"messages": [BY_NAME["wire_money"].invoke({"amount": 1})]}


def by_helper(state: MessagesState) -> dict[str, Any]:
    return by_global(state)


class Desk:
    def __init__(self) -> None:
        self.tools = [wire_money]

    def act(self, state: MessagesState) -> dict[str, Any]:
        return {"messages": [self.tools[0].invoke({"amount": 1})]}


def with_tools(state: MessagesState, tools: list[Any]) -> dict[str, Any]:
    return {"messages": [tools[0].invoke({"amount": 1})]}


def hidden_node() -> Callable[[MessagesState], dict[str, Any]]:
    node = ToolNode([wire_money])

    def act(state: MessagesState) -> dict[str, Any]:
        done: dict[str, Any] = node.invoke(state)
        return done

    return act


def calling_node() -> Callable[[MessagesState], dict[str, Any]]:
    inner = create_agent(MODEL, [wire_money])

    def act(state: MessagesState) -> dict[str, Any]:
        done: dict[str, Any] = inner.invoke(state)
        return done

    return act


FOREIGN = {
    "create_agent": lambda: create_agent(MODEL, [*FRAMEWORK.tools(TOOLS), wire_money]),
    "tool node": lambda: graph_of(ToolNode([wire_money])),
    "wrapped tool node": lambda: graph_of(ToolNode([wire_money]).with_config({"tags": ["x"]})),
    "sub-graph": lambda: graph_of(ToolNode(FRAMEWORK.tools(TOOLS)), create_agent(MODEL, [wire_money])),
    "sub-graph in a sub-graph": lambda: graph_of(graph_of(create_agent(MODEL, [wire_money]))),
    "sub-graph called in a node": lambda: graph_of(ToolNode(FRAMEWORK.tools(TOOLS)), calling_node()),
    "tool node in a closure": lambda: graph_of(hidden_node()),
    "tools in a global": lambda: graph_of(ToolNode(FRAMEWORK.tools(TOOLS)), by_global),
    "tools behind a helper": lambda: graph_of(ToolNode(FRAMEWORK.tools(TOOLS)), by_helper),
    "tools of an object": lambda: graph_of(ToolNode(FRAMEWORK.tools(TOOLS)), Desk().act),
    "tools in a partial": lambda: graph_of(
        ToolNode(FRAMEWORK.tools(TOOLS)), functools.partial(with_tools, tools=[wire_money])
    ),
}


@pytest.mark.parametrize("where", FOREIGN)
def test_an_authors_own_tool_is_found_and_named(where: str) -> None:
    """A tool that is not the suite's is refused by name, wherever in the graph it is."""
    agent = LangGraphAgent(FOREIGN[where]())
    with pytest.raises(ForeignTools, match=r"wire_money.*tools\(\"langgraph\"\)"):
        agent.check(TOOLS)


@pytest.mark.parametrize("where", FOREIGN)
def test_the_word_suite_does_not_excuse_a_tool_that_is_seen(where: str) -> None:
    """``tools="suite"`` is no pass for tools that are found and are not the suite's."""
    with pytest.raises(ForeignTools, match="wire_money"):
        LangGraphAgent(FOREIGN[where](), tools="suite").check(TOOLS)


def test_a_tool_may_stay_by_its_authors_word() -> None:
    """``keep`` names the author's own tools that may run; others are refused still."""
    graph = create_agent(MODEL, [*FRAMEWORK.tools(TOOLS), wire_money])
    LangGraphAgent(graph, keep=["wire_money"]).check(TOOLS)
    with pytest.raises(ForeignTools):
        LangGraphAgent(graph, keep=["other"]).check(TOOLS)


def test_another_suites_tool_is_foreign() -> None:
    """A graph built with another suite's tools is refused, it would fail in every call."""
    other = FRAMEWORK.tools([make_tool("book_flight", to="string")])
    with pytest.raises(ForeignTools, match="book_flight"):
        LangGraphAgent(create_agent(MODEL, other)).check(TOOLS)


def test_suite_tools_are_accepted_wherever_they_are() -> None:
    """Graphs that hold the suite's tools only, or some of them, pass."""
    tools = FRAMEWORK.tools(TOOLS)
    for graph in (create_agent(MODEL, tools[:1]), graph_of(create_agent(MODEL, tools)), graph_of(ToolNode(tools))):
        LangGraphAgent(graph).check(TOOLS)

    def act(state: MessagesState) -> dict[str, Any]:
        return {"messages": [SUITE_BY_NAME["get_balance"].invoke({"account": "A1"})]}

    LangGraphAgent(graph_of(act), tools="suite").check(TOOLS)


def test_a_graph_without_a_tool_node_needs_its_authors_word() -> None:
    """Where nothing can be looked at, the author must say that the tools are the suite's."""
    graph = create_agent(MODEL)
    with pytest.raises(ForeignTools, match=r'LangGraphAgent\(graph, tools="suite"\)'):
        LangGraphAgent(graph).check(TOOLS)
    LangGraphAgent(graph, tools="suite").check(TOOLS)


def test_a_compiled_graphs_tools_can_not_be_replaced() -> None:
    """``tools="replace"`` is refused with the factory that does it."""
    with pytest.raises(ForeignTools, match=r'factory\(make_graph, tools="langgraph"\)'):
        LangGraphAgent(create_agent(MODEL, [wire_money]), tools="replace").check(TOOLS)
    with pytest.raises(InvalidOption, match="tools='all'"):
        LangGraphAgent(create_agent(MODEL), tools="all")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ({"input": lambda message: {}, "output": str}, "input(message, brief)"),
        ({"input": lambda message, brief: {}, "output": lambda: ""}, "output(state)"),
        ({"input": {"question": ""}}, "input(message, brief)"),
    ],
)
def test_functions_that_can_not_be_called_are_refused(options, form):
    """``input`` and ``output`` that every trial would fail of are refused with the form in which they are called."""
    with pytest.raises(InvalidOption, match=re.escape(f"it is called as {form}.")):
        LangGraphAgent(graph_of(lambda state: {}), **options)


def test_a_state_without_messages_needs_input_and_output() -> None:
    """A graph with a state of its own is refused with the line that serves it, its fields named."""

    class State(TypedDict):
        question: str
        answer: str

    graph = StateGraph(State)
    graph.add_node("work", lambda _: {"answer": "ok"})
    graph.add_edge(START, "work")
    compiled = graph.compile()
    for options in ({}, {"input": lambda m, _: {"question": m}}, {"output": lambda s: s["answer"]}):
        with pytest.raises(
            UnknownAgentType, match=r"no 'messages' \(question, answer\): LangGraphAgent\(graph, input="
        ):
            LangGraphAgent(compiled, tools="suite", **options).check(TOOLS)  # type: ignore[arg-type]

    @entrypoint()
    def work(question: str) -> str:
        return question.upper()

    with pytest.raises(UnknownAgentType, match="no 'messages'"):
        LangGraphAgent(work, tools="suite").check(TOOLS)


def test_what_is_no_compiled_graph_is_refused_with_the_mend() -> None:
    """An uncompiled graph, and anything else, is told apart from a compiled graph."""
    with pytest.raises(UnknownAgentType, match=r"pass graph\.compile\(\)"):
        resolve_agent(StateGraph(MessagesState))
    with pytest.raises(UnknownAgentType, match="no compiled graph"):
        LangGraphAgent(MODEL)


def test_a_graph_is_named_by_its_own_name() -> None:
    """The agent's name is the graph's, or what its author says."""
    named = create_agent(MODEL, FRAMEWORK.tools(TOOLS), name="teller")
    assert resolve_agent(named).name == "teller"
    assert resolve_agent(create_agent(MODEL)).name == "graph"
    assert LangGraphAgent(named, name="v2").name == "v2"
