"""The sandbox: one attempt's isolated backend. Tools in, records out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from tbadapters.core.grading import Grader
from tbadapters.core.state import State
from tbadapters.core.tools import Tool, ToolResult

if TYPE_CHECKING:
    from tbadapters.core.suite import Task


class Sandbox(Protocol):
    """One attempt's backend, open."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the agent may call, unbound."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Execute a tool whose arguments were validated.

        A tool's own error is a result with ``is_error``; ``changes`` lists the fields that the call changed.

        Raises:
            SandboxFault: the backend itself failed.
        """
        ...

    async def state(self) -> State:
        """Return all records as they are now."""
        ...


class Backend(Protocol):
    """What opens sandboxes: each one a clean copy of a task's initial state."""

    def open(self, task: Task) -> AbstractAsyncContextManager[Sandbox]:
        """Open a sandbox for one attempt; it is closed exactly once, whatever happens."""
        ...

    def grader(self, task: Task) -> Grader:
        """Return the grader of a task."""
        ...


def running(backend: Backend) -> AbstractAsyncContextManager[None]:
    """Keep what a backend keeps for a whole run, such as servers' processes, where it has a ``running()`` for that."""
    keep = getattr(backend, "running", None)
    return keep() if keep is not None else nullcontext()
