"""The asyncio tasks that an agent starts: none outlives its attempt.

A task that is started and not awaited goes on when the agent has answered, in the loop that all trials share. Which
attempt a task belongs to is seen when it is made, by the context that it is made in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from tbadapters.core.abandoned import abandon, abandoned_tasks
from tbadapters.core.context import RunningAttempt, running

NAMED = 5  # tasks that are told of by name

_started: WeakKeyDictionary[RunningAttempt, WeakSet[asyncio.Task[Any]]] = WeakKeyDictionary()
_watching: WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = WeakKeyDictionary()


class _Watch:
    """Makes the tasks of one loop as they were made before, and notes whose they are."""

    def __init__(self, before: Any) -> None:
        self.users = 0
        self.before = before

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, /, **options: Any) -> asyncio.Task[Any]:
        if self.before is None:
            task: asyncio.Task[Any] = asyncio.Task(coro, loop=loop, **options)
        else:
            task = self.before(loop, coro, **options)
        context: Context | None = options.get("context")
        attempt = running.get() if context is None else context.get(running)
        if attempt is not None:
            _started.setdefault(attempt, WeakSet()).add(task)
        return task


@contextmanager
def watched_tasks() -> Iterator[None]:
    """See, while the block runs, which tasks of the running loop belong to which attempt; several users share and nest.

    The loop's own task factory is used as before, and put back; one that somebody sets meanwhile stays.
    """
    loop = asyncio.get_running_loop()
    watch = _watching.get(loop)
    if watch is None:
        watch = _watching[loop] = _Watch(loop.get_task_factory())
        loop.set_task_factory(watch)
    watch.users += 1
    try:
        yield
    finally:
        watch.users -= 1
        if not watch.users:
            del _watching[loop]
            before = watch.before
            if loop.get_task_factory() is watch:
                loop.set_task_factory(before)


async def end_tasks(attempt: RunningAttempt, grace: float) -> tuple[str, ...]:
    """Cancel what an attempt's agent left running, and return its names; what clings is abandoned after ``grace``.

    Args:
        attempt: The attempt, which is over.
        grace: Seconds that the tasks have to end.
    """
    known = abandoned_tasks() | {asyncio.current_task()}
    left = {task for task in _started.pop(attempt, ()) if not task.done() and task not in known}
    if not left:
        return ()
    for task in left:
        task.cancel()
    _, clinging = await asyncio.wait(left, timeout=grace)
    for task in clinging:
        abandon(task)
    for task in left - clinging:
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not complain that nobody did
    return tuple(sorted(map(_name, left)))


def told(names: tuple[str, ...]) -> str:
    """Return one sentence about tasks that were left running."""
    shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
    return f"Tasks that the agent left running were cancelled when its attempt was over: {shown}."


def _name(task: asyncio.Task[Any]) -> str:
    return str(getattr(task.get_coro(), "__qualname__", task.get_name()))
