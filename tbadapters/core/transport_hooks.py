"""Watches the HTTP requests of this process, whoever makes them: the one place that patches a library.

The openai client speaks through httpx2, others through httpx. While at least one hook is installed, the
``handle_request`` and ``handle_async_request`` of their HTTP transports are wrapped; when the last one is gone, what
was found is put back. A hook's methods run in a copy of the context in which the request was made, the late ones too
(the end of a streamed body), so that a context variable tells which attempt a request belongs to.
"""

from __future__ import annotations

import importlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache
from typing import Any

import anyio

from tbadapters.core.event_loop import in_a_loop

LIBRARIES = ("httpx2", "httpx")
BODY_MAX = 65_536
ERROR = 400  # the HTTP statuses from which an answer is an error


class TransportHook:
    """What a user of ``observe_transport`` wants to know. Every method does nothing unless overridden.

    The request is the library's own ``Request``: ``method``, ``url``, ``headers``, ``content``. Methods must be quick
    and must not raise; an exception of theirs would reach the client that made the request.

    Attributes:
        reads_answers: Whether ``ended`` wants the body of JSON answers too, not only of errors.
    """

    reads_answers = False

    def may_hold(self) -> bool:
        """Say whether ``hold`` may hold requests that are made in this context."""
        return False

    def hold(self, request: Any) -> float:  # noqa: ARG002  (for whoever overrides it)
        """Return the seconds after which to ask again whether a request may be sent, or 0.0: it may."""
        return 0.0

    def request(self, request: Any) -> None:
        """Look at a request before it is sent; may add headers."""

    def response(self, request: Any, status: int, headers: Mapping[str, str]) -> None:
        """Look at the status and headers of an answer, before its body is read."""

    def received(self, request: Any) -> None:
        """Hear that a piece of the answer's body came in."""

    def ended(self, request: Any, status: int, body: bytes) -> None:
        """Hear that the body was read to its end; up to 64 KiB of it are kept, of answers of status 400 and above.

        Of other answers, those in JSON to hooks that read them, there is the whole body or none.
        """

    def failed(self, request: Any, error: BaseException) -> None:
        """Hear that the request failed or was cancelled, before or while its body was read."""


class _Installation:
    """The installed hooks and what they replaced."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: Counter[TransportHook] = Counter()
        self.hooks: tuple[TransportHook, ...] = ()
        self.found: list[tuple[type, str, Any, Any]] = []

    def add(self, hook: TransportHook) -> None:
        with self.lock:
            if not self.users:
                self._patch()
            self.users[hook] += 1
            self.hooks = tuple(self.users)

    def remove(self, hook: TransportHook) -> None:
        with self.lock:
            self.users[hook] -= 1
            self.users += Counter()  # drops what nobody uses any more
            self.hooks = tuple(self.users)
            if not self.users:
                self._restore()

    def _patch(self) -> None:
        patched = {(owner, name) for owner, name, _, _ in self.found}
        for owner, name, wrap in _targets():
            if (owner, name) in patched:
                continue
            original = owner.__dict__[name]
            wrapper = wrap(original)
            setattr(owner, name, wrapper)
            self.found.append((owner, name, original, wrapper))

    def _restore(self) -> None:
        """Put back what was found, but for what someone patched on top of us: there our wrapper stays, idle."""
        kept = []
        for owner, name, original, wrapper in self.found:
            if owner.__dict__[name] is wrapper:
                setattr(owner, name, original)
            else:
                kept.append((owner, name, original, wrapper))
        self.found = kept


_installed = _Installation()


@contextmanager
def observe_transport(hook: TransportHook) -> Iterator[None]:
    """Let ``hook`` see every HTTP request of this process while the block runs.

    May be nested and used concurrently; a hook that is installed several times is told once.
    """
    _installed.add(hook)
    try:
        yield
    finally:
        _installed.remove(hook)


def installed_hooks() -> tuple[TransportHook, ...]:
    """Return the hooks that are installed, for whoever tells them of requests that were made in another process."""
    return _installed.hooks


def _targets() -> Iterator[tuple[type, str, Callable[[Any], Any]]]:
    seen: set[type] = set()
    for library in LIBRARIES:
        module = _module(library)
        if module is None:
            continue
        for owner, name, wrap in (
            (module.AsyncHTTPTransport, "handle_async_request", _wrap_async),
            (module.HTTPTransport, "handle_request", _wrap_sync),
        ):
            if owner not in seen:  # httpx2 can stand in for httpx
                seen.add(owner)
                yield owner, name, wrap


@cache
def _module(library: str) -> Any:
    """Return a library, or None where it is not installed; it is looked for once."""
    try:
        return importlib.import_module(library)
    except ImportError:
        return None


class _Watch:
    """One request and the hooks that were installed when it was made."""

    def __init__(self, request: Any, hooks: tuple[TransportHook, ...]) -> None:
        self.request = request
        self.hooks = hooks
        self.context: Context = copy_context()
        self.status = 0
        self.response: Any = None
        self.body = bytearray()
        self.keeps = False
        self.over = False

    def tell(self, event: str, *arguments: Any) -> None:
        for hook in self.hooks:
            self.context.run(getattr(hook, event), self.request, *arguments)

    def hold(self) -> float:
        seconds: list[float] = [self.context.run(hook.hold, self.request) for hook in self.hooks]
        return max(seconds)

    def answered(self, response: Any) -> None:
        self.status, self.response = response.status_code, response
        json = "json" in response.headers.get("content-type", "")
        self.keeps = self.status >= ERROR or (json and any(hook.reads_answers for hook in self.hooks))
        self.tell("response", self.status, response.headers)

    def piece(self, data: bytes) -> None:
        if self.keeps:
            self.body += data
            if len(self.body) > BODY_MAX:
                self.keeps = False
                del self.body[BODY_MAX if self.status >= ERROR else 0 :]
        self.tell("received")

    def end(self, error: BaseException | None = None) -> None:
        if self.over:
            return
        self.over = True
        if error is not None:
            self.tell("failed", error)
            return
        body = _decoded(self.response, bytes(self.body)) if self.body else b""
        for hook in self.hooks:
            read = body if self.status >= ERROR or hook.reads_answers else b""
            self.context.run(hook.ended, self.request, self.status, read)


def _wrap_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def handle_async_request(self: Any, request: Any) -> Any:
        if not _installed.hooks:
            return await original(self, request)
        watch = _Watch(request, _installed.hooks)
        try:
            while (seconds := watch.hold()) > 0:  # noqa: ASYNC110  (the pace says for how long; nobody signals its end)
                await anyio.sleep(seconds)
            watch.tell("request")
            response = await original(self, request)
        except BaseException as error:
            watch.end(error)
            raise
        watch.answered(response)
        response.stream = _watched(response.stream, watch, "AsyncByteStream")
        return response

    return handle_async_request


def _wrap_sync(original: Callable[..., Any]) -> Callable[..., Any]:
    def handle_request(self: Any, request: Any) -> Any:
        if not _installed.hooks:
            return original(self, request)
        watch = _Watch(request, _installed.hooks)
        try:
            # Nobody may sleep on an event loop's thread: there a sync request goes out of turn.
            while (seconds := watch.hold()) > 0 and not in_a_loop():
                time.sleep(seconds)
            watch.tell("request")
            response = original(self, request)
        except BaseException as error:
            watch.end(error)
            raise
        watch.answered(response)
        response.stream = _watched(response.stream, watch, "SyncByteStream")
        return response

    return handle_request


def _decoded(response: Any, raw: bytes) -> bytes:
    """Return a body without its content encoding, by the library's own means."""
    library = importlib.import_module(_library(response))
    try:
        copy = type(response)(response.status_code, headers=response.headers, stream=library.ByteStream(raw))
        decoded: bytes = copy.read()
    except library.DecodingError:
        return raw
    return decoded


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


class _Watched:
    """A body that is passed on while the hooks are told; read synchronously or asynchronously, as the original is."""

    def __init__(self, stream: Any, watch: _Watch) -> None:
        self._stream = stream
        self._watch = watch

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with self._told():
            async for data in self._stream:
                self._watch.piece(data)
                yield data

    def __iter__(self) -> Iterator[bytes]:
        with self._told():
            for data in self._stream:
                self._watch.piece(data)
                yield data

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except GeneratorExit:  # the reader stopped early; closing ends the watch
            raise
        except BaseException as error:
            self._watch.end(error)
            raise
        self._watch.end()

    async def aclose(self) -> None:
        await self._stream.aclose()
        self._watch.end()

    def close(self) -> None:
        self._stream.close()
        self._watch.end()


def _watched(stream: Any, watch: _Watch, kind: str) -> Any:
    return _watched_class(_library(stream), kind)(stream, watch)


@cache
def _watched_class(library: str, kind: str) -> type:
    """Return ``_Watched`` as a subclass of the library's abstract stream, which its client insists on."""
    return type("WatchedStream", (_Watched, getattr(importlib.import_module(library), kind)), {})
