"""An event loop of one's own that ends although an agent does not.

``asyncio.run`` cancels what is left and waits for it without a deadline. An agent that swallows its cancellation was
abandoned by its trial, and must not hold the process either.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tbadapters.core.abandoned import abandon

T = TypeVar("T")
SETTLING = 2.0  # seconds that tasks have to end when the loop's work is done

_kept: list[asyncio.Runner] = []


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Do what ``asyncio.run`` does, but wait for what is left only ``SETTLING`` seconds; its loop then stays open."""
    runner = asyncio.Runner()
    try:
        return runner.run(work)
    finally:
        if _settled(runner.get_loop()):
            runner.close()
        else:
            asyncio.set_event_loop(None)  # whoever comes next makes one of its own


def run_kept(work: Coroutine[Any, Any, T]) -> T:
    """Do the same on one loop that is kept for the next call.

    Clients are bound to the loop that they first worked on, and some are cached by their library: on a loop of its own
    the second of two calls would meet the first one's connections, closed.
    """
    if threading.current_thread() is not threading.main_thread():
        return run_to_end(work)
    runner = _kept.pop() if _kept else asyncio.Runner()
    try:
        return runner.run(work)
    finally:
        if _settled(runner.get_loop()):
            _kept.append(runner)
        asyncio.set_event_loop(None)  # whoever comes next makes one of its own


@atexit.register
def _close_kept() -> None:
    while _kept:
        _kept.pop().close()


def run_apart(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return a coroutine's result from a loop in another thread, waiting for it: here one may be running."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(make()))
        except BaseException as error:  # noqa: BLE001  (raised in the caller's thread)
            errors.append(error)

    thread = threading.Thread(target=run, name="tbadapters apart")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def in_a_loop() -> bool:
    """Say whether an event loop runs in this thread, which may not be blocked then."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _settled(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancel what is left and give it a while; return whether all of it ended."""
    tasks = asyncio.all_tasks(loop)
    if not tasks:
        return True
    for task in tasks:
        task.cancel()
    _, pending = loop.run_until_complete(asyncio.wait(tasks, timeout=SETTLING))
    for task in pending:
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001  (that it is left is known)
        abandon(task)
    return not pending
