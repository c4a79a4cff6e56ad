"""The pace at which an endpoint is asked: found when it refuses, kept near what it takes, forgotten when it does not."""

import heapq
import random
from itertools import count

import pytest

from tbadapters.core.pace import FORGOTTEN, Pace, pace_of, slowed


class Endpoint:
    """A simulated endpoint, its clients and their clock: no time passes but the simulation's.

    Args:
        takes: Requests a second that it takes; it saves up those of one second.
        refuses: The share of requests that it refuses whatever it is asked.
        clients: How many ask it, each one request after the other.
        seconds: How long an answer takes; a refusal is faster.
    """

    def __init__(self, *, takes=1e9, refuses=0.0, clients=16, seconds=0.05):
        self.now = 0.0
        self.pace = Pace(lambda: self.now)
        self.taken, self.refused = [], []
        self.takes, self._refuses, self._seconds = takes, refuses, seconds
        self._random = random.Random(7)
        self._saved, self._filled = takes, 0.0
        self._events, self._order = [], count()
        for _ in range(clients):
            self._at(0.0, self._ask)

    def runs(self, seconds):
        """Let so much time pass; return the requests a second that were taken and refused in it."""
        start, end = self.now, self.now + seconds
        while self._events and self._events[0][0] < end:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = end
        return tuple(sum(at >= start for at in found) / seconds for found in (self.taken, self.refused))

    def _at(self, when, event):
        heapq.heappush(self._events, (when, next(self._order), event))

    def _ask(self, ticket=None):
        ticket = self.pace.ticket() if ticket is None else ticket
        wait = self.pace.hold(ticket)
        if wait > 0:
            self._at(self.now + wait + self._random.random() * 0.003, lambda: self._ask(ticket))
            return
        sent, takes = self.now, self._takes()
        status, seconds = (200, self._seconds * (0.5 + self._random.random())) if takes else (429, 0.005)
        self._at(self.now + seconds, lambda: self._answer(status, sent))

    def _takes(self):
        self._saved = min(self.takes, self._saved + (self.now - self._filled) * self.takes)
        self._filled = self.now
        if self._saved < 1 or self._random.random() < self._refuses:
            return False
        self._saved -= 1
        return True

    def _answer(self, status, sent):
        (self.taken if status == 200 else self.refused).append(self.now)
        self.pace.answered(status, sent=sent)
        self._at(self.now + (0.001 if status == 200 else 0.5 + self._random.random() / 2), self._ask)


@pytest.mark.parametrize(
    ("takes", "clients", "seconds"), [(50, 16, 0.01), (50, 200, 0.01), (20, 64, 1.0), (5, 16, 0.5), (300, 64, 0.1)]
)
def test_an_endpoint_that_takes_so_many_a_second_gets_them(takes, clients, seconds):
    """Whatever the clients and the time of an answer, throughput settles near what is taken, with few refusals."""
    endpoint = Endpoint(takes=takes, clients=clients, seconds=seconds)
    endpoint.runs(10)
    taken, refused = endpoint.runs(30)
    assert 0.95 * takes <= taken <= 1.05 * takes
    assert refused <= 0.25 * takes


def test_two_hundred_clients_make_no_storm():
    """Five seconds after the first refusals no more is asked than what is taken and a quarter."""
    endpoint = Endpoint(takes=10, clients=200, seconds=0.01)
    endpoint.runs(5)
    for _ in range(20):
        taken, refused = endpoint.runs(3)
        assert taken + refused <= 1.5 * endpoint.takes


@pytest.mark.parametrize(("clients", "seconds"), [(64, 0.05), (16, 1.0)])
def test_one_refusal_in_ten_is_no_limit(clients, seconds):
    """An endpoint that refuses a tenth of its requests whatever it is asked is not slowed down by it."""
    free, refusing = (Endpoint(clients=clients, seconds=seconds, refuses=refuses) for refuses in (0.0, 0.1))
    (most, _), (taken, refused) = free.runs(60), refusing.runs(60)
    lost = refused * (0.75 + seconds)  # clients that wait to try again ask nothing
    assert taken >= 0.85 * (1 - lost / clients) * most


def test_a_limit_that_is_lifted_is_forgotten():
    """When an endpoint takes all again, the pace grows until it is free."""
    endpoint = Endpoint(takes=20, clients=16, seconds=0.2)
    endpoint.runs(10)
    assert endpoint.pace.rate is not None
    endpoint.takes = 1e9
    endpoint.runs(400)
    assert endpoint.pace.rate is None


def test_a_pace_of_long_ago_is_forgotten():
    """An endpoint that was not asked for a while is asked freely."""
    endpoint = Endpoint(takes=5, clients=16)
    endpoint.runs(10)
    assert endpoint.pace.rate is not None
    endpoint.now += FORGOTTEN + 1
    assert endpoint.pace.hold(endpoint.pace.ticket()) == 0.0
    assert endpoint.pace.rate is None


def test_who_waits_no_longer_takes_no_turn():
    """Requests that are taken back leave no gap and keep nobody waiting."""
    endpoint = Endpoint(takes=5, clients=0)
    endpoint.pace.rate = 2.0
    waiting = [endpoint.pace.ticket() for _ in range(50)]
    sent = [ticket for ticket in waiting if endpoint.pace.hold(ticket) == 0.0]
    for ticket in waiting:
        endpoint.pace.leave(ticket)
    assert len(sent) <= 2
    assert endpoint.pace.waiting == 0
    endpoint.now += 1.0
    assert endpoint.pace.hold(endpoint.pace.ticket()) == 0.0


def test_all_trials_of_a_process_share_the_pace_of_an_endpoint():
    """Whoever asks for the pace of an endpoint gets the same; another endpoint has its own, and only slow ones are told."""
    one, other = pace_of("test-pace.example:443"), pace_of("test-pace.example:80")
    assert one is pace_of("test-pace.example:443")
    assert one is not other
    one.rate = 2.5
    try:
        assert slowed()["test-pace.example:443"] == 2.5
        assert "test-pace.example:80" not in slowed()
    finally:
        one.rate = None
