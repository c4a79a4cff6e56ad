"""An ASGI app on loopback, in a thread and an event loop of its own: what blocks its clients' loop does not block it."""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Literal, Self

import anyio
import anyio.to_thread
import uvicorn
from starlette.types import ASGIApp

from tbadapters.core.event_loop import in_a_loop

HOST = "127.0.0.1"
STOP_SECONDS = 5.0


class EnteredByThread(ABC):
    """May be used by ``async with``, too: what enters and leaves by blocking does so in a worker thread."""

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]: ...

    async def __aenter__(self) -> Self:
        return await anyio.to_thread.run_sync(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.__exit__, kind, error, trace)
        return False


class LoopbackServer(EnteredByThread):
    """Serves an app while its ``with`` (or ``async with``) block runs.

    Args:
        app: What is served.
        name: The thread's name.
        port: The port; 0 for one that is free.
    """

    def __init__(self, app: ASGIApp, *, name: str, port: int = 0) -> None:
        self._app = app
        self._name = name
        self._asked = port
        self._port: int | None = None
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that it serves on."""
        if self._port is None:
            raise RuntimeError(f"The {self._name.replace('-', ' ')} is not running: use it in a with block.")
        return self._port

    def __enter__(self) -> Self:
        listener = _listen(self._asked)
        self._port = listener.getsockname()[1]
        self._server = _Server(self._app)
        self._thread = threading.Thread(target=self._server.serve_on, args=(listener,), name=self._name, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        if self._server is not None and self._thread is not None:
            self._server.stop(self._thread)
        self._port = self._server = self._thread = None
        return False


def _listen(port: int) -> socket.socket:
    """Return a listening socket; its protocol is named, or asyncio would leave Nagle's delay of 40 ms on."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(512)
    except OSError:
        listener.close()
        raise
    return listener


class _Server(uvicorn.Server):
    """uvicorn in a thread: no signals, no log, connections cut at the end."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app, lifespan="off", ws="none", log_config=None, log_level="critical", access_log=False, loop="asyncio"
            )
        )

    def serve_on(self, listener: socket.socket) -> None:
        """Serve until stopped; closes the listening socket, also when stopped before the start."""
        with listener:
            self.config.load()  # it imports modules, which must not hold up the loop
            self.run([listener])

    def stop(self, thread: threading.Thread) -> None:
        """End the thread and wait for it; where that would block an event loop, it ends by itself a moment later."""
        self.should_exit = True
        self.force_exit = True
        if not in_a_loop():
            thread.join(STOP_SECONDS)
