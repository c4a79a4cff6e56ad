"""The process in which test functions are executed: a file of its own that needs the standard library only.

``function_runner.py`` starts it and talks to it over a socket at descriptor 0. For each test it is handed another
socket, and forks: nothing that a test does reaches the next one. In the fork the test's file is executed with
stand-ins for what such files import from ``thinkingbox``; what it asks the judge travels over the socket and back.

Frames are a length of four bytes and JSON. A control message is eight bytes: 0 with a socket (begin a test), or the
number of a fork that is to be ended with all that it started.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import inspect
import io
import json
import os
import signal
import socket
import struct
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

CONTROL = struct.Struct("!q")
LENGTH = struct.Struct("!I")
PRINTED = 2000  # characters of what a test printed that are kept

Frame = dict[str, Any]


def _loaded(name: str) -> Any:
    """Return a file beside this one as a module: the package need not be importable here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stand_ins = _loaded("stand_ins")


class Line:
    """A socket on which frames travel, both ways, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, frame: Frame) -> None:
        """Send a frame."""
        data = json.dumps(frame, default=repr).encode()
        self._connection.sendall(LENGTH.pack(len(data)) + data)

    def receive(self) -> Frame:
        """Wait for a frame and return it; whoever is at the other end and goes away ends this process."""
        frame: Frame = json.loads(self._exactly(LENGTH.unpack(self._exactly(LENGTH.size))[0]))
        return frame

    def ask(self, kind: str, **asked: Any) -> Frame:
        """Ask something at the other end, and wait for the answer."""
        self.send({"kind": kind, **asked})
        return self.receive()

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._connection.recv(min(size - len(data), 1 << 20))
            if not part:
                os._exit(0)
            data += part
        return bytes(data)


# -- one test ------------------------------------------------------------------------------------------------------


def _executed(request: Frame, line: Line) -> Frame:
    """Execute a test file and its function; return what came of it."""
    said = io.StringIO()
    read: set[str] = set()

    def printed(*values: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        said.write(sep.join(map(str, values)) + end)

    file = request["file"]
    space: Frame = {"__name__": "_test_file", "__file__": file, "__builtins__": builtins, "print": printed}
    try:
        exec(compile(request["code"], file, "exec"), space)  # noqa: S102  (a test is code; it has this process alone)
        function = space[request["function"]]
        given = _given(function, {"x": stand_ins.context(request["x"], read), "judge": stand_ins.Judge(line.ask)})
        outcome = _finished(function(**given))
    except BaseException as error:  # noqa: BLE001  (a test may raise anything, SystemExit too)
        outcome = _raised(error, request)
    return {"kind": "outcome", "printed": said.getvalue()[:PRINTED], "read": sorted(read), **outcome}


def _given(function: Callable[..., Any], known: Frame) -> Frame:
    """Return the arguments that a test function wants."""
    wanted = inspect.signature(function).parameters
    foreign = sorted(set(wanted) - set(known))
    if foreign:
        raise TypeError(f"it wants {', '.join(foreign)}, which only the reference harness can give")
    return {name: value for name, value in known.items() if name in wanted}


def _finished(value: Any) -> Frame:
    if value is None:
        return {"passed": True, "reward": 1.0}
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise TypeError(f"it returned {value!r}; nothing, or a number from 0 to 1, is needed")
    return {"passed": True, "reward": float(value)}


def _raised(error: BaseException, request: Frame) -> Frame:
    lines = request["code"].split("\n")
    own = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == request["file"]]
    place = own[-1] if own and own[-1] is not None else None
    source = lines[place - 1].strip() if place and place <= len(lines) else ""
    found = {"message": str(error), "line": place, "source": source}
    if isinstance(error, AssertionError):
        return {"passed": False, **found}
    return {"passed": None, "error": type(error).__name__, **found}


# -- the process ---------------------------------------------------------------------------------------------------


def _serve(connection: socket.socket) -> NoReturn:
    """Execute the one test of a fork and end."""
    os.setsid()  # what the test starts is ended with it
    line = Line(connection)
    line.send({"kind": "pid", "pid": os.getpid()})
    request = line.receive()
    line.send(_executed(request, line))
    os._exit(0)


class Forks:
    """The forks that are running."""

    def __init__(self) -> None:
        self._running: set[int] = set()

    def begin(self, control: socket.socket, descriptor: int) -> None:
        """Fork for a test that talks on this descriptor."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # a fork that ends at once is known before
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            control.close()
            _serve(socket.socket(fileno=descriptor))
        self._running.add(child)
        os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def reap(self, *_: object) -> None:
        """Take note of those that have ended."""
        while self._running:
            pid, _status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._running.discard(pid)

    def end(self, pid: int) -> None:
        """End one, with all that it started; a number that is none of ours is left alone."""
        if pid in self._running:
            for end in (os.killpg, os.kill):  # it may not have come to make a group of its own
                with contextlib.suppress(ProcessLookupError):
                    end(pid, signal.SIGKILL)

    def end_all(self) -> None:
        """End all of them."""
        for pid in tuple(self._running):
            self.end(pid)


def main() -> None:
    """Fork for each socket that arrives, until the other end goes away; then end all forks."""
    control = socket.socket(fileno=0)
    forks = Forks()
    stand_ins.install()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGCHLD, forks.reap)
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, CONTROL.size, 1)
        if len(data) < CONTROL.size:
            break
        if descriptors:
            forks.begin(control, descriptors[0])
        else:
            forks.end(CONTROL.unpack(data)[0])
    forks.end_all()


if __name__ == "__main__":
    main()
