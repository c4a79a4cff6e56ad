"""A PydanticAI agent as its author keeps it in a file; the suite's tools are injected."""

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

client = AsyncOpenAI(api_key="none", max_retries=0)  # where: OPENAI_BASE_URL
agent = Agent(OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client)), name="support")
