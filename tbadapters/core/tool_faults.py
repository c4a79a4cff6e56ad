"""Faults of tools, injected on purpose: is the agent safe when a call fails, is answered late, or arrives twice?

What happens to a call is drawn from the seed, the task, the trial and the call's number alone, so the same agent meets
the same faults again. The faults are around the sandbox: the records, the grader and its replays know nothing of them.
"""

from __future__ import annotations

import fnmatch
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

import anyio

from tbadapters.core.context import TrialRef
from tbadapters.core.errors import InvalidOption
from tbadapters.core.limits import is_finite, is_share
from tbadapters.core.sandbox import Sandbox
from tbadapters.core.state import State
from tbadapters.core.tools import Tool, ToolResult

ToolFaultKind = Literal["transient_error", "late_timeout", "stale_read", "duplicate_delivery", "slow"]
TOOL_FAULT_KINDS: tuple[ToolFaultKind, ...] = get_args(ToolFaultKind)
TOLD: Mapping[str, str] = {
    "transient_error": "the call failed before anything happened",
    "late_timeout": "the call was executed, its answer was lost",
    "stale_read": "the call was answered from records of before the last change",
    "duplicate_delivery": "the call was executed twice",
    "slow": "the call was answered late",
}
_UNAVAILABLE = "503 Service Unavailable: the service can't take the call now."
_TIMEOUT = "504 Gateway Timeout: the service did not answer in time."


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFaults:
    """How often each kind of fault meets a tool call, as a probability a call; together at most 1.

    Attributes:
        transient_error: The call fails before anything happens; called again it works.
        late_timeout: The call is executed, but its answer is lost: the agent reads of a timeout.
        stale_read: A call that only reads is answered from the records as they were before the last change.
        duplicate_delivery: A call that changes something is executed twice, and answered once.
        slow: The call is executed at once, and answered after ``slow_seconds``.
        slow_seconds: How late a slow answer comes, seconds.
        tools: Which tools, by names or shell patterns; empty for all.
        seed: Seeds the draws.

    Raises:
        InvalidOption: what makes no sense, in one sentence.
    """

    transient_error: float = 0.0
    late_timeout: float = 0.0
    stale_read: float = 0.0
    duplicate_delivery: float = 0.0
    slow: float = 0.0
    slow_seconds: float = 2.0
    tools: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for kind in TOOL_FAULT_KINDS:
            rate = getattr(self, kind)
            if not is_share(rate):
                raise InvalidOption(f"ToolFaults({kind}={rate!r}): a probability from 0 to 1 is needed.")
        total = sum(getattr(self, kind) for kind in TOOL_FAULT_KINDS)
        if not 0 < total <= 1 + 1e-9:
            raise InvalidOption(
                f"ToolFaults: the probabilities are {total:g} together; above 0 and at most 1 is needed."
            )
        if not is_finite(self.slow_seconds, above=0):
            raise InvalidOption(f"ToolFaults(slow_seconds={self.slow_seconds!r}): seconds above 0 are needed.")
        named: Any = self.tools  # whatever was given
        if not isinstance(named, list | tuple) or not all(isinstance(pattern, str) and pattern for pattern in named):
            raise InvalidOption(f"ToolFaults(tools={named!r}): a tuple of tools' names or patterns is needed.")
        object.__setattr__(self, "tools", tuple(named))

    def drawn(self, trial: TrialRef, tool: str, number: int) -> ToolFaultKind | None:
        """Return what happens to a call of a trial, None for nothing; ``number`` is the call's, from 0."""
        if self.tools and not any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.tools):
            return None
        key = f"{self.seed}/{trial.task}/{trial.index}/{number}"
        draw = random.Random(key).random()  # noqa: S311 - no secret, must be repeatable
        for kind in TOOL_FAULT_KINDS:
            draw -= getattr(self, kind)
            if draw < 0:
                return kind
        return None

    @property
    def note(self) -> str:
        """What a reader of the figures must know."""
        rates = {kind: getattr(self, kind) for kind in TOOL_FAULT_KINDS}
        shown = ", ".join(f"{kind} {rate:.3g}" for kind, rate in rates.items() if rate)
        which = f" of {' '.join(self.tools)}" if self.tools else ""
        return f"tool faults injected, by call{which}: {shown} (seed {self.seed})"

    def to_dict(self) -> dict[str, Any]:
        """Return the faults as JSON-like data; ``from_dict`` reads it."""
        return asdict(self) | {"tools": list(self.tools)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolFaults:
        """Return the faults that ``to_dict`` wrote."""
        return cls(**{**data, "tools": tuple(data["tools"])})


def tool_faults_of(text: str) -> ToolFaults:
    """Return the faults that a text names, such as ``late_timeout=0.1,slow=0.2,slow_seconds=1,tools=transfer_* pay``.

    Raises:
        InvalidOption: it can't be read.
    """
    given: dict[str, Any] = {}
    known = [field.name for field in fields(ToolFaults)]
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in known:
            raise InvalidOption(f"Faults {part!r}: name=value is needed, with one of {', '.join(known)}.")
        try:
            given[name] = tuple(value.split()) if name == "tools" else int(value) if name == "seed" else float(value)
        except ValueError:
            raise InvalidOption(f"Faults {part!r}: a number is needed.") from None
    return ToolFaults(**given)


@dataclass(frozen=True, slots=True)
class _Done:
    """A call that the sandbox executed; whether it changed anything, where the sandbox can tell."""

    name: str
    arguments: Mapping[str, Any]
    wrote: bool | None


class FaultySandbox:
    """A sandbox whose calls meet faults.

    Args:
        sandbox: The real one.
        faults: What may happen.
        trial: Whose calls they are.
        another: Opens a clean sandbox of the same task, for what a stale read finds.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        faults: ToolFaults,
        trial: TrialRef,
        another: Callable[[], AbstractAsyncContextManager[Sandbox]],
    ) -> None:
        self._sandbox = sandbox
        self._faults = faults
        self._trial = trial
        self._another = another
        self._number = 0
        self._done: list[_Done] = []

    @property
    def tools(self) -> Sequence[Tool]:
        """The real sandbox's tools."""
        return self._sandbox.tools

    async def state(self) -> State:
        """Return the real records."""
        return await self._sandbox.state()

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Execute a call as the fault that it meets has it; ``ToolResult.fault`` names the one that made a difference."""
        kind = self._faults.drawn(self._trial, name, self._number)
        self._number += 1
        if kind == "transient_error":
            return ToolResult(_UNAVAILABLE, is_error=True, fault=kind)
        if kind == "stale_read":
            return await self._stale(name, arguments)
        if kind == "duplicate_delivery":
            return await self._twice(name, arguments)
        result = await self._executed(name, arguments)
        if kind == "late_timeout":
            return ToolResult(_TIMEOUT, is_error=True, changes=result.changes, fault=kind)
        if kind == "slow":
            await anyio.sleep(self._faults.slow_seconds)
            return replace(result, fault=kind)
        return result

    async def _executed(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        result = await self._sandbox.call(name, arguments)
        self._done.append(_Done(name, arguments, None if result.changes is None else bool(result.changes)))
        return result

    async def _watched(self, name: str, arguments: Mapping[str, Any]) -> tuple[ToolResult, bool]:
        """Execute a call and say whether it changed anything; where the sandbox can't tell the records do."""
        before = await self.state()
        result = await self._executed(name, arguments)
        if result.changes is not None:
            return result, bool(result.changes)
        after = await self.state()
        return result, (after, after.raw) != (before, before.raw)

    async def _twice(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        first, wrote = await self._watched(name, arguments)
        if not wrote:
            return first
        second = await self._executed(name, arguments)
        unknown = first.changes is None or second.changes is None
        changes = None if unknown else (*(first.changes or ()), *(second.changes or ()))
        return replace(first, changes=changes, fault="duplicate_delivery")

    async def _stale(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Answer from another sandbox, in which the calls up to the last change were made; the call itself is made, too.

        Where the sandbox can't tell what changed, none was made there.
        """
        earlier = self._before_the_last_change()
        result, wrote = await self._watched(name, arguments)
        if wrote or earlier is None:
            return result
        async with self._another() as past:
            for done in earlier:
                await past.call(done.name, done.arguments)
            stale = await past.call(name, arguments)
        if (stale.text, stale.is_error) == (result.text, result.is_error):
            return result
        return replace(stale, changes=result.changes, fault="stale_read")

    def _before_the_last_change(self) -> list[_Done] | None:
        for place in reversed(range(len(self._done))):
            if self._done[place].wrote is None:
                return []
            if self._done[place].wrote:
                return self._done[:place]
        return None
