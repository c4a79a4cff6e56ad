"""Evaluate an agent without a framework: a loop over a model's tool calls, written by hand.

python examples/custom_agent.py
"""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from tbadapters import Limits, ToolError, TrialContext, Usage, evaluate, load_suite
from tbadapters.testing.stand_in import model_endpoint

LIMITS = Limits(model_requests=25)  # of one trial


class Desk:
    """Called once per turn of the user; what it must remember of a trial is in ``ctx.state``."""

    def __init__(self, client: AsyncOpenAI, model: str) -> None:
        self.client, self.model = client, model

    async def __call__(self, message: str, ctx: TrialContext) -> str:
        """Return the answer to the user, after whatever tool calls the model makes."""
        messages = ctx.state.setdefault("messages", [{"role": "system", "content": ctx.instructions or "Be brief."}])
        messages.append({"role": "user", "content": message})
        tools = [
            {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
            for t in ctx.tools.values()
        ]
        while True:
            answer = await self.client.chat.completions.create(model=self.model, messages=messages, tools=tools)
            ctx.record_usage(answer.model, tokens(answer.usage))
            said = answer.choices[0].message
            messages.append(said.model_dump(exclude_none=True))
            if not said.tool_calls:
                return said.content or ""
            for call in said.tool_calls:
                result = await self.execute(call.function, ctx)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    async def execute(self, function: Any, ctx: TrialContext) -> str:
        """Return what a tool answers; an error is for the model to read and mend."""
        try:
            return json.dumps(await ctx.call(function.name, **json.loads(function.arguments)))
        except (ToolError, ValueError) as error:
            return f"Error: {error}"


def tokens(usage: Any) -> Usage | None:
    """Return the tokens as tbadapters counts them: input includes cached, output includes reasoning."""
    if usage is None:
        return None
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
    reasoning = usage.completion_tokens_details.reasoning_tokens if usage.completion_tokens_details else 0
    return Usage(usage.prompt_tokens, cached or 0, usage.completion_tokens, reasoning or 0)


async def main() -> None:
    """Evaluate the desk and print the result."""
    suite = load_suite("neobank")
    async with model_endpoint(suite) as endpoint:
        print(endpoint.notice)
        async with AsyncOpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key) as client:
            result = await evaluate(
                Desk(client, endpoint.model),
                suite=suite,
                tasks=["card_lost/0", "fee_courtesy/0", "transfer_stop/0"],
                trials=3,
                limits=LIMITS,
            )
    print(result)


if __name__ == "__main__":
    asyncio.run(main())
