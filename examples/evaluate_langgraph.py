"""Evaluate a LangGraph agent: how often does it leave the bank's records as the policy demands, over repeated trials?

python examples/evaluate_langgraph.py
"""

import asyncio

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from tbadapters import Limits, evaluate, load_suite
from tbadapters.testing.stand_in import model_endpoint

LIMITS = Limits(model_requests=25)  # of one trial


async def main() -> None:
    """Build the agent with the suite's tools, evaluate it, and print the result."""
    suite = load_suite("neobank")
    async with model_endpoint(suite) as endpoint:
        print(endpoint.notice)
        model = ChatOpenAI(model=endpoint.model, base_url=endpoint.base_url, api_key=endpoint.api_key)
        graph = create_agent(model, suite.tools("langgraph"), system_prompt="You are the bank's support desk.")
        result = await evaluate(
            graph, suite=suite, tasks=["card_lost/0", "fee_courtesy/0", "transfer_stop/0"], trials=5, limits=LIMITS
        )
    print(result)


if __name__ == "__main__":
    asyncio.run(main())
