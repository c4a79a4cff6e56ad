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


class SecretiveLoop(asyncio.SelectorEventLoop):
    """A loop like uvloop's: its default executor can be set, but not seen."""

    _secret = None
    _closing = False

    def __getattribute__(self, name):
        if name == "_default_executor" and not super().__getattribute__("_closing"):
            raise AttributeError(name)
        return super().__getattribute__(name)

    def set_default_executor(self, executor):
        self._secret = executor

    def run_in_executor(self, executor, function, *args):
        return super().run_in_executor(executor or self._secret, function, *args)

    def close(self):
        self._secret.shutdown()
        self._closing = True
        super().close()


def test_a_loop_that_hides_its_executor_keeps_one_that_works():
    """After two uses of different size, threads still work in a loop whose own executor could not be put back."""

    async def work():
        tokens = to_thread.current_default_thread_limiter().total_tokens
        for trials in (1, 50):
            barrier = threading.Barrier(trials, timeout=20)
            async with roomy_threads(trials), create_task_group() as group:
                for _ in range(trials):
                    group.start_soon(asyncio.to_thread, barrier.wait)
            assert await asyncio.to_thread(lambda: "works") == "works"
            assert to_thread.current_default_thread_limiter().total_tokens == tokens

    loop = SecretiveLoop()
    try:
        loop.run_until_complete(work())
    finally:
        loop.close()
