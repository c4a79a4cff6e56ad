"""The pulse of the event loop: who blocks it is named, and nobody else pays for the time that was lost.

All trials of a run share one loop. Code that blocks it (a sync call where `await` was meant) stops them all, and a loop
that is blocked can't say so: a thread looks on and warns. A loop that is blocked without end can't be unblocked from
within its process.
"""

from __future__ import annotations

import asyncio
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import anyio

from tbadapters.core.context import running
from tbadapters.core.logs import get_logger

log = get_logger(__name__)

BEAT = 0.1  # seconds between two beats
LATE = 0.1  # seconds by which the last ten beats or so were late, from which the loop is called late
BLOCKED = 5.0  # seconds without a beat after which whoever blocks the loop is named
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OWN = str(Path(__file__).parent.parent)


@dataclass(frozen=True, slots=True)
class Block:
    """A while in which the event loop was blocked.

    Attributes:
        seconds: How long.
        where: The innermost line of code that is neither Python's nor a library's.
        task: The name of the asyncio task that ran; an attempt's tells its trial.
    """

    seconds: float
    where: str
    task: str


class Pulse:
    """Beats in one event loop, and is watched by a thread.

    Args:
        blocked: Seconds without a beat after which the thread warns.

    Attributes:
        blocks: The blocks that were long enough for a warning and have ended; whoever tells of one takes it away.
    """

    def __init__(self, blocked: float = BLOCKED) -> None:
        self.blocks: list[Block] = []
        self._blocked = blocked
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._last = time.monotonic()
        self._lost: dict[str, float] = {}
        self._lateness = 0.0
        self._seen: Block | None = None
        self._ended = threading.Event()

    def lost_seconds(self, task: str) -> float:
        """Return how long the loop was blocked so far, but for the blocks by a task of this name."""
        lost = sum(seconds for name, seconds in self._lost.items() if name != task)
        seen, late = self._seen, self._late()
        return lost + (late if seen is None or seen.task != task else 0.0)

    @property
    def is_late(self) -> bool:
        """Whether the loop is late: this machine has more to do than it can."""
        return self._lateness > LATE

    def _late(self) -> float:
        return max(0.0, time.monotonic() - self._last - 2 * BEAT)

    async def beat(self) -> None:
        """Beat until cancelled."""
        watching = threading.Thread(target=self._watch, name="tbadapters pulse", daemon=True)
        self._last = time.monotonic()
        watching.start()
        try:
            while True:
                await anyio.sleep(BEAT)
                self._note()
        finally:
            self._ended.set()

    def _note(self) -> None:
        """Count what was lost since the last beat; it is nobody's where the thread did not see whose."""
        late, seen, self._seen = self._late(), self._seen, None
        self._lateness += (time.monotonic() - self._last - BEAT - self._lateness) / 10
        self._last = time.monotonic()
        if late:
            name = seen.task if seen else ""
            self._lost[name] = self._lost.get(name, 0.0) + late
        if seen is not None:
            self.blocks.append(Block(late, seen.where, seen.task))

    def _watch(self) -> None:
        """Look at the loop from a thread, and name what blocks it; once a block."""
        while not self._ended.wait(self._blocked / 10):
            late = self._late()
            if late > self._blocked and self._seen is None:
                seen = Block(late, _where(sys._current_frames().get(self._thread)), self._task())  # noqa: SLF001  (the only way to see another thread's stack)
                self._seen = seen
                log.warning("event_loop_blocked", seconds=round(late, 1), where=seen.where, task=seen.task)

    def _task(self) -> str:
        task = asyncio.current_task(self._loop)
        if task is None:
            return ""
        context = getattr(task, "get_context", None)  # from Python 3.12
        attempt = context().get(running) if context is not None else None
        return attempt_name(attempt.trial.task, attempt.trial.index) if attempt else task.get_name()


def attempt_name(task: str, index: int) -> str:
    """Return the name of the asyncio task in which an attempt's agent runs."""
    return f"{task} trial {index}"


def _where(innermost: FrameType | None) -> str:
    """Return the innermost place in a stack that an agent's author may have written, else the innermost of all."""
    frame, found = innermost, innermost
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*_LIBRARIES, _OWN, "<")):
            found = frame
            break
        frame = frame.f_back
    if found is None:
        return "unknown"
    return f"{found.f_code.co_filename}:{found.f_lineno} in {found.f_code.co_qualname}"


_pulse: ContextVar[Pulse | None] = ContextVar("tbadapters_pulse", default=None)


@contextmanager
def feel(pulse: Pulse) -> Iterator[None]:
    """Let what runs in this context, and in tasks that start from it, lose no time by what others block."""
    token = _pulse.set(pulse)
    try:
        yield
    finally:
        _pulse.reset(token)


def lost_seconds(task: str) -> float:
    """Return how long the loop was blocked so far by others than a task of this name; 0.0 where no pulse is felt."""
    pulse = _pulse.get()
    return pulse.lost_seconds(task) if pulse else 0.0
