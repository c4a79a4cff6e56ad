"""What did not end when it was told to: tasks of agents, and threads of their sync code. Nobody waits for them.

A thread can't be cancelled, and a task may swallow its cancellation. Both are counted by the attempt that they belong
to, and whoever closes the event loop or ends the process asks here what is left.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tbadapters.core.context import RunningAttempt

_tasks: set[asyncio.Task[Any]] = set()
_working: dict[object, RunningAttempt] = {}
_lock = threading.Lock()


def abandon(task: asyncio.Task[Any]) -> None:
    """Wait for a task no longer; it is among the ``abandoned_tasks`` until it ends."""
    _tasks.add(task)  # which keeps it alive: a task that is collected while pending is a bug elsewhere
    task.add_done_callback(_tasks.discard)


def abandoned_tasks() -> frozenset[asyncio.Task[Any]]:
    """Return the tasks that did not end when they were cancelled, and have not ended since.

    Whoever closes the event loop must not wait for them, and whoever ends the process may have to end them with it.
    """
    return frozenset(task for task in tuple(_tasks) if not task.done())


@contextmanager
def attempts_thread(attempt: RunningAttempt | None) -> Iterator[None]:
    """Count the current thread to an attempt while the block runs; without an attempt, to nobody."""
    work = object()
    if attempt is not None:
        with _lock:
            _working[work] = attempt
    try:
        yield
    finally:
        with _lock:
            _working.pop(work, None)


def threads_of(attempt: RunningAttempt) -> int:
    """Return how many threads are working for an attempt."""
    with _lock:
        return sum(one is attempt for one in _working.values())
