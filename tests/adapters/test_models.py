"""An agent's models are known before the first trial, as far as it can be seen, so that a cost can be estimated."""

import pytest
from agents import Agent
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters import LangGraphAgent, OpenAIAgentsAgent, PydanticAIAgent, RunStopped, evaluate
from tbadapters.core.events import RunPlanned


def chat_model(name):
    """Return a chat model that is never asked."""
    return ChatOpenAI(model=name, api_key="none")


def graph_of(suite):
    """Return a hand-written graph whose node binds the suite's tools to its model."""
    model = chat_model("gpt-4o").bind_tools(suite.tools("langgraph"))

    async def ask(state):
        return {"messages": [await model.ainvoke(state["messages"])]}

    return StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()


def test_models_are_found(desk):
    """The model of a prebuilt graph, of a node's closure, of handoffs and of sub-agents is named."""
    provider = OpenAIProvider(api_key="none")
    specialist = Agent(name="specialist", model="gpt-4o-mini")
    helper = PydanticAgent(OpenAIChatModel("gpt-4o-mini", provider=provider), name="helper")
    assert LangGraphAgent(create_agent(chat_model("gpt-4o"), desk.tools("langgraph"))).models == ["gpt-4o"]
    assert LangGraphAgent(graph_of(desk), tools="suite").models == ["gpt-4o"]
    assert OpenAIAgentsAgent(Agent(name="a", model="gpt-4o", handoffs=[specialist])).models == ["gpt-4o", "gpt-4o-mini"]
    root = PydanticAgent(OpenAIChatModel("gpt-4o", provider=provider))
    assert PydanticAIAgent(root, subagents=[helper]).models == ["gpt-4o", "gpt-4o-mini"]


async def test_the_plan_estimates_the_cost(desk, tmp_path):
    """Where the model has a price, the plan that is shown before the first trial names an estimate."""
    planned = []

    def stop(event):
        if isinstance(event, RunPlanned):
            planned.append(event)
            raise InterruptedError

    agent = create_agent(chat_model("gpt-4o"), desk.tools("langgraph"))
    with pytest.raises(InterruptedError):
        await evaluate(agent, suite=desk, trials=2, out=tmp_path, progress="off", on_event=stop)
    assert planned[0].estimated_cost > 0
    assert "gpt-4o" in planned[0].estimate_basis


async def test_a_missing_key_stops_the_run(desk, tmp_path, monkeypatch):
    """An agent whose client finds no API key stops the run with the client's own sentence: nobody fails by it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(RunStopped, match="api_key"):
        await evaluate(Agent(name="a", model="gpt-4o"), suite=desk, trials=2, out=tmp_path, progress="off")
