"""How many trials are under way at once: so many as were asked for, or as many as the model endpoints can feed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from tbadapters.core.records import AttemptRecord

FIRST, MOST = 16, 64  # trials under way when a run begins, and at most
DECREASE = 0.75
HELD = 0.75  # the share of its time that a trial may wait for the pace of its endpoints


class Slots:
    """The slots of a run's trials.

    Without a number it adapts: one more a round (as many trials as there are slots) while all goes well, a quarter fewer
    when a trial had to wait for three quarters of its time until its model might be asked (see ``core.pace``): the endpoint can't
    feed more of them, and each holds a sandbox. It does not grow while the event loop is late, for then it is this
    machine that can't.

    Args:
        concurrency: Trials under way at once, whatever happens; None: it adapts.
        is_late: Says whether the event loop is late.
    """

    def __init__(self, concurrency: int | None, *, is_late: Callable[[], bool] = lambda: False) -> None:
        self.most = concurrency or MOST
        self._adapts = concurrency is None
        self._is_late = is_late
        self._limit = float(concurrency or FIRST)
        self._limiter = anyio.CapacityLimiter(int(self._limit))
        self._rest = 0  # trials that must end before the next one: they began before the last

    @property
    def limit(self) -> int:
        """How many trials may be under way now."""
        return int(self._limiter.total_tokens)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold a slot."""
        async with self._limiter:
            yield

    def ended(self, record: AttemptRecord) -> None:
        """Hear how a trial went; a later one gets more or fewer slots."""
        if not self._adapts:
            return
        self._rest = max(0, self._rest - 1)
        if record.seconds.get("held", 0.0) > HELD * record.seconds.get("total", 0.0):
            if self._rest == 0:
                self._rest = self.limit
                self._set(max(1.0, self._limit * DECREASE))
        elif not self._is_late():
            self._set(min(self._limit + 1 / self._limit, MOST))

    def _set(self, limit: float) -> None:
        self._limit = limit
        self._limiter.total_tokens = max(1, int(limit))
