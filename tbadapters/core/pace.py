"""How fast a model endpoint is asked: additive increase, multiplicative decrease, shared by all trials of a process.

An endpoint that refuses nothing is asked as fast as the trials under way ask it. One that refuses (429, or overloaded)
is asked so many requests a second: a little less than it took when it last refused, then slowly more until it refuses
again. The waiting is done before a request is sent, so that it costs neither requests nor the agent's time.

Requests a second are controlled, not requests under way: providers limit the former, and an endpoint that answers at
once would be asked far too often by a single request under way at a time.
"""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left, insort
from collections.abc import Callable
from itertools import count

REFUSALS = frozenset({429, 503, 529})  # HTTP: too many requests, unavailable, and what some providers call overloaded
WINDOW = 1.0  # seconds over which requests and refusals are counted
FEWEST = 10  # requests that a window needs, or ten times its length
TOLERATED = 0.12  # the share of refusals that says nothing: some endpoints refuse now and then whatever they are asked
DECREASE = 0.95  # of what the endpoint took in a window in which it refused
INCREASE = 0.03  # of the pace at the last decrease, added each second
CREDIT = 0.1  # seconds by which requests that were sent too late are made up for
SLOWEST = 0.05  # requests a second
NAP = 1.0  # seconds after which whoever waits looks again: the pace may have changed
FORGOTTEN = 60.0  # seconds without a request after which nothing is known of an endpoint any more


class Pace:
    """The pace at which one endpoint is asked. Safe to use from any thread.

    Args:
        clock: Seconds that only grow.

    Attributes:
        rate: Requests a second; None while the endpoint sets no limit.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate: float | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._tickets = count()
        self._waiting: list[int] = []
        self._next = self._opened = self._cut = self._last = clock()
        self._cut_rate = 0.0
        self._sent = self._refused = 0

    @property
    def waiting(self) -> int:
        """How many requests wait to be sent."""
        return len(self._waiting)

    def ticket(self) -> int:
        """Queue a request; ``hold`` says when it may be sent."""
        with self._lock:
            ticket = next(self._tickets)
            insort(self._waiting, ticket)
            return ticket

    def hold(self, ticket: int) -> float:
        """Return the seconds after which to ask again, or 0.0: the request is to be sent now."""
        with self._lock:
            now = self._clock()
            self._look(now)
            if self.rate is not None:
                due = self._next + bisect_left(self._waiting, ticket) / self.rate
                if self._next > now:
                    return min(max(due - now, 0.001), NAP)
                self._next = max(self._next, now - CREDIT) + 1 / self.rate
            self._waiting.remove(ticket)
            self._sent += 1
            self._last = now
            return 0.0

    def go(self, ticket: int) -> None:
        """Let a request be sent out of its turn; those that wait are sent so much later."""
        with self._lock:
            self._waiting.remove(ticket)
            self._sent += 1
            self._last = self._clock()
            if self.rate is not None:
                self._next += 1 / self.rate

    def leave(self, ticket: int) -> None:
        """Take back a request that waits no longer; one that was sent is none."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)

    def answered(self, status: int, *, sent: float) -> None:
        """Hear how the endpoint answered a request.

        Args:
            status: The HTTP status.
            sent: When it was sent, by the clock; what was sent before the last decrease says nothing of the new pace.
        """
        with self._lock:
            if status in REFUSALS and sent >= self._cut:
                self._refused += 1
            self._look(self._clock())

    def now(self) -> float:
        """Return the time by the pace's clock."""
        return self._clock()

    def _look(self, now: float) -> None:
        """Set the pace by what was seen since it was last set."""
        elapsed = now - self._opened
        if elapsed < WINDOW or (self._sent < FEWEST and elapsed < 10 * WINDOW):
            return
        if now - self._last > FORGOTTEN:
            self.rate = None
        elif self._refused > _by_chance(self._sent):
            taken = max(self._sent - self._refused, 0) or self._sent / 2
            self.rate = self._cut_rate = max(SLOWEST, DECREASE * taken / elapsed)
            self._cut, self._next = now, now + 1 / self.rate
        elif self.rate is not None:
            asked_for = self._sent > self.rate * elapsed / 2
            self.rate += INCREASE * self._cut_rate * elapsed
            if not (asked_for or self._waiting or self._refused) and now - self._cut > 10 * WINDOW:
                self.rate = None
        self._opened, self._sent, self._refused = now, 0, 0


def _by_chance(sent: int) -> float:
    """Return how many refusals are no sign of a limit: the tolerated share and two standard deviations of it."""
    return TOLERATED * sent + 2 * math.sqrt(TOLERATED * sent)


_paces: dict[str, Pace] = {}
_lock = threading.Lock()


def pace_of(endpoint: str) -> Pace:
    """Return the pace of an endpoint, named by host and port: the same for the whole process."""
    with _lock:
        return _paces.setdefault(endpoint, Pace())


def slowed() -> dict[str, float]:
    """Return the endpoints that limit how fast they are asked, with the requests a second that each takes."""
    with _lock:
        found = {endpoint: pace.rate for endpoint, pace in _paces.items()}
    return {endpoint: rate for endpoint, rate in found.items() if rate is not None}
