"""Threads for sync agents: what is raised comes through, and nobody has to wait for one that does not end."""

import asyncio
import subprocess
import sys
import threading

import pytest

from tbadapters.core.daemon_thread import run_in_daemon_thread

ENDLESS = """
import asyncio, time
from tbadapters.core.daemon_thread import run_in_daemon_thread

async def main():
    async with asyncio.timeout(0.2):
        await run_in_daemon_thread(time.sleep, 600)

asyncio.run(asyncio.wait_for(main(), 0.5))
"""


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
async def test_what_is_raised_comes_through(error):
    """Whatever a function raises is raised by the call."""

    def fail():
        raise error

    with pytest.raises(type(error)) as raised:
        await run_in_daemon_thread(fail)
    assert raised.value is error


async def test_a_cancelled_call_waits_for_its_thread_once():
    """The first cancellation lets the call end with its thread; a second one ends it before."""
    release = threading.Event()
    calling = asyncio.get_running_loop().create_task(run_in_daemon_thread(release.wait, 30))
    left = asyncio.get_running_loop().create_task(run_in_daemon_thread(release.wait, 30))
    await asyncio.sleep(0.05)
    for task in (calling, left):
        task.cancel()
    await asyncio.sleep(0.05)
    assert not calling.done()
    left.cancel()
    await asyncio.wait({left}, timeout=5)
    assert left.cancelled()
    release.set()
    await asyncio.wait({calling}, timeout=5)
    assert calling.cancelled()


def test_an_endless_thread_keeps_no_process():
    """A program ends although a function that it cancelled never does."""
    ended = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=30, check=False)
    assert "TimeoutError" in ended.stderr
