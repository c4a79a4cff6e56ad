"""The demo: three real agents, one a framework, each through its real client; a scripted stand-in plays the model."""

from __future__ import annotations

from typing import Any

from tbadapters.campaign import Campaign
from tbadapters.core.comparison import Comparison
from tbadapters.core.errors import MissingFramework
from tbadapters.core.limits import Limits
from tbadapters.core.suite import Suite
from tbadapters.suites import load_suite
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer

NOTICE = (
    "This is a demo: a scripted stand-in plays the model, with failures that are drawn from a seed. "
    "The agents, their frameworks, clients and tool calls are real; the pass rates say nothing about any of them."
)
PASS_RATES = {"langgraph": 0.95, "openai-agents": 0.85, "pydantic-ai": 0.7}
LIMITS = Limits(model_requests=25)
WORKFLOWS = 16  # of one task each: with five trials and three agents, a minute on two cores


async def compared(options: dict[str, Any]) -> Comparison:
    """Run the three agents on the neobank suite and return their comparison.

    Args:
        options: Options of ``Campaign``.

    Raises:
        MissingFramework: a framework's extra is not installed.
    """
    suite = load_suite("neobank")
    options = {**options, "tasks": options.get("tasks") or first_tasks(suite)}
    models = {
        f"stand-in-{name}": GoldenPolicy(suite, outcomes=Outcomes(pass_rate=rate, seed=seed))
        for seed, (name, rate) in enumerate(PASS_RATES.items())
    }
    async with ScriptedModelServer(models, keep_bodies=False) as server:
        agents = agents_for(suite, server.url)
        return await Campaign(agents, suite=suite, limits=LIMITS, **options).comparison()


def first_tasks(suite: Suite) -> list[str]:
    """Return the ids of the first task of each of the first workflows."""
    return [task.id for task in suite.tasks if task.id.endswith("/0")][:WORKFLOWS]


def agents_for(suite: Suite, url: str) -> dict[str, object]:
    """Return one agent a framework, each built as a user would build it.

    Raises:
        MissingFramework: a framework's extra is not installed.
    """
    try:
        return {
            "langgraph": _langgraph(suite, url),
            "openai-agents": _openai_agents(url),
            "pydantic-ai": _pydantic_ai(url),
        }
    except ModuleNotFoundError as error:
        raise MissingFramework(f"{error.name} (the demo needs all three frameworks)", "all") from error


def _langgraph(suite: Suite, url: str) -> object:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="stand-in-langgraph", base_url=url, api_key="none")
    return create_agent(model, suite.tools("langgraph"))


def _openai_agents(url: str) -> object:
    from agents import Agent, OpenAIChatCompletionsModel
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none")
    return Agent(name="support", model=OpenAIChatCompletionsModel("stand-in-openai-agents", client))


def _pydantic_ai(url: str) -> object:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return Agent(OpenAIChatModel("stand-in-pydantic-ai", provider=OpenAIProvider(base_url=url, api_key="none")))
