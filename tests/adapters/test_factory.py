"""Agents that are made anew for every attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fake_attempt import TOOLS, FakeAttempt
from langchain.agents import create_agent
from langchain_core.tools import BaseTool, tool
from langgraph_graphs import chat

from tbadapters.adapters.factory import factory
from tbadapters.adapters.function import TrialContext
from tbadapters.core.agent import AgentAdapter, Said, TaskBrief
from tbadapters.core.errors import AgentFault, ForeignTools, UnknownAgentType, UnknownName, UsageError
from tbadapters.core.messages import Message
from tbadapters.core.tools import Tool
from tbadapters.testing import FixedPolicy, Reply, ScriptedModelServer

BALANCE = ("get_balance", {"account": "A1"})


@tool
def wire_money(amount: float) -> str:
    """Wire real money."""
    return "wired"


async def test_a_graph_is_built_for_each_attempt_with_the_frameworks_tools(
    new_attempt: Callable[..., FakeAttempt],
) -> None:
    """Each attempt has a graph of its own, built with LangChain tools that act on its sandbox."""
    graphs: list[Any] = []
    async with ScriptedModelServer(FixedPolicy([Reply(tool_calls=[BALANCE]), "Done."])) as server:

        @factory(tools="langgraph")
        def make_graph(tools: list[BaseTool]) -> Any:
            graphs.append(create_agent(chat(server), tools))
            return graphs[-1]

        assert isinstance(make_graph, AgentAdapter)
        assert (make_graph.name, make_graph.framework) == ("make_graph", "langgraph")
        attempts = [new_attempt(), new_attempt()]
        for one in attempts:
            graphs.clear()
            async with one.session(make_graph) as session:
                assert await session.send(Message("Balance?")) == Said("Done.")
            assert len(graphs) == 2  # one to look at, one for the attempt
    assert [one.called for one in attempts] == [[BALANCE], [BALANCE]]


async def test_make_may_be_async_and_take_the_brief(attempt: FakeAttempt) -> None:
    """``make(tools, brief)`` is given the attempt's brief, and may be awaited."""
    briefs: list[TaskBrief] = []

    async def make(tools: list[Tool], brief: TaskBrief) -> Any:
        briefs.append(brief)

        async def agent(message: str, ctx: TrialContext) -> str:
            return f"{len(tools)} tools, {brief.instructions}"

        return agent

    async with attempt.session(factory(make), instructions="Be kind.") as session:
        assert await session.send(Message("a")) == Said("3 tools, Be kind.")
    assert len(briefs) == 1


async def test_nothing_leaks_from_attempt_to_attempt(new_attempt: Callable[..., FakeAttempt]) -> None:
    """What an agent keeps in itself is gone in the next attempt."""

    def make(tools: list[Tool]) -> Any:
        seen: list[str] = []

        async def agent(message: str, ctx: TrialContext) -> str:
            seen.append(message)
            return f"{len(seen)}"

        return agent

    made = factory(make)
    for _ in range(3):
        async with new_attempt().session(made) as session:
            assert await session.send(Message("a")) == Said("1")


@pytest.mark.parametrize(
    "make", [lambda tools: None, lambda tools, brief: None, lambda tools, brief=None: None, lambda *tools: None]
)
def test_the_forms_of_make(make: Any) -> None:
    """``make`` takes the tools, and the brief where it asks for it."""
    with pytest.raises(UnknownAgentType, match="None can't be run as an agent"):
        factory(make).check(TOOLS)


@pytest.mark.parametrize("make", [lambda: None, lambda tools, brief, more: None])
def test_make_of_another_shape_is_refused(make: Any) -> None:
    """What can't be called with the tools is refused at once."""
    with pytest.raises(UnknownAgentType, match=r"can't be called as make\(tools\) or make\(tools, brief\)"):
        factory(make)


def test_a_mistake_in_make_costs_no_trial() -> None:
    """What ``make`` raises, and foreign tools in what it made, are told by the check; so is a wrong kind of tools."""

    def broken(tools: list[Tool]) -> Any:
        raise KeyError("OPENAI_MODEL")

    with pytest.raises(UsageError, match=r"The factory broken failed: KeyError: 'OPENAI_MODEL'"):
        factory(broken, tools="langgraph").check(TOOLS)

    def make_graph(tools: list[Any]) -> Any:
        from langgraph_graphs import ChatOpenAI

        return create_agent(ChatOpenAI(model="m", api_key="any"), [*tools, wire_money])

    with pytest.raises(ForeignTools, match="wire_money"):
        factory(make_graph, tools="langgraph").check(TOOLS)
    with pytest.raises(UsageError, match=r'say factory\(make_graph, tools="langgraph"\)'):
        factory(make_graph).check(TOOLS)


async def test_what_make_raises_in_an_attempt_is_the_agents_fault(attempt: FakeAttempt) -> None:
    """An async ``make`` is first called in an attempt; its exception is the agent's own."""

    async def make(tools: list[Tool]) -> Any:
        raise KeyError("x")

    with pytest.raises(AgentFault, match="KeyError"):
        async with attempt.session(factory(make)):
            pass


def test_unknown_names_and_things_that_make_nothing() -> None:
    """A framework's name is checked at once, and only a callable makes agents."""
    with pytest.raises(UnknownName, match="'langgraph'"):
        factory(lambda tools: None, tools="langraph")
    with pytest.raises(UnknownAgentType, match=r"make\(tools\)"):
        factory("module:make")  # type: ignore[arg-type]
    with pytest.raises(UnknownAgentType, match=r"make\(tools\)"):
        factory(factory(lambda tools: None))  # type: ignore[arg-type]
