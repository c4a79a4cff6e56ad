"""Evaluate a PydanticAI agent that gives the bank's work to a sub-agent.

python examples/pydantic_ai_agent.py
"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters import Limits, evaluate, load_suite
from tbadapters.adapters.pydantic_ai import PydanticAIAgent
from tbadapters.testing.stand_in import model_endpoint

LIMITS = Limits(model_requests=25)  # of one trial


async def main() -> None:
    """Build both agents, say which tool is kept and whom it runs, and print the result.

    An agent without tools of its own needs none of this: ``evaluate(agent, suite="neobank")`` gives it the suite's.
    """
    suite = load_suite("neobank")
    async with model_endpoint(suite) as endpoint:
        print(endpoint.notice)
        provider = OpenAIProvider(base_url=endpoint.base_url, api_key=endpoint.api_key)
        clerk = Agent(OpenAIChatModel(endpoint.model, provider=provider), name="clerk")
        desk = Agent(OpenAIChatModel(endpoint.model, provider=provider), name="desk")

        @desk.tool_plain
        async def ask_clerk(request: str) -> str:
            """Have a request carried out by the clerk, who has the bank's tools."""
            return (await clerk.run(request)).output

        agent = PydanticAIAgent(desk, keep=["ask_clerk"], subagents=[clerk])
        result = await evaluate(
            agent, suite=suite, tasks=["card_lost/0", "fee_courtesy/0", "transfer_stop/0"], trials=3, limits=LIMITS
        )
    print(result)


if __name__ == "__main__":
    asyncio.run(main())
