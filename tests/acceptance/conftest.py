"""What the acceptance tests share: one agent a framework, played by a scripted model through its real client."""

import os

import pytest
from openai import AsyncOpenAI

from tbadapters import Limits, Suite, evaluate, load_suite
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer

FRAMEWORKS = ("langgraph", "openai-agents", "pydantic-ai")
FULL = os.environ.get("TBADAPTERS_FULL") == "1"  # the sizes that the figures in docs/calibration.md were measured at
LIMITS = Limits(model_requests=20)


def langgraph_agent(suite, client, *, streaming=False):
    """Return a compiled graph that was built with the suite's tools."""
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(
        model="scripted", base_url=str(client.base_url), api_key="none", http_async_client=client._client,
        timeout=client.timeout, max_retries=client.max_retries, streaming=streaming,
    )  # fmt: skip
    return create_agent(model, suite.tools("langgraph"))


def openai_agent(suite, client):
    """Return an agent without tools: the suite's are injected."""
    from agents import Agent, OpenAIChatCompletionsModel

    return Agent(name="support", model=OpenAIChatCompletionsModel("scripted", client))


def pydantic_agent(suite, client):
    """Return an agent without tools: the suite's are injected."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return Agent(OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client)))


MAKERS = {"langgraph": langgraph_agent, "openai-agents": openai_agent, "pydantic-ai": pydantic_agent}


@pytest.fixture(scope="session")
def neobank() -> Suite:
    """Return the neobank suite."""
    return load_suite("neobank")


@pytest.fixture(params=FRAMEWORKS)
def framework(request) -> str:
    """Name each framework in turn."""
    return request.param


@pytest.fixture
def agent_of(framework):
    """Return what makes the framework's agent for a suite, a client and a scripted model."""
    return MAKERS[framework]


@pytest.fixture
def play(neobank, tmp_path):
    """Return what evaluates a framework's agent with a scripted model: the result, the policy and the server's log."""

    async def play(
        framework, *, outcomes=None, tasks=None, trials=5, concurrency=16, suite=neobank, faults=None, client_timeout=600,
        streaming=False, **options,
    ):  # fmt: skip
        policy = GoldenPolicy(suite, outcomes=outcomes or Outcomes(pass_rate=1.0))
        async with (
            ScriptedModelServer({"scripted": policy}, faults=faults, keep_bodies=False) as server,
            AsyncOpenAI(base_url=server.url, api_key="none", timeout=client_timeout) as client,
        ):
            result = await evaluate(
                MAKERS[framework](suite, client, **({"streaming": True} if streaming else {})),
                suite=suite, tasks=tasks, trials=trials, concurrency=concurrency, limits=LIMITS,
                out=tmp_path, progress="off", **options,
            )  # fmt: skip
            return result, policy, server

    return play


@pytest.fixture
def size() -> tuple[int, int]:
    """Return how many tasks and trials: few in CI, 30 x 20 where TBADAPTERS_FULL=1."""
    return (30, 20) if FULL else (6, 4)


@pytest.fixture
def flaws_a_kind() -> int:
    """Return how many trials get each flaw: few in CI, 40 (200 flaws in all) where TBADAPTERS_FULL=1."""
    return 40 if FULL else 8
