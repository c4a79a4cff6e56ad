"""Compare three agents, one a framework, on the same tasks and trials.

With the scripted stand-in all three get the same model, whose failures depend on the trial alone: so the three must come
out the same, trial by trial. Whatever differs with a real model is due to the stacks (and to chance, as the intervals
say).

python examples/compare_three.py
"""

import asyncio

from agents import Agent, OpenAIResponsesModel
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters import Limits, compare, load_suite
from tbadapters.testing.stand_in import model_endpoint

LIMITS = Limits(model_requests=25)  # of one trial


async def main() -> None:
    """Build the three agents, run them interleaved, and print the comparison."""
    suite = load_suite("neobank")
    async with model_endpoint(suite) as endpoint:
        print(endpoint.notice)
        model, access = endpoint.model, {"base_url": endpoint.base_url, "api_key": endpoint.api_key}
        agents = {
            "langgraph": create_agent(ChatOpenAI(model=model, **access), suite.tools("langgraph")),
            "openai-agents": Agent(name="desk", model=OpenAIResponsesModel(model, AsyncOpenAI(**access))),
            "pydantic-ai": PydanticAgent(OpenAIChatModel(model, provider=OpenAIProvider(**access))),
        }
        comparison = await compare(
            agents, suite=suite, tasks=["card_lost/0", "transfer_stop/0"], trials=3, limits=LIMITS
        )
    print(comparison)


if __name__ == "__main__":
    asyncio.run(main())
