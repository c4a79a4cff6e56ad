"""Model requests, each held back until the pace of its endpoint allows it: an attempt's, or those of its user and judge."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from tbadapters.core.model_request import is_model_request
from tbadapters.core.pace import Pace, pace_of

SERVED = 5.0  # seconds that a request of the simulated user or the judge is held at most: its answer has a deadline

_keeping: ContextVar[bool] = ContextVar("tbadapters_keeping_pace", default=False)


@contextmanager
def keeping_pace(wanted: bool) -> Iterator[None]:
    """Say whether whoever asks a model in this context keeps the pace of its endpoint."""
    token = _keeping.set(wanted)
    try:
        yield
    finally:
        _keeping.reset(token)


def served() -> PacedRequests | None:
    """Return what holds back the requests of a simulated user or a judge; None where no pace is kept."""
    return PacedRequests(most=SERVED) if _keeping.get() else None


@dataclass(slots=True)
class _Turn:
    """A request's turn: its ticket, and by the clock of its pace, when it was queued and when it was sent."""

    pace: Pace
    ticket: int
    queued: float
    sent: float | None = None


class PacedRequests:
    """Holds model requests back, and tells their endpoints' paces how they were answered.

    Args:
        most: Seconds after which a request is sent out of its turn; None: it waits as long as it takes.
    """

    def __init__(self, *, most: float | None = None) -> None:
        self._most = most
        self._turns: dict[Any, _Turn] = {}
        self._lock = threading.Lock()
        self._held: set[Any] = set()
        self._since = self._seconds = 0.0

    def hold(self, request: Any) -> float:
        """Return the seconds after which to ask again, or 0.0: the request is to be sent now."""
        turn = self._turns.get(request)
        if turn is None:
            if not is_model_request(request):
                return 0.0
            pace = pace_of(f"{request.url.host}:{request.url.port or request.url.scheme}")
            turn = self._turns[request] = _Turn(pace, pace.ticket(), pace.now())
        if turn.sent is not None:
            return 0.0
        seconds = turn.pace.hold(turn.ticket)
        if seconds > 0 and self._most is not None and turn.pace.now() - turn.queued >= self._most:
            turn.pace.go(turn.ticket)
            seconds = 0.0
        if seconds > 0:
            self._holds(request)
        else:
            turn.sent = turn.pace.now()
            self._holds_no_longer(request)
        return seconds

    def answered(self, request: Any, status: int) -> None:
        """Hear how a request was answered."""
        turn = self._turns.get(request)
        if turn is not None and turn.sent is not None:
            turn.pace.answered(status, sent=turn.sent)

    def over(self, request: Any) -> None:
        """Hear that a request ended, failed, or was cancelled while it was held."""
        turn = self._turns.pop(request, None)
        if turn is not None:
            turn.pace.leave(turn.ticket)
            self._holds_no_longer(request)

    def held_seconds(self) -> float:
        """Return for how long at least one request has been held so far: time that an agent can't help."""
        with self._lock:
            return self._seconds + (time.monotonic() - self._since if self._held else 0.0)

    def _holds(self, request: Any) -> None:
        with self._lock:
            if not self._held:
                self._since = time.monotonic()
            self._held.add(request)

    def _holds_no_longer(self, request: Any) -> None:
        with self._lock:
            if request in self._held:
                self._held.remove(request)
                if not self._held:
                    self._seconds += time.monotonic() - self._since
