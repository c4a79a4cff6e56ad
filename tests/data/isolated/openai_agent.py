"""An OpenAI Agents SDK agent as its author keeps it in a file; the suite's tools are injected."""

from agents import Agent, OpenAIChatCompletionsModel
from openai import AsyncOpenAI

client = AsyncOpenAI(api_key="none", max_retries=0)  # where: OPENAI_BASE_URL
agent = Agent(name="support", model=OpenAIChatCompletionsModel("scripted", client))
