"""Executes test functions in a process of their own, and carries their questions to the judge.

One process is kept for many trials (``function_process.py``); it forks for each test, so that nothing leaks from test to
test and a test that does not end can be ended. The test talks to us over a socket that is its own.
"""

from __future__ import annotations

import json
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from tbadapters.core.errors import GraderFault
from tbadapters.suites.thinkingbox.function_process import CONTROL, LENGTH
from tbadapters.suites.thinkingbox.grading_function import GradingFunction

SCRIPT = Path(__file__).with_name("function_process.py")
SECONDS = 30.0
"""Deadline of one test function; the judge's time does not count."""
_CHUNK = 1 << 20

Ask = Callable[[str, str], Awaitable[tuple[bool, str]]]
"""Answers a yes/no question about a text, with the reason."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a test function.

    Attributes:
        passed: Whether it ended without a failed assertion.
        reward: What it returned, 1.0 where it returned nothing, 0.0 where it failed.
        message: What the failed assertion says.
        line: The line of the file at which it failed.
        source: That line.
        printed: What the test printed.
        read: The parts of the effects, of whichever server, that the test looked at.
    """

    passed: bool
    reward: float
    message: str = ""
    line: int | None = None
    source: str = ""
    printed: str = ""
    read: frozenset[str] = frozenset()


class FunctionRunner:
    """Executes test functions; its process starts with the first one and serves any number at once.

    Args:
        seconds: Deadline of one test function.
    """

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._process: _Process | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the process until the block is left, and end it then."""
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self.close)

    def close(self) -> None:
        """End the process, and whatever test is still executed; the next test starts another one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()

    async def run(self, function: GradingFunction, code: str, x: Mapping[str, Any], ask: Ask) -> Outcome:
        """Execute a test function on what a trial left.

        Args:
            function: The test function.
            code: Its file's text, ``function.code``.
            x: The context it looks at, by field.
            ask: The judge.

        Raises:
            GraderFault: it raised something else than an AssertionError, did not end within the deadline, or can't be
                executed.
        """
        request = {"code": code, "file": function.file.name, "function": function.name, "x": dict(x)}
        try:
            outcome = await self._outcome(request, ask)
        except _Gone:  # it died since the last test, before this one began
            outcome = await self._outcome(request, ask)
        return _read(outcome, function)

    async def _outcome(self, request: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        process = await to_thread.run_sync(self._started)
        try:
            with process.test() as connection:
                talk = _Talk(connection, request["function"], self._seconds)
                try:
                    return await talk.outcome(request, ask)
                finally:
                    if talk.pid is not None and not talk.over:
                        process.end_test(talk.pid)
        except _Gone:
            await to_thread.run_sync(self._replace, process)
            raise

    def _replace(self, process: _Process) -> None:
        """Let the next test start another process, where that has not happened yet."""
        with self._lock:
            if self._process is process:
                self._process = None
        process.end()

    def _started(self) -> _Process:
        with self._lock:
            if self._process is None or not self._process.is_alive:
                if self._process is not None:
                    self._process.end()
                self._process = _Process()
            return self._process


class _Gone(GraderFault):
    """Raised when the process is not there that should fork for a test."""

    def __init__(self) -> None:
        super().__init__("The process that executes test functions is gone.", code="test_process")


class _Process:
    """The process that forks for each test."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair()
        with theirs:
            # A session of its own: Ctrl-C is ours to handle. Isolated: nothing of the environment is imported.
            self._popen = subprocess.Popen(  # noqa: S603  (our own script)
                [sys.executable, "-I", str(SCRIPT)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control.setblocking(False)

    @property
    def is_alive(self) -> bool:
        """Whether it can be asked for another fork."""
        return self._popen.poll() is None

    @contextmanager
    def test(self) -> Iterator[socket.socket]:
        """Have a fork made, and give the socket on which it talks."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            try:
                socket.send_fds(self._control, [CONTROL.pack(0)], [theirs.fileno()])
            except OSError as error:
                raise _Gone from error
            theirs.close()
            yield ours

    def end_test(self, pid: int) -> None:
        """Have a fork ended that we wait no longer for."""
        with suppress(OSError):
            self._control.send(CONTROL.pack(pid))

    def end(self) -> None:
        """End the process and its forks, and wait for it."""
        self._control.close()
        try:
            self._popen.wait(5)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


class _Talk:
    """What we and the fork of one test say to each other.

    Attributes:
        pid: The fork's process id, once it has told it.
        over: Whether it has told its outcome.
    """

    def __init__(self, connection: socket.socket, name: str, seconds: float) -> None:
        self._connection = connection
        self._name = name
        self._left = self._seconds = seconds
        self.pid: int | None = None
        self.over = False

    async def outcome(self, request: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        """Give the test what it needs, answer what it asks, and return what came of it."""
        self.pid = (await self._in_time(self._receive))["pid"]
        data = json.dumps(request, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
        await self._in_time(partial(self._send, data))
        while True:
            frame: dict[str, Any] = await self._in_time(self._receive)
            if frame["kind"] == "outcome":
                self.over = True
                return frame
            await self._in_time(partial(self._send, json.dumps(await self._answered(frame, ask)).encode()))

    async def _answered(self, frame: Mapping[str, Any], ask: Ask) -> dict[str, Any]:
        if frame["kind"] != "yesno":
            raise GraderFault(
                f"{self._name} asks the judge for a text of its own making; only yes/no questions can be put to it.",
                code="unsupported_question",
            )
        answer, reason = await ask(str(frame["text"]), str(frame["question"]))
        return {"answer": answer, "reason": reason}

    async def _in_time(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Do one step within what is left of the deadline."""
        began = time.monotonic()
        with anyio.move_on_after(max(0.0, self._left)):
            done = await step()
            self._left -= time.monotonic() - began
            return done
        raise GraderFault(f"{self._name} did not end within {self._seconds:g} s.", code="test_deadline")

    async def _send(self, data: bytes) -> None:
        rest = memoryview(LENGTH.pack(len(data)) + data)
        while rest:
            try:
                rest = rest[self._connection.send(rest[:_CHUNK]) :]
            except BlockingIOError:
                await anyio.wait_writable(self._connection)
            except OSError as error:
                raise self._died() from error

    async def _receive(self) -> Any:
        (size,) = LENGTH.unpack(await self._exactly(LENGTH.size))
        return json.loads(await self._exactly(size))

    async def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            await anyio.wait_readable(self._connection)
            try:
                part = self._connection.recv(min(size - len(data), _CHUNK))
            except OSError as error:
                raise self._died() from error
            if not part:
                raise self._died()
            data += part
        return bytes(data)

    def _died(self) -> GraderFault:
        if self.pid is None:
            return _Gone()
        return GraderFault(f"The process of {self._name} ended before the test did.", code="test_died")


def _read(frame: Mapping[str, Any], function: GradingFunction) -> Outcome:
    """Return the outcome that a frame tells.

    Raises:
        GraderFault: the test raised something else than an AssertionError.
    """
    if frame["passed"] is None:
        place = f", line {frame['line']}" if frame["line"] else ""
        raise GraderFault(
            f"The test {function.name} ({function.file.name}{place}) raised {frame['error']}: {frame['message']}",
            code="test_error",
        )
    reward = float(frame.get("reward", 0.0))
    return Outcome(
        passed=bool(frame["passed"]),
        reward=reward if math.isfinite(reward) else 0.0,
        message=frame.get("message", ""),
        line=frame.get("line"),
        source=frame.get("source", ""),
        printed=frame["printed"],
        read=frozenset(frame["read"]),
    )
