"""A Python server's processes: the one that imported it, one a task that ran the task's init, one an attempt.

The other side is ``fork_server.py``, which says what they are and how they end.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import struct
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import anyio
from anyio import to_thread
from mcp.client.stdio import get_default_environment

from tbadapters.core.errors import SandboxFault
from tbadapters.core.logs import get_logger
from tbadapters.sandboxes.mcp_connection import Answer, Connection, held, last_words_in, over_socket
from tbadapters.sandboxes.mcp_server import McpServer

log = get_logger(__name__)

HELPER = Path(__file__).with_name("fork_server.py")
KEPT_TASKS = 64  # task processes of a server that are kept, some 10 MB each
_LENGTH = struct.Struct(">I")
LONGEST_FOLDER = 60  # bytes; with what comes below it a socket's path may have 103
T = TypeVar("T")


class ForkedConnection:
    """A connection to a process that was forked for it: requests and answers, one at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._unread = 0  # answers to requests whose asker was cancelled
        self._expected: int | None = None  # length of a frame whose head was read
        self.pid: int | None = None
        self.mode = "direct"

    async def greet(self, token: str) -> None:
        """Show the token, and learn how the process is spoken to."""
        self._send(token)
        hello = await self._received()
        self.pid, self.mode = hello["pid"], hello["mode"]

    async def ask(self, **request: Any) -> Any:
        """Send a request and return its answer.

        Raises:
            SandboxFault: the process is gone, or could not do it.
        """
        while self._unread:
            await self._received()
            self._unread -= 1
        self._send(request)
        self._unread += 1
        answer = await self._received()
        self._unread -= 1
        if "failed" in answer:
            raise SandboxFault(f"The server's process could not do {request['do']!r}: {answer['failed']}")
        return answer

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """See ``Connection``."""
        tools: Sequence[Mapping[str, Any]] = (await self.ask(do="list"))["tools"]
        return tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """See ``Connection``."""
        answer = await self.ask(do="call", name=name, arguments=dict(arguments))
        return Answer(answer["text"], answer.get("value"), bool(answer.get("error")))

    async def probe(self, name: str, argument: Any) -> Any:
        """See ``Connection``."""
        return (await self.ask(do="probe", name=name, argument=argument))["value"]

    def kill(self) -> None:
        """See ``Connection``. The process leads a group of its own, so that what it started ends with it."""
        if self.pid is not None and not self._reader.at_eof():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the connection, which ends the process; one that is busy would not notice."""
        if self._unread:
            self.kill()
        self._writer.close()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Connection]:
        """Speak to the process in the way that it understands."""
        if self.mode == "direct":
            yield self
            return
        async with held(over_socket(self._reader, self._writer)) as session:
            yield session

    def _send(self, frame: Any) -> None:
        body = json.dumps(frame).encode()
        self._writer.write(_LENGTH.pack(len(body)) + body)

    async def _received(self) -> Any:
        """Return the next frame. Cancelled half-way it is read on from there by the next call."""
        try:
            if self._expected is None:
                (self._expected,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            body = await self._reader.readexactly(self._expected)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise SandboxFault("The server's process died.", code="server_died") from error
        self._expected = None
        return json.loads(body)


@dataclass(slots=True)
class TaskProcess(Generic[T]):
    """A process that has run a task's init, and what init found."""

    connection: ForkedConnection
    socket: Path
    found: T


@dataclass(slots=True)
class _Slot(Generic[T]):
    """A task's place among the kept ones: at most one process is made for it."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    process: TaskProcess[T] | None = None
    users: int = 0  # that are about to fork it


Retire = Callable[[ForkedConnection], Awaitable[None]]


class ForkedServer(Generic[T]):
    """The process that imported a server, and the tasks' processes that were forked from it."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, token: str, retire: Retire | None) -> None:
        self._process, self._folder, self._token, self._retire = process, folder, token, retire
        self._slots: OrderedDict[str, _Slot[T]] = OrderedDict()
        self._sockets = 0
        self.mode = "spawn"

    @classmethod
    async def start(
        cls, name: str, server: McpServer, *, seconds: float, retire: Retire | None = None
    ) -> ForkedServer[T] | None:
        """Start the process and let it import the server; None where it can't be forked, which the log says.

        Raises:
            SandboxFault: it could not be started within the deadline; the end of what it said is told.
        """
        folder = await to_thread.run_sync(_new_folder)
        token = secrets.token_hex(16)
        spec = specification(server) | {"socket": str(folder / "module")}
        log_path = folder / "log"
        try:
            process = await _started(server, spec, log_path)
            assert process.stdin is not None, "it is a pipe"  # noqa: S101  (narrows the type)
            process.stdin.write(f"{token}\n".encode())
        except BaseException as error:
            await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))
            if isinstance(error, OSError):
                why = f"The server {name!r} can't be started by {server.python}: {error.strerror}."
                raise SandboxFault(why, code="not_started") from error
            raise
        forked: ForkedServer[T] = cls(process, folder, token, retire)
        try:
            reason = await forked.started(seconds)
        except SandboxFault as fault:
            said = await to_thread.run_sync(_end_of, log_path)
            await forked.aclose()
            raise SandboxFault(f"The server {name!r} {fault} {said}", code=fault.code) from None
        except BaseException:
            await forked.aclose()
            raise
        if reason is None:
            return forked
        log.warning("mcp_server_not_forked", server=name, reason=reason)
        await forked.aclose()
        return None

    async def started(self, seconds: float) -> str | None:
        """Wait until the server is imported; return why it can't be forked, None where it can.

        Raises:
            SandboxFault: it ended, or took longer.
        """
        assert self._process.stdout is not None, "it is a pipe"  # noqa: S101  (narrows the type)
        try:
            async with asyncio.timeout(seconds):
                told = await self._process.stdout.readline()
        except TimeoutError:
            raise SandboxFault(f"did not start in {seconds:g} s.", code="deadline") from None
        if not told:
            raise SandboxFault("did not start:", code="not_started")
        hello = json.loads(told)
        self.mode = hello["mode"]
        reason: str | None = hello["reason"]
        return reason

    async def connect(self) -> ForkedConnection:
        """Return a connection to a fork of the process that imported the server."""
        return await self._connected(self._folder / "module")

    async def _connected(self, path: Path) -> ForkedConnection:
        try:
            reader, writer = await asyncio.open_unix_connection(path, limit=1 << 22)
        except OSError as error:
            raise SandboxFault("The server's process is gone.", code="server_died") from error
        connection = ForkedConnection(reader, writer)
        try:
            await connection.greet(self._token)
        except BaseException:
            connection.close()
            raise
        return connection

    async def attempt(
        self, key: str, init: Callable[[ForkedConnection], Awaitable[T]]
    ) -> tuple[ForkedConnection, TaskProcess[T]]:
        """Return a connection to a fork of a task's process: of the one that is kept, or of a new one that runs init.

        Args:
            key: What is the same for the same init.
            init: Runs it over a connection to the new process; what it returns is kept.
        """
        slot = self._slots.setdefault(key, _Slot())
        self._slots.move_to_end(key)
        slot.users += 1
        try:
            async with slot.lock:
                if slot.process is None:
                    slot.process = await self._new_task(init)
            connection = await self._connected(slot.process.socket)
        except SandboxFault:
            self._forget(key)
            raise
        finally:
            slot.users -= 1
        await self._retire_the_oldest()
        return connection, slot.process

    def _forget(self, key: str) -> None:
        slot = self._slots.pop(key, None)
        if slot is not None and slot.process is not None:
            slot.process.connection.close()

    async def _retire_the_oldest(self) -> None:
        while len(self._slots) > KEPT_TASKS:
            idle = (key for key, slot in self._slots.items() if slot.process is not None and not slot.users)
            oldest = next(idle, None)
            if oldest is None:
                return
            await self._retired(self._slots.pop(oldest))

    async def _retired(self, slot: _Slot[T]) -> None:
        if slot.process is None:
            return
        if self._retire is not None:
            with suppress(SandboxFault):  # a task's process that died has nothing left to tear down
                await self._retire(slot.process.connection)
        slot.process.connection.close()

    async def _new_task(self, init: Callable[[ForkedConnection], Awaitable[T]]) -> TaskProcess[T]:
        connection = await self.connect()
        try:
            found = await init(connection)
            self._sockets += 1
            socket = self._folder / f"task{self._sockets}"
            await connection.ask(do="freeze", socket=str(socket))
        except BaseException as error:
            connection.kill()
            connection.close()
            if isinstance(error, SandboxFault) and error.code == "server_died":
                said = await to_thread.run_sync(_end_of, self._folder / "log")
                raise SandboxFault(f"{error} {said}", code=error.code) from error
            raise
        return TaskProcess(connection, socket, found)

    @property
    def tasks(self) -> list[TaskProcess[T]]:
        """The tasks' processes that are kept."""
        return [slot.process for slot in self._slots.values() if slot.process is not None]

    async def aclose(self) -> None:
        """End every process and remove what they left on disk."""
        with anyio.CancelScope(shield=True):
            while self._slots:
                await self._retired(self._slots.popitem()[1])
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            await self._process.wait()
            await to_thread.run_sync(lambda: shutil.rmtree(self._folder, ignore_errors=True))


def _new_folder() -> Path:
    """Make a folder whose sockets' paths are short enough: in ``/tmp`` where the temporary folder's own path is not."""
    folder = Path(tempfile.gettempdir())
    if len(os.fsencode(folder)) > LONGEST_FOLDER:
        folder = Path("/tmp")  # noqa: S108  (mkdtemp makes a folder of its own there, closed to others)
    return Path(tempfile.mkdtemp(prefix="tbadapters-mcp-", dir=folder))


def specification(server: McpServer) -> dict[str, Any]:
    """Return what ``fork_server.py`` is told of a server."""
    return {
        "module": server.module,
        "path": list(server.path),
        "prepare": [str(path) for path in server.prepare],
        "options": dict(server.options),
    }


async def _started(server: McpServer, spec: Mapping[str, Any], log_path: Path) -> asyncio.subprocess.Process:
    said = await anyio.open_file(log_path, "wb")
    async with said:
        return await asyncio.create_subprocess_exec(
            server.python,
            str(HELPER),
            json.dumps(spec),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=said.wrapped.fileno(),
            env=get_default_environment() | dict(server.env),
            start_new_session=True,  # Ctrl-C lets the trials under way end, and they need their servers
        )


def _end_of(log_path: Path) -> str:
    with log_path.open("rb") as said:
        return last_words_in(said.fileno())
