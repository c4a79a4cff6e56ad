"""What the simulated user and the judge spend: their model requests, told apart from the agent's.

Whoever asks a model on their behalf says so with ``record_request``; whoever runs them collects it by a context
variable, so that their tasks and threads are heard, and two trials never mix.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tbadapters.core.messages import ModelRequest

_collected: ContextVar[list[ModelRequest] | None] = ContextVar("tbadapters_spending", default=None)


@contextmanager
def collect_requests(into: list[ModelRequest]) -> Iterator[None]:
    """Add to ``into`` what is recorded in this context, and in tasks and threads that start from it."""
    token = _collected.set(into)
    try:
        yield
    finally:
        _collected.reset(token)


def record_request(request: ModelRequest) -> None:
    """Record a model request of a simulated user or a judge; outside a trial it is nobody's."""
    collected = _collected.get()
    if collected is not None:
        collected.append(request)
