"""The small suite through each framework's real client, against the scripted model."""

import pytest
from agents import Agent, OpenAIResponsesModel
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters import Limits, evaluate, factory
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer

MODEL = "stand-in"
TRIALS = 2
TASKS = ["front_desk/test_fields", "workshop/test_late_repair", "workshop/workshop/test_chain"]


def langgraph(client, tools):
    model = ChatOpenAI(
        model=MODEL, base_url=str(client.base_url), api_key="none", http_async_client=client._client, max_retries=0
    )
    return create_agent(model, tools)


def openai_agents(client, tools):
    return Agent(name="desk", model=OpenAIResponsesModel(MODEL, client), tools=tools)


def pydantic_ai(client, tools):
    return PydanticAgent(OpenAIChatModel(MODEL, provider=OpenAIProvider(openai_client=client)), tools=tools)


@pytest.fixture(scope="module")
def policy(small):
    """What the scripted model does: half of the trials right, the others with a flaw."""
    policy = GoldenPolicy(small, outcomes=Outcomes(pass_rate=0.5, seed=3))
    for (
        name
    ) in TASKS:  # made here: finding a flaw runs the servers, which the scripted model's loop should not wait for
        for index in range(TRIALS):
            policy.script(small.task(name).id, index)
    return policy


@pytest.mark.parametrize("make", [langgraph, openai_agents, pydantic_ai])
async def test_each_framework_plays_tasks_of_both_domains(make, small, policy, tmp_path):
    """Built for each attempt with its task's tools, an agent passes where it is to, and fails as it was made to."""
    async with (
        ScriptedModelServer({MODEL: policy}) as server,
        AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client,
    ):
        result = await evaluate(
            factory(lambda tools: make(client, tools), tools=make.__name__.replace("_", "-")),
            suite=small, tasks=TASKS, trials=TRIALS, out=tmp_path, progress="off", limits=Limits(model_requests=12),
        )  # fmt: skip
    injected = {(r.task, r.index): policy.injected(r.task, r.index).flaw for r in result.trials}
    assert {place: r.passed for place, r in zip(injected, result.trials, strict=True)} == {
        place: flaw is None for place, flaw in injected.items()
    }
    assert {None} < set(injected.values()), "some pass, some fail"
    kinds = {"missing": "missing", "wrong_value": "wrong_value", "extra": "unexpected"}
    for record in result.trials:
        flaw = injected[record.task, record.index]
        if flaw in kinds:
            assert kinds[flaw] in {effect.kind for effect in record.verdict.effects}
