"""Faults that a scripted model server injects."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from tbadapters.testing.turns import FAULT_KINDS, FaultKind

FaultPlan = Callable[[int], FaultKind | None]

_SETTINGS = frozenset({"stall_seconds", "retry_after", "seed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often each kind of fault happens, as a probability per request; together at most 1.

    The draw for request number n depends on ``seed`` and n alone. For an exact sequence pass the server a callable
    ``request_number -> kind or None`` instead; to fail one conversation only, let the policy return
    ``Reply(fault=...)``.

    Attributes:
        stall_seconds: How long a ``timeout`` keeps silent before the connection is cut, seconds.
        retry_after: What a 429 asks to wait, seconds.
        seed: Seeds the draws.
    """

    rate_limit: float = 0.0
    quota: float = 0.0
    server_error: float = 0.0
    overloaded: float = 0.0
    request_timeout: float = 0.0
    conflict: float = 0.0
    forbidden: float = 0.0
    context_length: float = 0.0
    timeout: float = 0.0
    cut_stream: float = 0.0
    malformed_json: float = 0.0
    refusal: float = 0.0
    content_filter: float = 0.0
    stall_seconds: float = 30.0
    retry_after: float = 0.02
    seed: int = 0

    def __post_init__(self) -> None:
        rates = [getattr(self, kind) for kind in FAULT_KINDS]
        if any(rate < 0 for rate in rates) or sum(rates) > 1 + 1e-9:
            raise ValueError("Faults: probabilities must be at least 0, and at most 1 together.")

    def fault_for(self, request_number: int) -> FaultKind | None:
        """Return the fault of a request (numbered from 0), or None."""
        draw = random.Random(f"{self.seed}/{request_number}").random()  # noqa: S311 - no secret, must be repeatable
        for kind in FAULT_KINDS:
            draw -= getattr(self, kind)
            if draw < 0:
                return kind
        return None


class RateLimit:
    """A fault plan: so many requests a second are taken, 429 answers the others. What one second takes may be saved up.

    Args:
        takes: Requests a second.

    Attributes:
        taken: When requests were taken, in seconds of a clock that only grows.
        refused: When they were refused.
    """

    def __init__(self, takes: float) -> None:
        self.taken: list[float] = []
        self.refused: list[float] = []
        self._takes = takes
        self._saved, self._filled = max(1.0, takes), time.monotonic()

    def __call__(self, request_number: int) -> FaultKind | None:
        """Take or refuse a request; they are answered one at a time."""
        del request_number
        now = time.monotonic()
        self._saved = min(max(1.0, self._takes), self._saved + (now - self._filled) * self._takes)
        self._filled = now
        if self._saved < 1:
            self.refused.append(now)
            return "rate_limit"
        self._saved -= 1
        self.taken.append(now)
        return None


assert {f.name for f in fields(Faults)} == set(FAULT_KINDS) | _SETTINGS  # noqa: S101 - the two lists must agree


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error answer of the provider: status, the body's ``error`` object."""

    status: int
    message: str
    type: str
    code: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The body, as OpenAI writes it."""
        return {"error": {"message": self.message, "type": self.type, "param": None, "code": self.code}}


HTTP_ERRORS: dict[str, HttpError] = {
    "rate_limit": HttpError(429, "Rate limit reached for requests.", "requests", "rate_limit_exceeded"),
    "quota": HttpError(429, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota"),
    "server_error": HttpError(500, "The server had an error while processing your request.", "server_error"),
    "overloaded": HttpError(503, "The engine is currently overloaded.", "server_error", "overloaded"),
    "request_timeout": HttpError(408, "The request timed out.", "request_timeout"),
    "conflict": HttpError(409, "The request conflicts with another one.", "conflict"),
    "forbidden": HttpError(403, "You are not allowed to use this model.", "invalid_request_error", "forbidden"),
    "context_length": HttpError(
        400, "This model's maximum context length is exceeded.", "invalid_request_error", "context_length_exceeded"
    ),
    "key": HttpError(401, "Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    "model": HttpError(404, "The model does not exist.", "invalid_request_error", "model_not_found"),
}
