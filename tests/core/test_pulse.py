"""Whoever blocks the event loop is named, and only the one who does pays for it."""

import asyncio
import logging
import time
from functools import partial

import anyio
import pytest
from trial_stage import Session, attempt_of

from tbadapters import Ended, Limits
from tbadapters.core.pulse import Pulse, attempt_name, feel


async def with_pulse(work, *, blocked=0.3):
    """Do work in a loop that has a pulse; return the pulse."""
    pulse = Pulse(blocked)
    with feel(pulse):
        async with anyio.create_task_group() as beside:
            beside.start_soon(pulse.beat)
            await anyio.sleep(0.05)
            await work()
            await anyio.sleep(0.3)
            beside.cancel_scope.cancel()
    return pulse


def block_for(seconds):
    """Block the loop as an agent's computation does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def test_what_blocks_the_loop_is_named(caplog):
    """While the loop is blocked, a warning names the line of code and the task; when it is over, its length is known."""

    async def agent():
        block_for(1.0)

    with caplog.at_level(logging.WARNING):

        async def work():
            await asyncio.get_running_loop().create_task(agent(), name="desk/hold/1 trial 3")

        pulse = await with_pulse(work)
    (block,) = pulse.blocks
    assert 0.7 <= block.seconds <= 3
    assert f"{__file__}:" in block.where
    assert block.where.endswith("in block_for")
    assert block.task == "desk/hold/1 trial 3"
    (warning,) = caplog.records
    for part in ("event_loop_blocked", "block_for", "desk/hold/1 trial 3"):
        assert part in warning.getMessage()


async def test_a_loop_that_is_busy_is_not_called_blocked(caplog):
    """Work that lets others have their turn is no block."""

    async def work():
        for _ in range(50):
            block_for(0.01)
            await asyncio.sleep(0)

    pulse = await with_pulse(work)
    assert pulse.blocks == []
    assert caplog.records == []


@pytest.mark.parametrize("blocks", [True, False])
async def test_lost_time_is_not_the_others(desk, blocks):
    """A deadline that passed while another trial blocked the loop fails nobody; the one who blocked it pays."""

    async def waiting(session, turn):
        await asyncio.sleep(0.5)
        return Ended("done")

    async def blocking(session, turn):
        if blocks:
            block_for(1.5)
        await asyncio.sleep(0.1)
        return Ended("done")

    records = {}

    async def one(index, send):
        record, _ = await attempt_of(desk, Session(send), index=index, limits=Limits(seconds=1.0, grace=0.2))
        records[index] = record.end_reason

    async def work():
        async with anyio.create_task_group() as group:
            group.start_soon(partial(one, 0, waiting))
            await anyio.sleep(0.05)
            group.start_soon(partial(one, 1, blocking))

    await with_pulse(work)
    assert records == {0: "agent_ended", 1: "seconds" if blocks else "agent_ended"}
    assert attempt_name("t", 1) == "t trial 1"
