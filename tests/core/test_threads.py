"""Threads for sync tools: enough of them, and the loop's own put back."""

import asyncio
import threading

from anyio import create_task_group, to_thread

from tbadapters.core.threads import roomy_threads


async def test_many_threads_may_wait_for_each_other():
    """As many sync tools as there are trials can wait at the same time."""
    trials = 50
    barrier = threading.Barrier(trials, timeout=20)
    async with roomy_threads(trials), create_task_group() as group:
        for _ in range(trials):
            group.start_soon(asyncio.to_thread, barrier.wait)
    assert not barrier.broken


async def test_anyio_threads_too():
    """The same holds for anyio's worker threads."""
    trials = 60
    barrier = threading.Barrier(trials, timeout=20)
    async with roomy_threads(trials), create_task_group() as group:
        for _ in range(trials):
            group.start_soon(to_thread.run_sync, barrier.wait)
    assert not barrier.broken


async def test_what_was_found_is_put_back():
    """After nested use the loop's executor and anyio's limit are what they were."""
    loop = asyncio.get_running_loop()
    tokens = to_thread.current_default_thread_limiter().total_tokens
    before = loop._default_executor
    async with roomy_threads(10):
        inside = loop._default_executor
        async with roomy_threads(100):
            assert loop._default_executor is inside
    assert loop._default_executor is before
    assert to_thread.current_default_thread_limiter().total_tokens == tokens
