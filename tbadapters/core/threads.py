"""Enough worker threads for the sync tools of all concurrent trials.

A sync tool waits in its thread for the attempt's answer from the loop. On asyncio's small default executor, fifty
trials with sync tools would wait for threads that wait for each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from anyio import to_thread

from tbadapters.core.workers import Workers

THREADS_A_TRIAL = 4
FEWEST = 32


@dataclass
class _Room:
    """The threads of one loop.

    Attributes:
        size: How many there are at most.
        returns: Whether the loop shows its default executor, so that it can be put back. Others (uvloop's) keep ours,
            open, for the next user.
    """

    users: int
    size: int
    executor: Workers
    executor_before: Any
    tokens_before: float
    returns: bool


_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, _Room] = WeakKeyDictionary()


@asynccontextmanager
async def roomy_threads(trials: int) -> AsyncIterator[None]:
    """Give the running loop threads for this many concurrent trials; several users in one loop share and nest."""
    loop = asyncio.get_running_loop()
    wanted = max(FEWEST, trials * THREADS_A_TRIAL)
    room = _rooms.get(loop)
    if room is None or (room.users == 0 and room.size < wanted):
        room = _rooms[loop] = _furnish(loop, wanted)
    if room.users == 0:
        room.tokens_before = to_thread.current_default_thread_limiter().total_tokens
    room.users += 1
    limiter = to_thread.current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, wanted)
    try:
        yield
    finally:
        room.users -= 1
        if room.users == 0:
            _clear(loop, room)


def _furnish(loop: asyncio.AbstractEventLoop, wanted: int) -> _Room:
    executor = Workers(wanted)
    # asyncio offers a setter for the default executor, but no getter.
    returns = hasattr(loop, "_default_executor")
    before = getattr(loop, "_default_executor", None)
    loop.set_default_executor(executor)
    return _Room(0, wanted, executor, before, to_thread.current_default_thread_limiter().total_tokens, returns)


def _clear(loop: asyncio.AbstractEventLoop, room: _Room) -> None:
    to_thread.current_default_thread_limiter().total_tokens = room.tokens_before
    if not room.returns:
        return
    del _rooms[loop]
    loop._default_executor = room.executor_before  # type: ignore[attr-defined]  # noqa: SLF001  (the setter refuses None)
    room.executor.shutdown(wait=False, cancel_futures=True)
