"""How an attempt ends: its deadlines, agents that do not end, runs that are cancelled."""

import asyncio
import threading
import time
from contextlib import asynccontextmanager, suppress
from functools import partial

import anyio
import httpx2
import pytest
from trial_stage import Session, attempt_of, raising

from tbadapters import Ended, Limits
from tbadapters.core.abandoned import abandoned_tasks
from tbadapters.core.agent import NeedsApproval
from tbadapters.core.errors import AgentFault
from tbadapters.testing import Faults, FixedPolicy, ScriptedModelServer


async def test_deadline_fails_the_trial(desk):
    """An agent that hangs is cancelled at its deadline: a failed trial."""

    async def send(session, turn):
        await asyncio.sleep(60)

    record, _ = await attempt_of(desk, Session(send), limits=Limits(seconds=0.1, grace=0.2))
    assert record.passed is False
    assert record.end_reason == "seconds"
    assert not record.abandoned


async def test_stalled_model_request_is_the_providers_fault(desk):
    """When the deadline expires on a model request without answer, the fault is the provider's."""

    async def send(session, turn):
        session.recorder.request_starts()
        await asyncio.sleep(60)

    record, fault = await attempt_of(desk, Session(send), limits=Limits(seconds=0.1, grace=0.2))
    assert record.passed is None
    assert (fault.owner, fault.code) == ("provider", "stalled")


async def test_agent_that_swallows_cancellation_is_abandoned(desk):
    """It is left behind after the grace, named, and can't reach the backend any more."""
    late = []

    async def send(session, turn):
        for _ in range(20):
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue
        try:
            await session.tools["set_status"].call({"ticket_id": "T-1", "status": "hold"})
        except AgentFault as fault:
            late.append(fault)
        return Ended("late")

    began = time.monotonic()
    record, _ = await attempt_of(desk, Session(send), limits=Limits(seconds=0.1, grace=0.1))
    assert time.monotonic() - began < 1.5
    assert record.abandoned
    assert record.passed is False
    assert len(abandoned_tasks()) == 1
    await asyncio.wait(abandoned_tasks())
    assert abandoned_tasks() == frozenset()
    assert late
    assert record.tool_calls == ()


async def test_sync_agent_whose_thread_runs_on_is_abandoned(desk):
    """A thread can't be cancelled: a sync agent that outlives the grace is abandoned until its thread ends."""
    release = threading.Event()

    def agent(message, ctx):
        release.wait(30)
        return "late"

    record, _ = await attempt_of(desk, agent, limits=Limits(seconds=0.1, grace=0.1))
    assert record.abandoned
    assert record.end_reason == "seconds"
    assert len(abandoned_tasks()) == 1
    release.set()
    await asyncio.wait(abandoned_tasks())
    assert abandoned_tasks() == frozenset()


async def test_swallowed_limit_ends_the_agent(desk):
    """An agent that swallows the limit's exception and goes on is ended all the same."""

    async def send(session, turn):
        while True:
            try:
                await session.tools["get_ticket"].call({"ticket_id": "T-1"})
            except AgentFault:
                await asyncio.sleep(0.01)

    record, _ = await attempt_of(desk, Session(send), limits=Limits(tool_calls=7, seconds=30, grace=0.2))
    assert record.end_reason == "tool_calls"
    assert len(record.tool_calls) == 7


async def test_agent_that_cancels_itself(desk):
    """A cancellation that nobody asked for is the agent's failure."""
    record, _ = await attempt_of(desk, raising(asyncio.CancelledError()))
    assert record.passed is False
    assert record.fault.code == "cancelled"


async def test_system_exit_in_an_agent(desk):
    """An agent that calls sys.exit() fails its trial and ends nothing else."""
    record, _ = await attempt_of(desk, raising(SystemExit(3)))
    assert record.passed is False
    assert "SystemExit" in record.fault.message


async def test_cancelled_run_ends_its_agent(desk):
    """When the run is cancelled, the agent's task is ended with it."""
    ended = []

    async def send(session, turn):
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await attempt_of(desk, Session(send))
    assert ended


async def test_agents_of_a_cancelled_run_have_their_grace(desk):
    """When a group of trials is cancelled, an agent's clean-up ends before its sandbox closes."""
    ended = []

    async def send(session, turn):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.2)
            ended.append(await session.tools["get_ticket"].call({"ticket_id": "T-1"}))

    with anyio.move_on_after(0.2):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(attempt_of, desk, Session(send), limits=Limits(seconds=30, grace=5)))
    assert [result.is_error for result in ended] == [False]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_calls_after_a_cancelled_run_reach_no_backend(desk):
    """A call by an agent that outlives its cancelled run is refused as late; the sandbox is not asked."""
    refused = []

    async def send(session, turn):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(0.5)
        with pytest.raises(AgentFault, match="too late"):
            await session.tools["get_ticket"].call({"ticket_id": "T-1"})
        refused.append(True)
        return Ended("late")

    with anyio.move_on_after(0.1):
        async with anyio.create_task_group() as group:
            group.start_soon(partial(attempt_of, desk, Session(send), limits=Limits(seconds=30, grace=0.1)))
    await asyncio.wait(abandoned_tasks())
    assert refused


async def test_session_that_never_waits_meets_its_deadline(desk):
    """An agent that answers without awaiting anything can't keep the loop from its deadline."""

    async def send(session, turn):
        return NeedsApproval(())

    limits = Limits(seconds=0.2, grace=0.2, tool_calls=None)
    record, _ = await asyncio.wait_for(attempt_of(desk, Session(send), limits=limits), 10)
    assert record.end_reason == "seconds"


@pytest.mark.parametrize("swallows", [False, True])
async def test_opening_a_session_has_a_deadline(desk, swallows):
    """A session that does not open in time is the agent's failure, without a limit of seconds and uncancellable too."""

    class Slow(Session):
        @asynccontextmanager
        async def open(self, brief, tools, recorder, limits):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                if not swallows:
                    raise
                await asyncio.sleep(1)
            yield self

    limits = Limits(seconds=None, setup_seconds=0.1, grace=0.1)
    record, fault = await asyncio.wait_for(attempt_of(desk, Slow(None), limits=limits), 10)
    assert record.passed is False
    assert (fault.owner, fault.code, record.end_reason) == ("agent", "setup_seconds", "setup_seconds")
    assert record.abandoned == swallows
    if swallows:
        await asyncio.wait(abandoned_tasks())


async def test_the_deadline_of_opening_ends_with_it(desk):
    """A session that is open may take longer than opening it may."""

    async def send(session, turn):
        await asyncio.sleep(0.4)
        return Ended("done")

    record, _ = await attempt_of(desk, Session(send), limits=Limits(setup_seconds=0.2, grace=0.2))
    assert record.end_reason == "agent_ended"


def asking(web, server, *, swallows):
    """Return a custom agent that asks its model until the limits stop it."""

    async def agent(message, ctx):
        while True:
            body = {"model": "m", "messages": [{"role": "user", "content": message}]}
            answer = await web.post(f"{server.url}/chat/completions", json=body)
            if answer.is_success or swallows:
                await ctx.call("get_ticket", ticket_id="T-1")

    return agent


@pytest.mark.parametrize(
    ("faults", "swallows", "limits", "code"),
    [
        (Faults(timeout=1.0, stall_seconds=30), False, Limits(seconds=0.5, grace=0.2), "stalled"),
        (Faults(rate_limit=1.0), False, Limits(seconds=0.5, grace=0.2), "rate_limit"),
        (Faults(rate_limit=1.0), True, Limits(tool_calls=3, seconds=20, grace=0.2), "rate_limit"),
    ],
)
async def test_limits_met_while_a_model_does_not_answer_are_the_providers_fault(desk, faults, swallows, limits, code):
    """A custom agent whose endpoint stalls or refuses until a limit is met has no verdict."""
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=faults) as server, httpx2.AsyncClient(timeout=60) as web:
        record, fault = await attempt_of(desk, asking(web, server, swallows=swallows), limits=limits)
    assert record.passed is None
    assert (fault.owner, fault.code) == ("provider", code)


async def test_limits_met_while_a_model_answers_are_the_agents(desk):
    """A custom agent whose endpoint answers all its requests fails by its own limit."""
    limits = Limits(tool_calls=3, seconds=20, grace=0.2)
    async with ScriptedModelServer(FixedPolicy(["ok"] * 10)) as server, httpx2.AsyncClient() as web:
        record, fault = await attempt_of(desk, asking(web, server, swallows=False), limits=limits)
    assert record.passed is False
    assert (fault.owner, fault.code) == ("agent", "tool_calls")
