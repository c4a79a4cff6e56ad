"""An OpenAI-compatible model server on loopback whose model is a script: for tests of agents, without a model.

    with ScriptedModelServer(FixedPolicy(["Hello."])) as server:
        client = openai.AsyncOpenAI(base_url=server.url, api_key="any")

It speaks chat completions and responses, whole and streamed, over real HTTP, in a thread and a loop of its own: an
agent that blocks its loop does not block the server.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, Self

import anyio
import anyio.to_thread
import uvicorn
from starlette.types import ASGIApp

from tbadapters.core.messages import Usage
from tbadapters.core.transport import observe_transport
from tbadapters.testing.endpoints import Endpoints, Gate
from tbadapters.testing.faults import FaultPlan, Faults
from tbadapters.testing.server_log import Exchange, ServerLog
from tbadapters.testing.trial_header import TrialHeader
from tbadapters.testing.turns import PolicyLike

HOST = "127.0.0.1"
STOP_SECONDS = 5.0


class ScriptedModelServer:
    """Serves scripted models while its ``with`` (or ``async with``) block runs.

    While it runs, requests that this process makes to it carry the running trial in a header.

    Args:
        policy: What the model answers: a policy, or a callable ``turn -> Reply or str``; a mapping from a model's name
            to its policy serves several models, and no other.
        faults: Which faults happen: ``Faults(...)`` by probability, or a callable ``request_number -> kind or None``.
        api_key: The key that is asked for; None: any key, or none, will do.
        missing_models: Names of models that are answered 404.
        keep_bodies: Whether ``requests`` keep what was sent; False for long runs.
    """

    def __init__(
        self,
        policy: PolicyLike | Mapping[str, PolicyLike],
        *,
        faults: Faults | FaultPlan | None = None,
        api_key: str | None = None,
        missing_models: Iterable[str] = (),
        keep_bodies: bool = True,
    ) -> None:
        self.log = ServerLog()
        gate = Gate(api_key, frozenset(missing_models))
        self._endpoints = Endpoints(policy, self.log, faults or Faults(), gate, keep_bodies=keep_bodies)
        self._port: int | None = None
        self._stack = ExitStack()

    @property
    def url(self) -> str:
        """The base URL for a client, such as ``http://127.0.0.1:40123/v1``."""
        if self._port is None:
            raise RuntimeError("The scripted model server is not running: use it in a with block.")
        return f"http://{HOST}:{self._port}/v1"

    @property
    def requests(self) -> list[Exchange]:
        """Everything that it received and sent."""
        return self.log.exchanges

    @property
    def totals(self) -> Usage:
        """The tokens that its clients were told of."""
        return self.log.totals

    def usage_by_trial(self) -> dict[tuple[str, int], Usage]:
        """Return the tokens that its clients were told of, by task and trial index."""
        return self.log.by_trial()

    def __enter__(self) -> Self:
        listener = _listen()
        self._port = listener.getsockname()[1]
        server = _Server(self._endpoints.app())
        thread = threading.Thread(target=server.serve_on, args=(listener,), name="scripted-model-server", daemon=True)
        thread.start()
        self._stack.callback(server.stop, thread)
        self._stack.enter_context(observe_transport(TrialHeader(HOST, self._port)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self._stack.close()
        self._port = None
        if error is None and self._endpoints.policy_errors:
            raise RuntimeError("The policy of the scripted model failed.") from self._endpoints.policy_errors[0]
        return False

    async def __aenter__(self) -> Self:
        return await anyio.to_thread.run_sync(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.__exit__, kind, error, trace)
        return False


def _listen() -> socket.socket:
    """Return a listening socket; its protocol is named, or asyncio would leave Nagle's delay of 40 ms on."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind((HOST, 0))
    listener.listen(512)
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
            self.run([listener])

    def stop(self, thread: threading.Thread) -> None:
        """End the thread and wait for it; where that would block an event loop, it ends by itself a moment later."""
        self.should_exit = True
        self.force_exit = True
        if not _in_a_loop():
            thread.join(STOP_SECONDS)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
