"""Evaluate an OpenAI Agents SDK triage agent, which hands every request over to a specialist with some of the tools.

python examples/openai_agents_triage.py
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from agents import Agent, OpenAIResponsesModel
from openai import AsyncOpenAI

from tbadapters import Limits, evaluate, load_suite
from tbadapters.testing.stand_in import model_endpoint

LIMITS = Limits(model_requests=25)  # of one trial

CARDS = ("card", "atm", "spend", "abroad")
PAYMENTS = ("transfer", "recall", "payee", "money", "standing_order", "direct_debit", "fee")


def without(tools: Sequence[Any], words: tuple[str, ...]) -> list[Any]:
    """Return the tools whose names contain none of the words."""
    return [tool for tool in tools if not any(word in tool.name for word in words)]


async def main() -> None:
    """Build the three agents, evaluate the triage agent, and print who used how many tokens."""
    suite = load_suite("neobank")
    tools = suite.tools("openai-agents")
    async with model_endpoint(suite) as endpoint:
        print(endpoint.notice)
        client = AsyncOpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key)
        model = OpenAIResponsesModel(endpoint.model, client)
        cards = Agent(name="cards", instructions="You handle cards.", model=model, tools=without(tools, PAYMENTS))
        payments = Agent(name="payments", instructions="You handle money.", model=model, tools=without(tools, CARDS))
        cards.handoffs, payments.handoffs = [payments], [cards]
        triage = Agent(
            name="triage",
            instructions="Hand the customer over to whoever handles the request.",
            model=model,
            handoffs=[cards, payments],
        )
        result = await evaluate(triage, suite=suite, tasks=["card_lost/0", "fee_courtesy/0"], trials=3, limits=LIMITS)
    print(result)
    for actor in ("agent", "cards", "payments"):
        used = sum(trial.usage_by_actor[actor].total_tokens for trial in result.trials if actor in trial.usage_by_actor)
        print(f"{'triage' if actor == 'agent' else actor}: {used:,} tokens")


if __name__ == "__main__":
    asyncio.run(main())
