"""Requests that wait for the pace of their endpoint: all kinds of clients do, and it is not the agent's time."""

import asyncio
import time

import httpx2
import pytest
from anyio import to_thread
from scripted_llm import scripted_llm
from trial_stage import Session, attempt_of

from tbadapters import Ended, Limits, LLMJudge
from tbadapters.core import pace
from tbadapters.core.pace import pace_of
from tbadapters.core.paced_requests import PacedRequests, keeping_pace, served
from tbadapters.core.transport import ProviderFaults, observe_transport
from tbadapters.core.transport_hooks import TransportHook
from tbadapters.testing import FixedPolicy, ScriptedModelServer

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
async def server():
    """A scripted model at which nothing was asked yet; its pace is forgotten at the end."""
    async with ScriptedModelServer(FixedPolicy(["ok"])) as server:
        yield server
    pace._paces.clear()


def slow_down(server, rate):
    """Let a server be asked so many times a second, the next time after one such interval."""
    found = pace_of(server.url.split("/")[2])
    found.rate = found._cut_rate = rate
    found._next = found._opened = time.monotonic()
    found._next += 1 / rate
    return found


async def ask(web, server):
    """Ask the model once."""
    return (await web.post(f"{server.url}/chat/completions", json=BODY)).status_code


async def test_an_async_client_waits(server):
    """Each request is sent at its turn, and the time for which it was held is known."""
    faults = ProviderFaults(PacedRequests())
    async with httpx2.AsyncClient(timeout=30) as web:
        slow_down(server, 5.0)
        began = time.monotonic()
        with faults.observe():
            async with asyncio.TaskGroup() as group:
                for _ in range(3):
                    group.create_task(ask(web, server))
    assert time.monotonic() - began >= 0.5
    assert 0.4 <= faults.held_seconds() <= time.monotonic() - began  # three at once count once
    assert len(server.requests) == 3


async def test_user_and_judge_keep_the_pace_but_not_for_ever(server):
    """Their requests have their turn among the agents', and are sent out of it before their deadline passes."""
    assert served() is None
    found = slow_down(server, 4.0)
    with keeping_pace(True):
        paced = served()
    async with httpx2.AsyncClient(timeout=30) as web:
        with ProviderFaults(paced).observe():
            began = time.monotonic()
            await ask(web, server)
            assert 0.15 <= time.monotonic() - began < 3
        found._next = time.monotonic() + 60
        began = time.monotonic()
        with ProviderFaults(PacedRequests(most=0.2)).observe():
            await ask(web, server)
    assert 0.15 <= time.monotonic() - began < 10
    assert found.waiting == 0


@pytest.mark.parametrize("wanted", [True, False])
async def test_what_a_judge_asks_keeps_the_pace(wanted):
    """A judge's model is asked at the pace of its endpoint where the run adapts, and at once where it does not."""
    async with scripted_llm({"reason": "it says so", "answer": "yes"}) as (model, server):
        slow_down(server, 1.0)
        began = time.monotonic()
        with keeping_pace(wanted):
            await LLMJudge(model, votes=1).ask("It is on hold.", "Is it on hold?")
        assert (time.monotonic() - began >= 0.8) is wanted
    pace._paces.clear()


async def test_a_sync_client_in_a_thread_waits(server):
    """A client in a worker thread waits there."""
    faults = ProviderFaults(PacedRequests())

    def asks():
        with httpx2.Client(timeout=30) as web:
            slow_down(server, 2.0)
            return web.post(f"{server.url}/chat/completions", json=BODY).status_code

    with faults.observe():
        assert await to_thread.run_sync(asks) == 200
    assert faults.held_seconds() >= 0.3


async def test_a_sync_client_on_the_loops_thread_goes_out_of_turn(server, unblocked_loop):
    """Nobody sleeps on the event loop's thread: whoever it waits for could never run."""
    unblocked_loop.deactivate()  # the client itself blocks
    slow_down(server, 0.01)
    with ProviderFaults(PacedRequests()).observe(), httpx2.Client(timeout=30) as web:
        assert web.post(f"{server.url}/chat/completions", json=BODY).status_code == 200


async def test_a_cancelled_request_gives_its_turn_back(server):
    """Who is cancelled while it waits is sent never, and nobody waits behind it."""
    found = slow_down(server, 0.1)
    faults = ProviderFaults(PacedRequests())
    async with httpx2.AsyncClient() as web:
        with faults.observe(), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await ask(web, server)
    assert found.waiting == 0
    assert server.requests == []
    held = faults.held_seconds()
    assert held >= 0.2
    await asyncio.sleep(0.1)
    assert faults.held_seconds() == held


async def test_only_model_requests_of_paced_attempts_wait(server):
    """What is no model request, and what nobody paces, is sent at once."""
    slow_down(server, 0.01)
    async with httpx2.AsyncClient() as web:
        with ProviderFaults(PacedRequests()).observe():
            assert (await web.get(f"{server.url}/models")).status_code == 200
        with ProviderFaults().observe():
            assert await ask(web, server) == 200
        with observe_transport(TransportHook()):
            assert await ask(web, server) == 200


@pytest.mark.parametrize("paced", [True, False])
async def test_waiting_does_not_count_towards_the_deadline(desk, server, paced):
    """An attempt whose requests are held for longer than its deadline goes on; without a pace the same is too slow."""

    async def send(session, turn):
        async with httpx2.AsyncClient(timeout=30) as web:
            slow_down(server, 1.0)
            for _ in range(2):
                await ask(web, server)
            if not paced:
                await asyncio.sleep(3)
        return Ended("done")

    record, _ = await attempt_of(desk, Session(send), limits=Limits(seconds=1.0, grace=0.2), paced=paced)
    assert record.end_reason == ("agent_ended" if paced else "seconds")
    assert (record.seconds.get("held", 0.0) >= 1.5) == paced
