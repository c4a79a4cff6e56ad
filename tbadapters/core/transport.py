"""What a run learns from the transport: the faults of model endpoints, where they happen.

A framework may swallow a provider's fault into a polite sentence (a sub-agent that is called as a tool does), so that
nothing propagates. ``ProviderFaults`` sees the HTTP answer itself and knows by a context variable whose it is.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tbadapters.core.errors import AccessFault, ProviderFault, describe
from tbadapters.core.model_request import Asked, asked, is_model_request
from tbadapters.core.paced_requests import PacedRequests
from tbadapters.core.provider_errors import meaning_of, retry_after
from tbadapters.core.redaction import learn_keys
from tbadapters.core.transport_hooks import TransportHook, observe_transport

__all__ = ["ProviderFaults", "SeenFault", "TransportHook", "observe_transport", "unobserved"]

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
        asked: What the model was asked.
        detail: One line: what the provider or the transport said.
        recovered: Whether the agent overcame it (see ``ProviderFaults``).
    """

    host: str
    code: str
    status: int | None
    retry_after: float | None
    access: bool
    asked: Asked
    detail: str = ""
    recovered: bool = False

    def fault(self, *, swallowed: bool = False) -> ProviderFault:
        """Return it as an exception; where an agent swallowed it, refused access need not stop a run."""
        what = f"{self.host} answered {self.status}" if self.status else f"{self.host} did not answer"
        kind = AccessFault if self.access and not swallowed else ProviderFault
        return kind(f"{what} ({self.detail or self.code}).", code=self.code, retry_after=self.retry_after)


class _Open(NamedTuple):
    """A model request under way: when it began (monotonic seconds), and how many faults had been seen by then."""

    began: float
    behind: int


class ProviderFaults:
    """The provider's faults in one attempt.

    A fault counts as recovered when a model request that began after it succeeded, and that request either

    - asks the same again: the same texts wait for an answer, under the same instructions or the same tools. So do a
      retry, a fallback to another model or another API, and a request with a trimmed history;
    - or goes on from it: it has the same instructions and tools, and holds what waited there (the agent apologised to
      the user and got over it in a later turn).

    A sub-agent's fault that its caller was told in a polite sentence is not recovered by the caller's own requests:
    what waits in them is the tool's result, and their instructions or tools are others.

    Args:
        paced: Holds the requests back as their endpoints' paces say; None: they are sent when they are made.

    Attributes:
        retries: How many requests asked again what had failed: the clients' own retries, which are the agent's.
    """

    def __init__(self, paced: PacedRequests | None = None) -> None:
        self.retries = 0
        self._paced = paced
        self._seen: list[SeenFault] = []
        self._places: dict[Any, int] = {}
        self._open: dict[Any, _Open] = {}
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

    def unrecovered(self, *, swallowed: bool = False) -> ProviderFault | None:
        """Return the fault that was not recovered, or None; one of refused access before others.

        Args:
            swallowed: Whether the agent went on as if nothing had happened. Refused access is no ``AccessFault``
                then: the agent may well live without that request, and only its attempt is without a verdict.
        """
        left = [seen for seen in self._seen if not seen.recovered]
        left.sort(key=lambda seen: seen.access)
        return left[-1].fault(swallowed=swallowed) if left else None

    def waiting_seconds(self) -> float:
        """Return how long the model request that waited longest without an end has waited, 0.0 where there is none.

        A request that is still open waits until now; one that was cancelled (by the attempt's deadline, say) waited
        until then.
        """
        now = time.monotonic()
        return max([self._given_up, *(now - one.began for one in tuple(self._open.values()))])

    def counted(self) -> dict[str, int]:
        """Return how many faults of each code were seen, the overcome ones among them."""
        return dict(Counter(seen.code for seen in self._seen).most_common())

    @property
    def paced(self) -> bool:
        """Whether requests are held back as their endpoints' paces say."""
        return self._paced is not None

    def held_seconds(self) -> float:
        """Return how long requests were held back so far, by the wall clock."""
        return self._paced.held_seconds() if self._paced else 0.0

    def hold(self, request: Any) -> float:
        """Return the seconds after which to ask again whether a request may be sent, or 0.0: it may."""
        return self._paced.hold(request) if self._paced else 0.0

    def began(self, request: Any) -> None:
        """Note a request that is about to be sent."""
        if is_model_request(request):
            self._open[request] = _Open(time.monotonic(), len(self._seen))
            left = [seen.asked for seen in self._seen if not seen.recovered]
            if left and (now := asked(request)) is not None:
                self.retries += any(now.asks_again(before) for before in left)

    def answered(self, request: Any, status: int, headers: Mapping[str, str]) -> None:
        """Note an error status; its body may never be read."""
        if self._paced:
            self._paced.answered(request, status)
        meaning = meaning_of(status)
        if meaning is not None and (what := asked(request)) is not None:
            self._places[request] = len(self._seen)
            access = meaning.owner == "access"
            self._seen.append(SeenFault(request.url.host, meaning.code, status, retry_after(headers), access, what))

    def ended(self, request: Any, status: int, body: bytes) -> None:
        """Read what the provider says about its error, or note that a conversation went on."""
        if self._paced:
            self._paced.over(request)
        began = self._open.pop(request, None)
        place = self._places.pop(request, None)
        error = _Error.read(body)
        if place is not None:
            seen = replace(self._seen[place], detail=error.message if error else "")
            if error and (meaning := meaning_of(status, error.codes)) and meaning.owner == "access":
                seen = replace(seen, code=meaning.code, access=True)
            self._seen[place] = seen
        elif began and not 300 <= status < 400:  # noqa: PLR2004 - HTTP: a redirection is no answer
            meaning = meaning_of(None, error.codes) if error and status < 300 else None  # noqa: PLR2004 - HTTP
            if meaning and meaning.owner != "agent" and error and (what := asked(request)):
                host, access = request.url.host, meaning.owner == "access"
                self._seen.append(SeenFault(host, meaning.code, status, None, access, what, error.message))
            else:
                self._went_on(request, began.behind)

    def failed(self, request: Any, error: BaseException) -> None:
        """Note a broken connection or a timeout; a cancelled request is nobody's fault."""
        if self._paced:
            self._paced.over(request)
        began = self._open.pop(request, None)
        code = _by_error(error)
        if began is not None and code is None:
            self._given_up = max(self._given_up, time.monotonic() - began.began)
        if self._places.pop(request, None) is None and code and (what := asked(request)):
            self._seen.append(SeenFault(request.url.host, code, None, None, False, what, describe(error)))

    def _went_on(self, request: Any, behind: int) -> None:
        """Mark what a request that succeeded recovered, among the first ``behind`` faults: those before it began."""
        if all(seen.recovered for seen in self._seen[:behind]) or (now := asked(request)) is None:
            return
        for place, seen in enumerate(self._seen[:behind]):
            if not seen.recovered and (now.asks_again(seen.asked) or now.goes_on_from(seen.asked)):
                self._seen[place] = replace(seen, recovered=True)


_recording: ContextVar[ProviderFaults | None] = ContextVar("tbadapters_provider_faults", default=None)


@contextmanager
def unobserved() -> Iterator[None]:
    """Let the requests made in this context be none of the agent's, such as those of its simulated user."""
    token = _recording.set(None)
    try:
        yield
    finally:
        _recording.reset(token)


class _FaultHook(TransportHook):
    """Tells each event to the attempt in whose context the request was made."""

    reads_answers = True

    def may_hold(self) -> bool:
        return (faults := _recording.get()) is not None and faults.paced

    def hold(self, request: Any) -> float:
        return faults.hold(request) if (faults := _recording.get()) is not None else 0.0

    def request(self, request: Any) -> None:
        learn_keys(request.headers)
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


@dataclass(frozen=True, slots=True)
class _Error:
    """What a provider says about its error: its codes and one line."""

    codes: tuple[object, ...]
    message: str

    @classmethod
    def read(cls, body: bytes) -> _Error | None:
        """Return the error in a body, or None where there is none."""
        if b'"error"' not in body:
            return None
        try:
            error = json.loads(body)["error"]
            codes = (error.get("code"), error.get("type"))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        return cls(codes, " ".join(str(error.get("message") or "").split())[:300])
