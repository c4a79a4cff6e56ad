"""The contract between the core and an agent: adapter, session, recorder.

Everything that a framework does between a user's turn and its answer (model calls, tool calls, handoffs, sub-graphs,
middleware) happens inside ``AgentSession.send``. The core never sees a framework's type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from tbadapters.core.errors import Fault
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Message, Usage
from tbadapters.core.tools import Tool


@dataclass(frozen=True, slots=True)
class TaskBrief:
    """What an agent is told before the first turn; nothing of the expectation.

    Attributes:
        id: An opaque id of this attempt, unique in the run (use it as a thread or session id).
        instructions: The suite's policy, to be given to the agent beside its own; None with ``instructions="none"``.
        history: Messages from before the trial.
    """

    id: str
    instructions: str | None = None
    history: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A tool call that the agent wants a person to agree to."""

    id: str
    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Approvals:
    """Answers to approval requests, by their id."""

    decisions: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Said:
    """The agent's visible answer to the user."""

    text: str


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """Calls that wait for ``Approvals``."""

    calls: tuple[ApprovalRequest, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The agent ended the conversation itself."""

    reason: str
    text: str = ""


class Recorder(Protocol):
    """Where a session reports what the core can't see by itself. Tool calls are recorded by the core."""

    def request_starts(self, actor: str | None = None) -> None:
        """Say that a model request is about to be made.

        Raises:
            LimitReached: the trial has no request left; let it pass.
        """
        ...

    def model_request(
        self, model: str, usage: Usage | None, *, fault: Fault | None = None, actor: str | None = None
    ) -> None:
        """Record a model request that ended, with its tokens (None where the provider reported none)."""
        ...

    def note(self, text: str) -> None:
        """Record a remark for the trial's reader (a handoff, a guardrail, a hint that was ignored)."""
        ...


class AgentSession(Protocol):
    """One attempt's conversation with the agent."""

    async def send(self, turn: Message | Approvals) -> Said | NeedsApproval | Ended:
        """Give the agent one user turn (or the answers to its approval requests) and return what it answers.

        Raises:
            AgentFault: the agent failed.
            ProviderFault: a model endpoint failed. Any other exception counts as the agent's.
        """
        ...


@runtime_checkable
class AgentAdapter(Protocol):
    """What lets a framework's agent be driven by the core."""

    @property
    def framework(self) -> str:
        """The framework's name."""
        ...

    @property
    def name(self) -> str:
        """A short name of the agent, for tables and folder names."""
        ...

    def check(self, tools: Sequence[Tool]) -> None:
        """Look at the agent once, before any trial.

        Raises:
            UsageError: it can't be run with these tools; the sentence shows the line that works.
        """
        ...

    def open(
        self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder, limits: Limits
    ) -> AbstractAsyncContextManager[AgentSession]:
        """Open a session for one attempt. The tools are bound to it."""
        ...
