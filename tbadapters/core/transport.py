"""What a run learns from the transport: the faults of model endpoints, where they happen.

A framework may swallow a provider's fault into a polite sentence (a sub-agent that is called as a tool does), so that
nothing propagates. ``ProviderFaults`` sees the HTTP answer itself and knows by a context variable whose it is.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from tbadapters.core.errors import AccessFault, ProviderFault, describe
from tbadapters.core.provider_errors import ACCESS_CODES, access_code, provider_code, retry_after
from tbadapters.core.transport_hooks import TransportHook, observe_transport

__all__ = ["ProviderFaults", "SeenFault", "TransportHook", "observe_transport"]

_OWN_MISTAKES = frozenset({"LocalProtocolError", "UnsupportedProtocol"})


@dataclass(frozen=True, slots=True)
class SeenFault:
    """A fault of a model endpoint.

    Attributes:
        host: The endpoint's host.
        code: ``rate_limit``, ``server_error``, ``timeout``, ``conflict``, ``connection``; or, where another attempt
            can't help, ``authentication``, ``permission``, ``model_not_found`` or the provider's own code.
        status: The HTTP status, or None where there was no answer.
        retry_after: Seconds that the provider asked to wait.
        access: Whether a quota, a key or a model's name is at fault.
        conversation: A digest of what the model was asked, whichever model it was.
        detail: One line: what the provider or the transport said.
        recovered: Whether a later request with the same conversation succeeded.
    """

    host: str
    code: str
    status: int | None
    retry_after: float | None
    access: bool
    conversation: str
    detail: str = ""
    recovered: bool = False

    def fault(self) -> ProviderFault:
        """Return it as an exception."""
        what = f"{self.host} answered {self.status}" if self.status else f"{self.host} did not answer"
        kind = AccessFault if self.access else ProviderFault
        return kind(f"{what} ({self.detail or self.code}).", code=self.code, retry_after=self.retry_after)


class ProviderFaults:
    """The provider's faults in one attempt."""

    def __init__(self) -> None:
        self._seen: list[SeenFault] = []
        self._places: dict[Any, int] = {}
        self._open: dict[Any, float] = {}
        self._given_up = 0.0

    @contextmanager
    def observe(self) -> Iterator[None]:
        """Record the faults of model requests made in this context, and in tasks and threads that start from it."""
        token = _recording.set(self)
        try:
            with observe_transport(_HOOK):
                yield
        finally:
            _recording.reset(token)

    @property
    def seen(self) -> tuple[SeenFault, ...]:
        """All faults, in the order in which they happened."""
        return tuple(self._seen)

    def unrecovered(self) -> ProviderFault | None:
        """Return the fault that was not mended by a later request, or None; an ``AccessFault`` before others."""
        left = [seen for seen in self._seen if not seen.recovered]
        left.sort(key=lambda seen: seen.access)
        return left[-1].fault() if left else None

    def waiting_seconds(self) -> float:
        """Return how long the model request that waited longest without an end has waited, 0.0 where there is none.

        A request that is still open waits until now; one that was cancelled (by the attempt's deadline, say) waited
        until then.
        """
        now = time.monotonic()
        return max([self._given_up, *(now - began for began in tuple(self._open.values()))])

    def began(self, request: Any) -> None:
        """Note a request that is about to be sent."""
        if _conversation(request) is not None:
            self._open[request] = time.monotonic()

    def answered(self, request: Any, status: int, headers: Mapping[str, str]) -> None:
        """Note an error status; its body may never be read."""
        refused = access_code(status)
        code = refused or provider_code(status)
        conversation = _conversation(request) if code else None
        if code and conversation:
            self._places[request] = len(self._seen)
            wait = retry_after(headers)
            self._seen.append(SeenFault(request.url.host, code, status, wait, refused is not None, conversation))

    def ended(self, request: Any, status: int, body: bytes) -> None:
        """Read what the provider says about its error, or note that a conversation went on."""
        self._open.pop(request, None)
        if 300 <= status < 400:  # noqa: PLR2004 - HTTP: a redirection is no answer
            return
        place = self._places.pop(request, None)
        if place is not None:
            code, message = _error_of(body)
            seen = self._seen[place]
            if code in ACCESS_CODES:
                seen = replace(seen, code=code, access=True)
            self._seen[place] = replace(seen, detail=message)
        elif self._seen:
            conversation = _conversation(request)
            self._seen = [replace(s, recovered=s.recovered or s.conversation == conversation) for s in self._seen]

    def failed(self, request: Any, error: BaseException) -> None:
        """Note a broken connection or a timeout; a cancelled request is nobody's fault."""
        began = self._open.pop(request, None)
        code = _by_error(error)
        if began is not None and code is None:
            self._given_up = max(self._given_up, time.monotonic() - began)
        conversation = _conversation(request) if code else None
        if self._places.pop(request, None) is None and code and conversation:
            self._seen.append(SeenFault(request.url.host, code, None, None, False, conversation, describe(error)))


_recording: ContextVar[ProviderFaults | None] = ContextVar("tbadapters_provider_faults", default=None)


class _FaultHook(TransportHook):
    """Tells each event to the attempt in whose context the request was made."""

    def request(self, request: Any) -> None:
        if (faults := _recording.get()) is not None:
            faults.began(request)

    def response(self, request: Any, status: int, headers: Mapping[str, str]) -> None:
        if (faults := _recording.get()) is not None:
            faults.answered(request, status, headers)

    def ended(self, request: Any, status: int, body: bytes) -> None:
        if (faults := _recording.get()) is not None:
            faults.ended(request, status, body)

    def failed(self, request: Any, error: BaseException) -> None:
        if (faults := _recording.get()) is not None:
            faults.failed(request, error)


_HOOK = _FaultHook()


def _by_error(error: BaseException) -> str | None:
    names = {base.__name__ for base in type(error).__mro__}
    if names & _OWN_MISTAKES:
        return None
    if "TimeoutException" in names:
        return "timeout"
    return "connection" if "TransportError" in names else None


def _conversation(request: Any) -> str | None:
    """Return a digest of what a model is asked, or None if the request is no model request."""
    if request.method != "POST":
        return None
    try:
        body = json.loads(request.content)
    except (ValueError, RuntimeError):  # no JSON; or a body that is streamed and can't be read again
        return None
    if not isinstance(body, dict) or "model" not in body or not ("messages" in body or "input" in body):
        return None
    asked = [body.get(name) for name in ("messages", "input", "instructions", "system", "previous_response_id")]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _error_of(body: bytes) -> tuple[str | None, str]:
    """Return the code and the message of an error body."""
    try:
        error = json.loads(body)["error"]
        return error.get("code") or error.get("type"), " ".join(str(error.get("message") or "").split())[:300]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, ""
