"""A real PydanticAI model whose answers are scripted, for the simulated user and the judge."""

from contextlib import asynccontextmanager

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters.testing import Reply, ScriptedModelServer


@asynccontextmanager
async def scripted_llm(*answers, faults=None, api_key=None, name="some-llm"):
    """Yield a model and its server; each request is answered by the next answer, the last one repeats.

    A dict is a structured answer, a text or a ``Reply`` what it is.
    """
    left = list(answers)

    def policy(turn):
        answer = left.pop(0) if len(left) > 1 else left[0]
        return answer if isinstance(answer, Reply | str) else Reply(tool_calls=[(turn.tools[0].name, answer)])

    with ScriptedModelServer(policy, faults=faults, api_key=api_key) as server:
        client = AsyncOpenAI(base_url=server.url, api_key="any", max_retries=0)
        async with client:
            yield OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client)), server


def prompts(server):
    """Return what the model was asked in each request: system text and the last text of the user."""
    return [
        (said[0]["content"], next(m["content"] for m in reversed(said) if m["role"] == "user"))
        for said in (exchange.body["messages"] for exchange in server.requests)
    ]
