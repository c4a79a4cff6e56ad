"""The run's hold on the processes of an agent: begun, watched, and ended with whatever they started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio import to_thread

from tbadapters.core.errors import HarnessFault, UsageError
from tbadapters.core.logs import get_logger
from tbadapters.core.printable import visible
from tbadapters.core.redaction import redacted
from tbadapters.isolation.offspring import WANTED, offspring, parent_of
from tbadapters.isolation.spec import Importable, command
from tbadapters.isolation.wire import LENGTH, MESSAGE_MAX, Pipe, encoded

log = get_logger(__name__)

LOOK_SECONDS = 120.0  # that importing the agent and looking at it may take
OUTPUT_MAX = 2**20  # bytes that an agent's processes may print in all
_NEWS = 65_536
_PIDS = 2**31  # no process has such an id; 0 and 1 would mean our own group, and all processes


@dataclass(eq=False)
class Process:
    """One attempt's process.

    Attributes:
        pipe: The messages to and from it.
        pid: Its process id, once it is known.
        status: How it ended: an exit code, or minus a signal; None while it runs.
        over: Set when it has ended.
    """

    pipe: Pipe
    server: int
    pid: int | None = None
    status: int | None = None
    over: anyio.Event = field(default_factory=anyio.Event)
    _doomed: bool = False

    def born(self, pid: int) -> None:
        """Hear its id. What is no child of the fork server is not ours to end, whoever says so."""
        parent = parent_of(pid)
        if not 1 < pid < _PIDS or (parent is not None and parent != self.server):
            return
        self.pid = pid
        if self._doomed:
            self.end()

    def died(self, status: int) -> None:
        """Hear how it ended."""
        self.status = status
        self.over.set()

    def end(self) -> None:
        """End it at once, with all processes of its group."""
        self._doomed = True
        self.pipe.close()
        if self.pid is not None:
            for kill in (os.killpg, os.kill) if self.status is None else (os.killpg,):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self.pid, signal.SIGKILL)

    async def ending(self, seconds: float) -> str:
        """Wait a while to hear how it ended, and return that in words."""
        with anyio.move_on_after(seconds):
            await self.over.wait()
        if self.status is None:
            return "closed its pipe"
        if self.status < 0:
            name = signal.Signals(-self.status).name
            return f"was ended by {name}" + (" (out of memory?)" if -self.status == signal.SIGKILL else "")
        return f"ended with exit code {self.status}"


class Processes:
    """The processes of one agent: a fork server, and what it forks.

    Raises:
        UsageError: the system can't do it.
    """

    def __init__(self, agent: Importable) -> None:
        if not hasattr(os, "fork"):
            raise UsageError('isolation="process" needs a system that forks (Linux, macOS); this one does not.')
        self._agent = agent
        self._count = 0
        self._waiting: dict[int, Process] = {}
        self._news = b""
        self._listening = False
        self._closed = False
        self._begin()

    def _begin(self) -> None:
        """Start the fork server."""
        self._control, theirs = socket.socketpair()
        reading, writing = os.pipe()
        environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"} | os.environ  # threads forbid forks
        with theirs:
            self._server = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
                command("tbadapters.isolation.fork_server", theirs.fileno(), self._agent),
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env=environment,
            )
        os.close(writing)
        self._relay = threading.Thread(target=_relay, args=(reading,), name="tbadapters agent's output", daemon=True)
        self._relay.start()
        self._count = 0
        self._waiting = {}
        self._news = b""

    def look(self, tools: Sequence[Mapping[str, Any]] | None) -> bytes:
        """Ask a process of its own what the agent is, and return its answer; before the first trial, blocking.

        Raises:
            UsageError: there is no answer.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(LOOK_SECONDS)
        with ours:
            with theirs:
                socket.send_fds(self._control, [WANTED], [theirs.fileno()])
            self._count += 1
            try:
                ours.sendall(encoded({"type": "look", "tools": tools}))
                (length,) = LENGTH.unpack(_exactly(ours, LENGTH.size))
                return _exactly(ours, min(length, MESSAGE_MAX))
            except TimeoutError:
                why = f"took over {LOOK_SECONDS:g} s"
            except (ConnectionError, EOFError):
                why = "ended its process"
        raise UsageError(f"Looking at the agent {self._agent.spec!r} {why}: import it in Python to see what it does.")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Hear of the processes while a run is under way, and end them all after it."""
        loop = asyncio.get_running_loop()
        self._control.setblocking(False)
        loop.add_reader(self._control, self._listen)
        self._listening = True
        try:
            yield
        finally:
            self._listening = False
            loop.remove_reader(self._control)
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self.close)

    async def start(self) -> Process:
        """Have a process made for one attempt.

        Raises:
            HarnessFault: there is no run under way, or the fork server can't be started again.
        """
        if not self._listening:
            raise HarnessFault("The agent's processes are started in a run only.")
        if self._server.poll() is not None:
            raise HarnessFault("The fork server of the agent's processes ended.", code="fork_server")
        ours, theirs = socket.socketpair()
        with theirs:
            process = Process(await Pipe.over(ours, limited=True), self._server.pid)
            while True:
                try:
                    socket.send_fds(self._control, [WANTED], [theirs.fileno()])
                    break
                except BlockingIOError:
                    await anyio.wait_writable(self._control)
                except OSError as error:
                    process.pipe.close()
                    raise HarnessFault("The fork server of the agent's processes ended.", code="fork_server") from error
        self._waiting[self._count] = process
        self._count += 1
        return process

    def _listen(self) -> None:
        try:
            data = self._control.recv(_NEWS)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data or len(self._news) > _NEWS:
            asyncio.get_running_loop().remove_reader(self._control)
        *lines, self._news = (self._news + data).split(b"\n")
        for line in lines:
            self._hear(line)

    def _hear(self, line: bytes) -> None:
        """Take what the fork server says; it runs the agent's module, and may say anything."""
        try:
            news = json.loads(line)
            process = self._waiting.get(news["job"])
            if process is not None and "pid" in news:
                process.born(int(news["pid"]))
            elif process is not None:
                del self._waiting[news["job"]]
                process.died(int(news["status"]))
        except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
            log.warning("fork_server_news_unreadable")

    def close(self) -> None:
        """End every process, with whatever it started. Once is enough."""
        if self._closed:
            return
        self._closed = True
        for _ in range(10):
            left = offspring(self._server.pid)
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                break
        self._control.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait()
        self._relay.join(1.0)


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        piece = connection.recv(min(size - len(received), _NEWS))
        if not piece:
            raise EOFError
        received += piece
    return bytes(received)


def _relay(descriptor: int) -> None:
    """Print what an agent's processes print, on standard error and made harmless, until all of them have ended."""
    with os.fdopen(descriptor, "rb") as output:
        left = OUTPUT_MAX
        for line in _lines(output):
            if left > 0:
                left -= len(line)
                shown = line if left > 0 else b"(more is not shown)"
                with contextlib.suppress(Exception):  # where standard error is gone, nobody reads it
                    print("agent |", visible(redacted(shown.decode(errors="replace").rstrip("\n"))), file=sys.stderr)  # noqa: T201


def _lines(output: Any) -> Iterator[bytes]:
    while line := output.readline(8192):
        yield line
