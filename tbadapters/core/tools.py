"""Tools: what an agent may call, and what came of a call."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tbadapters.core.errors import NoRunningTrial

if TYPE_CHECKING:
    from tbadapters.core.context import RunningAttempt


@dataclass(frozen=True, slots=True)
class Change:
    """One field that a tool call changed.

    Attributes:
        table: The table's name.
        key: The row's key as text (composite keys joined by ``|``).
        column: The column, or None where the whole row was created or deleted.
    """

    table: str
    key: str
    column: str | None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered.

    Attributes:
        text: What the agent reads.
        value: The same as data (JSON-like), where the tool returned data.
        is_error: Whether the text is an error that the agent may recover from.
        changes: The fields that the call changed; None where the sandbox can't tell.
        fault: The kind of the fault that was injected into the call (``core.tool_faults``), or None.
    """

    text: str
    value: Any = None
    is_error: bool = False
    changes: tuple[Change, ...] | None = ()
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One executed tool call, as the sandbox saw it.

    Attributes:
        index: The position among the attempt's tool calls, from 0.
        name: The tool's name.
        arguments: The arguments as given.
        result: What came of it.
        actor: The sub-agent that called, or None for the agent itself.
        seconds: Wall time of the call.
    """

    index: int
    name: str
    arguments: Mapping[str, Any]
    result: ToolResult
    actor: str | None = None
    seconds: float = 0.0

    @property
    def wrote(self) -> bool:
        """Whether the call changed the backend's state."""
        return bool(self.result.changes)

    @property
    def executions(self) -> int:
        """How many times the sandbox executed it: once, unless a fault that was injected had it otherwise."""
        return {"transient_error": 0, "duplicate_delivery": 2}.get(self.result.fault or "", 1)

    def with_found(self, changes: Mapping[int, tuple[Change, ...]], errors: Container[int] = ()) -> ToolCall:
        """Return the call with what was found out about it, by the calls' indices, where the sandbox can't tell.

        Args:
            changes: What each call changed.
            errors: The calls whose answer says that they failed.
        """
        result = self.result
        if result.changes is not None:
            return self
        changed = changes.get(self.index)
        return replace(self, result=replace(result, changes=changed, is_error=result.is_error or self.index in errors))

    def to_dict(self) -> dict[str, Any]:
        """Return the call as JSON-like data."""
        return {
            "index": self.index,
            "name": self.name,
            "arguments": dict(self.arguments),
            "result": self.result.text,
            "is_error": self.result.is_error,
            "changes": None
            if self.result.changes is None
            else [[c.table, c.key, c.column] for c in self.result.changes],
            "actor": self.actor,
            "seconds": round(self.seconds, 6),
            **({"injected_fault": self.result.fault} if self.result.fault else {}),
        }


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a suite.

    Attributes:
        name: The name by which agents call it.
        description: What the agent reads about it.
        parameters: JSON schema (an object schema) of its arguments.
        needs_approval: Whether a person must agree before it is executed.
        writes: Whether it may change the backend's state; None where unknown.
        ends_turn: Whether calling it ends the conversation: the call is recorded, no sandbox executes it, and the
            attempt is over.
        checks_arguments: Whether the sandbox checks the arguments itself, perhaps more leniently than the schema says: an
            object is then passed on as it was given.
        runner: The attempt that it is bound to. None: the attempt that runs in the current context.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    needs_approval: bool = False
    writes: bool | None = None
    ends_turn: bool = False
    checks_arguments: bool = False
    runner: RunningAttempt | None = field(default=None, repr=False, compare=False)

    def bound(self, runner: RunningAttempt) -> Tool:
        """Return the same tool, bound to one attempt."""
        return replace(self, runner=runner)

    async def call(self, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Execute the tool in the attempt's sandbox.

        Invalid arguments give a result with ``is_error``, they do not raise.

        Raises:
            NoRunningTrial: outside a trial.
            Fault: the attempt is over (a limit is reached, the sandbox died); let it pass.
        """
        return await self._attempt().call(self.name, arguments, actor=actor)

    def call_sync(self, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Do the same from a worker thread."""
        return self._attempt().call_sync(self.name, arguments, actor=actor)

    def _attempt(self) -> RunningAttempt:
        from tbadapters.core.context import running

        attempt = self.runner or running.get()
        if attempt is None:
            raise NoRunningTrial(self.name)
        return attempt
