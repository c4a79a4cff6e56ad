"""Graphs as a LangGraph user writes them, for the tests of the adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

from tbadapters.testing import ScriptedModelServer


def chat(server: ScriptedModelServer, model: str = "scripted", **options: Any) -> ChatOpenAI:
    """The real client, its model on the scripted server."""
    return ChatOpenAI(model=model, base_url=server.url, api_key="any", max_retries=0, **options)


def react_graph(
    model: ChatOpenAI, tools: Sequence[Any], *, sync: bool = False, streamed: bool = False, **compiled: Any
) -> Any:
    """A hand-written graph: a model node, a ToolNode, and back."""
    asked = model.bind_tools(tools)

    async def ask(state: MessagesState) -> dict[str, Any]:
        if streamed:
            whole = None
            async for chunk in asked.astream(state["messages"]):
                whole = chunk if whole is None else whole + chunk
            return {"messages": [whole]}
        return {"messages": [await asked.ainvoke(state["messages"])]}

    def ask_sync(state: MessagesState) -> dict[str, Any]:
        return {"messages": [asked.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask_sync if sync else ask)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile(**compiled)


class DeskState(TypedDict):
    question: str
    log: Annotated[list[Any], add_messages]
    answer: str
    turns: int


def custom_state_graph(model: ChatOpenAI, tools: Sequence[Any]) -> Any:
    """A graph with a state of its own and no ``messages``."""
    agent = create_agent(model, tools)

    async def work(state: DeskState) -> dict[str, Any]:
        asked = [*state.get("log", []), HumanMessage(state["question"])]
        done = await agent.ainvoke({"messages": asked})
        return {"log": done["messages"], "answer": done["messages"][-1].text, "turns": state.get("turns", 0) + 1}

    graph = StateGraph(DeskState)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    return graph.compile()


def overwriting_graph(model: ChatOpenAI) -> Any:
    """A graph whose ``messages`` have no reducer: its caller keeps the conversation."""

    class Plain(TypedDict):
        messages: list[Any]

    async def ask(state: Plain) -> dict[str, Any]:
        answer = await model.ainvoke([SystemMessage("Be brief."), *state["messages"]])
        return {"messages": [*state["messages"], answer]}

    graph = StateGraph(Plain)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    return graph.compile()
