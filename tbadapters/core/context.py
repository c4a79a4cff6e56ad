"""What a context variable carries: the attempt that is running here, and the sub-agent that acts in it.

The frameworks copy the context into their tasks and threads, so a suite's tools find their trial in sub-agents,
handoffs and sync tools alike, and two runs in one loop never mix.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from tbadapters.core.tools import ToolResult


@dataclass(frozen=True, slots=True)
class TrialRef:
    """Which trial runs: the task's id and the trial's index from 0."""

    task: str
    index: int
    seed: int = 0


class RunningAttempt(Protocol):
    """What a tool needs of the attempt that is running."""

    @property
    def trial(self) -> TrialRef:
        """Which trial this is an attempt at."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Execute a tool call in the attempt's sandbox and record it."""
        ...

    def call_sync(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Do the same from a worker thread."""
        ...


running: ContextVar[RunningAttempt | None] = ContextVar("tbadapters_running", default=None)
