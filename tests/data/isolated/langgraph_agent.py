"""A LangGraph agent as its author keeps it in a file: compiled once, with the suite's tools; and one made afresh."""

from pathlib import Path

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from tbadapters import factory, load_suite

DESK = load_suite(Path(__file__).parent.parent / "desk.py")
model = ChatOpenAI(model="scripted", api_key="none", max_retries=0)  # where: OPENAI_BASE_URL
agent = create_agent(model, DESK.tools("langgraph"))


@factory(tools="langgraph")
def made(tools):
    """Build the agent of one attempt."""
    return create_agent(model, tools)


def make(tools):
    """Build the same without the mark."""
    return create_agent(model, tools)
