"""The small suite through each framework's real client, against the scripted model."""

import os

import pytest
from agents import Agent, OpenAIResponsesModel
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters import Limits, evaluate, factory, load_suite
from tbadapters.suites.thinkingbox.environment import find_environment
from tbadapters.suites.thinkingbox.files import DataFolder
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer

MODEL = "stand-in"
REAL = os.environ.get("THINKINGBOX_DATA")
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


def played(suite, tasks, trials, rate):
    """Return what the scripted model does in each trial, some of them with a flaw.

    It is made here: finding a flaw runs the servers, which the scripted model's loop should not wait for.
    """
    policy = GoldenPolicy(suite, outcomes=Outcomes(pass_rate=rate, seed=3))
    for name in tasks:
        for index in range(trials):
            policy.script(suite.task(name).id, index)
    return policy


@pytest.fixture(scope="module")
def policy(small):
    """Half of the trials right, the others with a flaw."""
    return played(small, TASKS, TRIALS, 0.5)


async def run_of(make, suite, tasks, *, trials, policy, out):
    """Run a framework's agent, built for each attempt with its task's tools."""
    async with (
        ScriptedModelServer({MODEL: policy}) as server,
        AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client,
    ):
        agent = factory(lambda tools: make(client, tools), tools=make.__name__.replace("_", "-"))
        limits = Limits(model_requests=30)
        return await evaluate(agent, suite=suite, tasks=tasks, trials=trials, out=out, progress="off", limits=limits)


def assert_as_injected(result, policy):
    """Each trial passes if it is to, and fails as it was made to."""
    injected = {(r.task, r.index): policy.injected(r.task, r.index).flaw for r in result.trials}
    assert {place: r.passed for place, r in zip(injected, result.trials, strict=True)} == {
        place: flaw is None for place, flaw in injected.items()
    }
    return injected


@pytest.mark.parametrize("make", [langgraph, openai_agents, pydantic_ai])
async def test_each_framework_plays_tasks_of_both_domains(make, small, policy, tmp_path):
    """An agent of each framework passes where it is to, and fails as it was made to, over tasks with different tools."""
    result = await run_of(make, small, TASKS, trials=TRIALS, policy=policy, out=tmp_path)
    injected = assert_as_injected(result, policy)
    assert {None} < set(injected.values()), "some pass, some fail"
    kinds = {"missing": "missing", "wrong_value": "wrong_value", "extra": "unexpected"}
    for record in result.trials:
        flaw = injected[record.task, record.index]
        if flaw in kinds:
            assert kinds[flaw] in {effect.kind for effect in record.verdict.effects}


# -- the benchmark itself ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def benchmark():
    """Five tasks of each domain that ask no judge."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(
            "XDG_CACHE_HOME", raising=False
        )  # where `tbadapters thinkingbox setup` put the servers' environment
        python = find_environment(DataFolder(REAL)).python
        whole = load_suite("thinkingbox", data=REAL, python=python)
        assert all(part.tool_list for part in whole.parts), "listed here"
    tasks = [t.id for part in whole.parts for t in [t for t in part.tasks if not t.needs_judge][3:8]]
    return whole, tasks


@pytest.fixture(scope="module")
def flawed(benchmark):
    """Half of 100 trials right, the others with a flaw."""
    return played(*benchmark, 4, 0.5)


@pytest.mark.skipif(REAL is None, reason="THINKINGBOX_DATA names no checkout")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("make", [langgraph, openai_agents, pydantic_ai])
async def test_golden_calls_of_the_benchmark_pass(make, benchmark, tmp_path):
    """25 tasks of the benchmark x 4 trials pass when the model plays their golden calls."""
    suite, tasks = benchmark
    result = await run_of(make, suite, tasks, trials=4, policy=GoldenPolicy(suite), out=tmp_path)
    assert [record.passed for record in result.trials] == [True] * 100


@pytest.mark.skipif(REAL is None, reason="THINKINGBOX_DATA names no checkout")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("make", [langgraph, openai_agents, pydantic_ai])
async def test_flaws_on_the_benchmark_fail_as_injected(make, benchmark, flawed, tmp_path):
    """25 tasks of the benchmark x 4 trials, half of them flawed, have the verdicts that were injected."""
    suite, tasks = benchmark
    result = await run_of(make, suite, tasks, trials=4, policy=flawed, out=tmp_path)
    injected = assert_as_injected(result, flawed)
    assert len([flaw for flaw in injected.values() if flaw is not None]) > 25
