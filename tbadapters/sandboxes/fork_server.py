"""A Python MCP server, imported once and forked: runs under the server's own interpreter, standard library only.

    python fork_server.py SPEC      SPEC: a JSON object, see ``main``

The module runs as ``__main__`` until it would start its event loop; there it is caught, with everything imported. From
then on, whoever connects to the socket gets a process of its own. Three kinds of process come of it, each a fork of the
one before:

    module    has imported the server                       one a server
    task      has also run the server's init for a task     one a task, made by ``freeze``
    attempt   serves one connection, then it is gone        one an attempt

A process ends when the connection or pipe that it was made for is closed, so that nothing outlives who asked for it.
A frame is a length (4 bytes, big endian) and that much JSON. The first frame of a connection is the token; without it
nothing is served. A server object whose tools can be called without a client is called ``direct``ly (``direct_server.py``);
any other speaks MCP itself on the connection after the first answer, a line a message (``protocol``).

Where forking is not safe (threads run, no ``fork``, macOS) nothing is served, and the reason is said on standard output.
With ``"spawn": true`` the module just runs, prepared in the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import gc
import importlib.util
import json
import os
import runpy
import select
import shutil
import signal
import socket
import struct
import sys
import threading
import traceback
import types
from typing import TYPE_CHECKING, Any, Callable, Iterator, NoReturn

if TYPE_CHECKING:
    from tbadapters.sandboxes.direct_server import Direct, Probe, callable_directly
else:  # this file is run as a script: its folder is where the interpreter looks first, until ``main`` says otherwise
    from direct_server import Direct, Probe, callable_directly

LENGTH = struct.Struct(">I")
LONGEST_TOKEN = 1000
Become = Callable[[socket.socket], "Forks | None"]


class Caught(BaseException):
    """Raised in place of an event loop's start; carries what it would have run."""

    def __init__(self, function: Any, arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments


class Preparation:
    """The preparation files: functions that run around the server's import, after each fork, and on request."""

    def __init__(self, paths: list[str]) -> None:
        self.files = [runpy.run_path(path) for path in paths]

    def run(self, name: str, *arguments: Any) -> None:
        """Call the function of this name in each file that has one."""
        for file in self.files:
            if name in file:
                file[name](*arguments)

    def probe(self, name: str) -> Probe:
        """Return the probe of this name."""
        for file in self.files:
            if name in file.get("PROBES", {}):
                found: Probe = file["PROBES"][name]
                return found
        raise LookupError(f"no preparation file has a probe {name!r}")


def as_main(name: str) -> tuple[types.ModuleType, Any]:
    """Return the module to run as ``__main__``, in its place in ``sys.modules``, and its code."""
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(name + ".__main__")
    if spec is None or spec.loader is None:
        raise SystemExit(f"there is no module {name}")
    module = types.ModuleType("__main__")
    module.__spec__, module.__file__, module.__package__ = spec, spec.origin, spec.parent
    module.__loader__ = spec.loader
    sys.modules["__main__"] = module
    sys.argv = [spec.origin or name]
    return module, spec.loader.get_code(spec.name)  # type: ignore[attr-defined]  # as runpy takes it


def catch(code: Any, module: types.ModuleType) -> Caught:
    """Run a program until it starts an event loop; return what it would have run."""

    def instead(function: Any, *arguments: Any, **_options: Any) -> None:
        raise Caught(function, arguments)

    places: list[Any] = [asyncio]
    if importlib.util.find_spec("anyio") is not None:
        places.append(importlib.import_module("anyio"))
    before = [(place, place.run) for place in places]
    for place in places:
        place.run = instead
    try:
        exec(code, module.__dict__)  # noqa: S102  (the user's own server, as `python -m` would run it)
    except Caught as caught:
        return caught
    finally:
        for place, run in before:
            place.run = run
    raise SystemExit(f"{module.__file__} ended without starting an event loop")


class Forks:
    """Serves each connection to a socket in a fork of this process.

    Args:
        path: Of the socket.
        alive: What this process lives for: it ends when that is closed.
        folder: What is removed from disk then; None for the socket alone.
        token: What a connection must show first.
        become: Serves a connection in the fork; returns what serves forks of the fork, if it is to.

    Attributes:
        thaw: Answers what is asked of this process itself, in place of further forks; None where nothing can be.
    """

    thaw: Callable[[], None] | None = None

    def __init__(self, path: str, alive: Any, folder: str | None, token: str, become: Become) -> None:
        self.path, self.alive, self.folder, self.token, self.become = path, alive, folder, token, become
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(512)

    def serve(self) -> None:
        """Fork for each connection, until the end."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the system
        gc.collect()
        gc.freeze()  # a collection in a fork would copy every page
        while True:
            ready, _, _ = select.select([self.listener, self.alive], [], [])
            if self.alive in ready:
                if self.thaw is not None and not closed(self.alive):
                    self.thaw()
                self.end()
            connection, _ = self.listener.accept()
            if os.fork() == 0:
                self.serve_one(connection)
            connection.close()

    def end(self) -> None:
        """Leave nothing behind, neither on disk nor running."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        elif os.path.exists(self.path):
            os.unlink(self.path)
        gone()

    def serve_one(self, connection: socket.socket) -> None:
        """In the fork: serve one connection, and end with it, or become a process that serves forks itself."""
        try:
            os.setsid()  # what it starts ends with it
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.listener.close()
            self.alive.close()
            if receive(connection, longest=LONGEST_TOKEN) == self.token:
                forks = self.become(connection)
                if forks is not None:
                    forks.serve()
        except BaseException:  # noqa: BLE001  (nothing may get back into the loop that forks)
            traceback.print_exc()
        finally:
            gone()


def gone() -> NoReturn:
    """End this process and what it started; it leads a group of its own."""
    os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def receive(connection: socket.socket, longest: int | None = None) -> Any:
    """Return the next frame, None where the connection is closed or the frame is too long."""
    head = exactly(connection, LENGTH.size)
    size = LENGTH.unpack(head)[0] if head else 0
    body = exactly(connection, size) if longest is None or size <= longest else None
    return json.loads(body) if body else None


def exactly(connection: socket.socket, size: int) -> bytes | None:
    """Return this many bytes, None where the connection ends before."""
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def send(connection: socket.socket, answer: Any) -> None:
    """Send a frame."""
    body = json.dumps(answer).encode()
    connection.sendall(LENGTH.pack(len(body)) + body)


class Program:
    """The caught program, and what a fork of it does with its connection."""

    def __init__(self, token: str, module: types.ModuleType, caught: Caught, preparation: Preparation) -> None:
        self.token, self.module, self.caught, self.preparation = token, module, caught, preparation
        self.server = callable_directly(caught.function)

    def warm(self) -> None:
        """List the tools once, so that what that imports and works out need not be done again in every fork."""
        if self.server is not None:
            with contextlib.suppress(Exception):  # who asks for them will be told
                asyncio.run(self.server.list_tools())

    @property
    def mode(self) -> str:
        """How a connection is served."""
        return "direct" if self.server is not None else "protocol"

    def forks(self, path: str, alive: Any) -> Forks:
        """Return what serves forks of this process at a path."""
        folder = os.path.dirname(path) if alive is sys.stdin else None
        return Forks(path, alive, folder, self.token, self.serve)

    def serve(self, connection: socket.socket) -> Forks | None:
        """Serve a connection; return what serves forks where the connection asked for that."""
        self.preparation.run("after_fork", "attempt", self.module)
        send(connection, {"pid": os.getpid(), "mode": self.mode})
        if self.server is None:
            self.speak(connection)
            return None
        direct = Direct(self.server, self.module, self.preparation.probe)
        # In a loop of this process's own, left before anything is forked from it.
        asyncio.run(self.answer(connection, direct))
        if direct.frozen is None:
            return None
        self.preparation.run("after_fork", "task", self.module)
        forks = self.forks(direct.frozen, connection)
        thawed = Direct(self.server, self.module, self.preparation.probe)
        forks.thaw = lambda: asyncio.run(self.answer(connection, thawed))
        send(connection, {})
        return forks

    async def answer(self, connection: socket.socket, direct: Direct) -> None:
        """Answer requests until the connection is closed or this process is to be frozen."""
        loop = asyncio.get_running_loop()
        while direct.frozen is None:
            await readable(loop, connection)
            request = receive(connection)
            if request is None:
                return
            try:
                with no_longer_than(connection):
                    answer = await getattr(direct, request["do"])(request)
            except Exception as error:  # noqa: BLE001  (told to whoever asked)
                answer = {"failed": f"{type(error).__name__}: {error}"}
            if direct.frozen is None:
                send(connection, answer)

    def speak(self, connection: socket.socket) -> None:
        """Run the program as it would have run, with the connection as its standard input and output."""
        os.dup2(connection.fileno(), 0)
        os.dup2(connection.fileno(), 1)
        sys.stdin = os.fdopen(0, "r", encoding="utf-8")
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
        if asyncio.iscoroutine(self.caught.function):
            asyncio.run(self.caught.function)
        else:
            importlib.import_module("anyio").run(self.caught.function, *self.caught.arguments)


@contextlib.contextmanager
def no_longer_than(connection: socket.socket) -> Iterator[None]:
    """End this process, whatever it is busy with, when the connection is closed meanwhile: a signal tells."""
    signal.signal(signal.SIGIO, lambda *_: gone() if closed(connection) else None)
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(connection, fcntl.F_GETFL)
    fcntl.fcntl(connection, fcntl.F_SETFL, flags | os.O_ASYNC)
    if closed(connection):  # before a signal could tell
        gone()
    try:
        yield
    finally:
        fcntl.fcntl(connection, fcntl.F_SETFL, flags)


def closed(connection: socket.socket) -> bool:
    """Say whether the other end of a connection is closed."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


async def readable(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    """Wait until a connection can be read; the loop's other work goes on meanwhile."""
    ready = asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection.fileno())


def unforkable() -> str | None:
    """Return why this process can't be forked safely, None where it can."""
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return f"{sys.platform} does not fork safely"
    running = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    return f"its import starts threads ({', '.join(running)})" if running else None


def main() -> None:
    """Prepare, import, and serve.

    The specification holds ``module``, ``path`` (folders put first on the import path), ``prepare`` (files),
    ``options`` (for their functions), ``spawn``, and, to be served by forks, ``socket``. The token is the first line of
    standard input: whoever reads the list of processes does not learn it.
    """
    spec = json.loads(sys.argv[1])
    sys.path[:1] = spec["path"]
    preparation = Preparation(spec["prepare"])
    preparation.run("before_import", spec["options"])
    if spec.get("spawn"):
        runpy.run_module(spec["module"], run_name="__main__", alter_sys=True)
        return
    token = os.read(0, LONGEST_TOKEN).decode().strip()
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the server prints must not look like what we say
    module, code = as_main(spec["module"])
    program = Program(token, module, catch(code, module), preparation)
    preparation.run("after_import", module, spec["options"])
    program.warm()
    reason = unforkable()
    if reason is None:
        forks = program.forks(spec["socket"], sys.stdin)
    with contextlib.suppress(
        BrokenPipeError
    ):  # nobody reads it any more: what is served next ends at once, and tidies up
        told.write(json.dumps({"mode": "spawn" if reason else program.mode, "reason": reason}) + "\n")
        told.close()
    if reason is None:
        forks.serve()


if __name__ == "__main__":
    main()
