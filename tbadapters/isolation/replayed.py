"""Tells this process's transport hooks of the model requests that an agent's own process made.

Whoever watches the transport here (a provider's faults, the pace at which an endpoint may be asked) learns of them as if
they had been made here. A request is known by its method, address and body; keys in its headers stay where it was made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from urllib.parse import urlsplit

import anyio

from tbadapters.core.model_request import is_model_request
from tbadapters.core.transport_hooks import ERROR, installed_hooks
from tbadapters.isolation.wire import Seen, broken

OPEN_MAX = 1000  # model requests that one attempt may have under way


class RemoteUrl:
    """A URL with the parts that hooks look at."""

    def __init__(self, text: str) -> None:
        self._text = text
        try:
            parts = urlsplit(text)
            self.scheme, self.host, self.port, self.path = parts.scheme, parts.hostname or "", parts.port, parts.path
        except ValueError as error:
            raise broken("asked a model at what is no URL") from error

    def __str__(self) -> str:
        return self._text


class RemoteRequest:
    """A request that was made in another process, as hooks know requests."""

    def __init__(self, seen: Seen) -> None:
        self.method = seen.method
        self.url = RemoteUrl(seen.url)
        self.headers: dict[str, str] = {}
        self.content = seen.body.encode(errors="replace")


class Replay:
    """The model requests of one attempt's process. Its hooks are told in the context of whoever calls it."""

    def __init__(self) -> None:
        self._open: dict[int, RemoteRequest] = {}

    @staticmethod
    def holds() -> bool:
        """Whether a hook may want requests to wait before they are sent."""
        return any(hook.may_hold() for hook in installed_hooks())

    async def held(self, seen: Seen, go: Callable[[], Awaitable[None]]) -> None:
        """Wait until a request may be sent, and say so then.

        Raises:
            AgentFault: it waits already, or too many do.
        """
        if seen.id in self._open:
            raise broken("asked twice whether a model request may go")
        request = self._opened(seen)
        while (seconds := max((hook.hold(request) for hook in installed_hooks()), default=0.0)) > 0:  # noqa: ASYNC110  (as in transport_hooks)
            await anyio.sleep(seconds)
        await go()

    def tell(self, seen: Seen) -> None:
        """Tell the hooks what was seen.

        Raises:
            AgentFault: it makes no sense.
        """
        try:
            self._tell(seen)
        except (ValueError, RecursionError) as error:  # a body made to be read for ever
            raise broken("told of a model request that can't be read") from error

    def _tell(self, seen: Seen) -> None:
        if seen.event == "request":
            request = self._open.get(seen.id) or self._opened(seen)
            request.content = seen.body.encode(errors="replace")  # one that was held came without its body
            if not is_model_request(request):
                raise broken("told of a request that asks no model")
            for hook in installed_hooks():
                hook.request(request)
        elif (asked := self._open.get(seen.id)) is None:
            raise broken("told of the end of a model request that never began")
        else:
            self._follow(seen, asked)

    def _opened(self, seen: Seen) -> RemoteRequest:
        if len(self._open) >= OPEN_MAX:
            raise broken(f"has more than {OPEN_MAX} model requests under way")
        request = self._open[seen.id] = RemoteRequest(seen)
        return request

    def _follow(self, seen: Seen, request: RemoteRequest) -> None:
        if seen.event != "response":
            del self._open[seen.id]
        for hook in installed_hooks():
            match seen.event:
                case "response":
                    hook.response(request, seen.status, seen.headers)
                case "ended":
                    read = seen.status >= ERROR or hook.reads_answers
                    hook.ended(request, seen.status, seen.body.encode(errors="replace") if read else b"")
                case _:
                    hook.failed(request, _error(seen.error)(seen.body))

    def close(self) -> None:
        """Take what is still under way for cancelled: its process has ended."""
        while self._open:
            _, request = self._open.popitem()
            for hook in installed_hooks():
                hook.failed(request, asyncio.CancelledError())


@lru_cache(maxsize=64)
def _error(names: str) -> type[Exception]:
    """Return an exception type whose bases have the names of the original's: hooks know transport errors by these."""
    made: type[Exception] = Exception
    for name in reversed([name for name in names.split(",") if name.isidentifier() and name not in _BASES][:8]):
        made = type(name, (made,), {})
    return made


_BASES = frozenset({"object", "BaseException", "Exception"})
