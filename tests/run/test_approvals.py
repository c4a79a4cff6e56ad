"""Calls that wait for a person: answered by the simulated user or by a policy, in every framework, and recorded."""

from dataclasses import replace

import pytest
from openai import AsyncOpenAI

from tbadapters import evaluate
from tbadapters.core.errors import InvalidOption, UsageError
from tbadapters.testing import FixedPolicy, Reply, ScriptedModelServer

FRAMEWORKS = ("langgraph", "openai-agents", "pydantic-ai", "langgraph static")
HOLD, BOOK = {"ticket_id": "T-1", "status": "hold"}, {"ticket_id": "T-1", "day": "Tuesday"}
DONE = "Your ticket is on hold and the call is booked for Tuesday."
PLAY = FixedPolicy([Reply(tool_calls=[("set_status", HOLD)]), Reply(tool_calls=[("book_call", BOOK)]), DONE])


@pytest.fixture
def careful(desk):
    """The desk's first task; to put a ticket on hold, a person must agree."""
    backend = desk.backend
    tools = tuple(replace(t, needs_approval=t.name == "set_status") for t in desk.tool_list)
    return replace(desk.select(1), tool_list=tools, backend=_Careful(backend))


class _Careful:
    """A backend whose tool ``set_status`` needs approval."""

    def __init__(self, backend):
        self.grader, self._backend = backend.grader, backend

    def open(self, task):
        return _opened(self._backend, task)


class _Sandbox:
    def __init__(self, sandbox):
        self.call, self.state = sandbox.call, sandbox.state
        self.tools = tuple(replace(t, needs_approval=t.name == "set_status") for t in sandbox.tools)


class _opened:  # noqa: N801  (a context manager)
    def __init__(self, backend, task):
        self._context = backend.open(task)

    async def __aenter__(self):
        return _Sandbox(await self._context.__aenter__())

    async def __aexit__(self, *error):
        return await self._context.__aexit__(*error)


def agent_of(framework, suite, client):
    """Return an agent of the framework; the static one is stopped by its graph before any tool call."""
    if framework.startswith("langgraph"):
        from langchain.agents import create_agent
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model="m", base_url=str(client.base_url), api_key="k", http_async_client=client._client)
        stops = {"interrupt_before": ["tools"]} if framework.endswith("static") else {}
        return create_agent(model, suite.tools("langgraph"), **stops)
    if framework == "openai-agents":
        from agents import Agent, OpenAIChatCompletionsModel

        return Agent(name="a", model=OpenAIChatCompletionsModel("m", client))
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)))


@pytest.fixture
def run(desk, careful, tmp_path):
    """Return what runs a framework's agent once; the static graph stops by itself, no tool asks for approval."""

    async def run(framework, **options):
        suite = desk.select(1) if framework.endswith("static") else careful
        async with (
            ScriptedModelServer(PLAY) as server,
            AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client,
        ):
            agent = agent_of(framework, suite, client)
            return await evaluate(agent, **{"suite": suite, "trials": 1, "out": tmp_path, "progress": "off"} | options)

    return run


def decisions(result):
    """Return what was decided in the only trial: (tool, approved, by whom)."""
    (record,) = result.trials
    entries = [entry.data for entry in record.transcript if entry.kind == "approval"]
    return [(entry["tool"], entry["approved"], entry["by"]) for entry in entries]


def asked(framework):
    """Return the tools for which approval is asked: the static graph stops before every one."""
    return ["set_status", "book_call"] if framework.endswith("static") else ["set_status"]


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("policy", ["user", "approve"])
async def test_what_is_agreed_to_is_done(run, framework, policy):
    """The simulated user agrees to what it does not decline, the policy to all: the trial passes."""
    result = await run(framework, approvals=policy)
    (record,) = result.trials
    assert decisions(result) == [(tool, True, policy) for tool in asked(framework)]
    assert record.passed is True, (record.fault, record.verdict)


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_what_is_denied_is_not_done(run, framework):
    """A denied call never reaches the backend; the agent hears of it and goes on."""
    result = await run(framework, approvals="deny")
    (record,) = result.trials
    assert decisions(result) == [(tool, False, "deny") for tool in asked(framework)]
    assert "set_status" not in {call.name for call in record.tool_calls}
    assert record.passed is False
    assert record.end_reason == "settled"


@pytest.mark.parametrize("framework", FRAMEWORKS[:3])
async def test_a_function_decides_by_the_call(run, framework):
    """A function sees tool and arguments of each call and decides; its name is in the record and the manifest."""

    async def only_hold(call):
        return (call.tool, call.arguments["status"]) == ("set_status", "hold")

    result = await run(framework, approvals=only_hold)
    assert decisions(result) == [("set_status", True, "only_hold")]
    assert result.trials[0].passed is True
    assert result.manifest["settings"]["approvals"] == "only_hold"


async def test_a_function_that_fails_is_no_failure_of_the_agent(run):
    """What a function raises is the user's fault: no verdict."""

    def broken(call):
        raise KeyError("nobody is there")

    result = await run("pydantic-ai", approvals=broken)
    assert result.trials[0].passed is None
    assert result.trials[0].fault.owner == "user"


async def test_a_resume_keeps_the_policy(run):
    """Another policy is another run; the folder tells what was decided."""
    first = await run("pydantic-ai", approvals="deny")
    with pytest.raises(UsageError, match="approvals"):
        await run("pydantic-ai", approvals="user", resume=first.folder)


@pytest.mark.parametrize("policy", ["yes", None, True])
async def test_other_policies_are_refused(run, policy):
    """What is neither a known word nor a function is refused with those that are."""
    with pytest.raises(InvalidOption, match=r"approvals=.*'deny'"):
        await run("pydantic-ai", approvals=policy)
