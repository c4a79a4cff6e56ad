"""The process that imports the agent once and makes a process for each attempt.

Importing an agent's frameworks takes seconds, a fork milliseconds. The run sends it one byte with one end of a
socket for every process that it wants, and is told the process's id and, later, how it ended, a JSON line each. A
process is forked where no thread but the main one runs; else (a module started one when it was imported) it is started
afresh, as a fork would leave locks locked for ever.

When the run's end of the control socket closes, however the run ended, every process is ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

from tbadapters.isolation.inside import play
from tbadapters.isolation.offspring import WANTED, offspring
from tbadapters.isolation.spec import Importable, command, entered

_PR_SET_CHILD_SUBREAPER = 36


def main() -> NoReturn:
    """Serve until the run closes its end."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    agent = Importable.from_json(sys.argv[2])
    entered(agent.spec)
    _adopt_orphans()
    _imported(agent)
    server = _Server(control, agent)
    with contextlib.suppress(ConnectionError):
        server.serve()
    server.end_all()
    os._exit(0)


def _adopt_orphans() -> None:
    """Become the parent of whatever the agent's processes leave behind, so that the run finds it (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _imported(agent: Importable) -> None:
    """Import the agent for all processes to come; what is wrong with it, each of them tells by itself."""
    with contextlib.suppress(BaseException):  # each process imports it again, and tells
        agent.resolve()


class _Server:
    def __init__(self, control: socket.socket, agent: Importable) -> None:
        self._control = control
        self._agent = agent
        self._jobs: dict[int, int] = {}
        self._count = 0

    def serve(self) -> None:
        """Make processes and report ended ones."""
        awake, alarm = socket.socketpair()
        for end in (awake, alarm):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
        self._own = (self._control, awake, alarm)
        while True:
            ready, _, _ = select.select([self._control, awake], [], [])
            if awake in ready:
                awake.recv(4096)
                self._reap()
            if self._control in ready:
                data, descriptors, _, _ = socket.recv_fds(self._control, 1, 1)
                if data != WANTED:
                    return
                with socket.socket(fileno=descriptors[0]) as connection:
                    self._make(connection)

    def _make(self, connection: socket.socket) -> None:
        process = self._forked(connection) if _can_fork() else self._started(connection)
        self._jobs[process] = self._count
        self._tell(job=self._count, pid=process)
        self._count += 1

    def _forked(self, connection: socket.socket) -> int:
        gc.collect()
        gc.freeze()  # the collector of each process would otherwise copy what they share
        process = os.fork()
        if process:
            return process
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for end in self._own:
                end.close()
            play(connection, self._agent)
        finally:
            os._exit(1)

    def _started(self, connection: socket.socket) -> int:
        process = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            command("tbadapters.isolation.inside", connection.fileno(), self._agent),
            pass_fds=[connection.fileno()],
            start_new_session=True,
        )
        process.returncode = 0  # it is reaped here, like the forked ones
        return process.pid

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not process:
                return
            if (job := self._jobs.pop(process, None)) is not None:
                self._tell(job=job, status=os.waitstatus_to_exitcode(status))

    def _tell(self, **report: int) -> None:
        self._control.sendall(json.dumps(report).encode() + b"\n")

    def end_all(self) -> None:
        """End every process that is left, with what it started."""
        for process in self._jobs:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
        for process in offspring(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


def _can_fork() -> bool:
    """Whether only this thread runs, as far as the system tells, and the system forks well."""
    if sys.platform != "linux":
        return False
    return threading.active_count() == 1 and len(list(Path("/proc/self/task").iterdir())) == 1
