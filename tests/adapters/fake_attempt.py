"""A harness for tests of adapters: what the core gives to a session, without the core's loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tbadapters.core.agent import AgentAdapter, AgentSession, TaskBrief
from tbadapters.core.context import TrialRef, running
from tbadapters.core.errors import Fault, LimitReached
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Message, ModelRequest, Usage
from tbadapters.core.tools import Tool, ToolCall, ToolResult

Answer = Callable[[str, Mapping[str, Any]], Any]


def make_tool(name: str, *, needs_approval: bool = False, **properties: str) -> Tool:
    """Return a tool whose arguments are all required: ``make_tool("transfer", amount="number")``."""
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    return Tool(name, f"Do {name.replace('_', ' ')}.", schema, needs_approval=needs_approval)


GET_BALANCE = make_tool("get_balance", account="string")
TRANSFER = make_tool("transfer", source="string", target="string", amount="number")
CLOSE_ACCOUNT = make_tool("close_account", needs_approval=True, account="string")
TOOLS: tuple[Tool, ...] = (GET_BALANCE, TRANSFER, CLOSE_ACCOUNT)


@dataclass
class FakeAttempt:
    """A running attempt and recorder at once, as the core's: executes by ``answers`` and keeps what it saw.

    ``answers[name]`` is a ``ToolResult``, an exception to raise, a callable ``(name, arguments)`` giving one of these
    (or the text of the result), or a text. Tools without an answer say ``ok``.
    """

    tools: Sequence[Tool] = TOOLS
    trial: TrialRef = field(default_factory=lambda: TrialRef("test/task", 0))
    answers: dict[str, Any] = field(default_factory=dict)
    max_requests: int | None = None
    calls: list[ToolCall] = field(default_factory=list)
    started: list[str | None] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    before_call: Callable[[str], Any] | None = None
    """An async callable awaited inside each call, to make calls of concurrent trials overlap."""

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    async def call(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        if self.before_call is not None:
            await self.before_call(name)
        result = self._result(name, arguments)
        self.calls.append(ToolCall(len(self.calls), name, dict(arguments), result, actor))
        return result

    def call_sync(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        if threading.get_ident() == self._thread:
            raise RuntimeError(f"{name} was called synchronously on the event loop's thread")
        calling = self.call(name, arguments, actor=actor)
        return asyncio.run_coroutine_threadsafe(calling, self._loop).result()

    def _result(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name not in {tool.name for tool in self.tools}:
            return ToolResult(f"There is no tool {name!r}.", is_error=True)
        answer = self.answers.get(name, "ok")
        if callable(answer) and not isinstance(answer, type):
            answer = answer(name, arguments)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, ToolResult) else ToolResult(str(answer), answer)

    def request_starts(self, actor: str | None = None) -> None:
        if self.max_requests is not None and len(self.started) >= self.max_requests:
            raise LimitReached("model_requests", self.max_requests)
        self.started.append(actor)

    def model_request(
        self, model: str, usage: Usage | None, *, fault: Fault | None = None, actor: str | None = None
    ) -> None:
        self.requests.append(ModelRequest(model, usage, actor, str(fault) if fault else None))
        if fault is not None:
            self.faults.append(fault)

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def usage(self) -> Usage:
        return sum((request.usage for request in self.requests if request.usage), Usage())

    @property
    def called(self) -> list[tuple[str, dict[str, Any]]]:
        return [(call.name, dict(call.arguments)) for call in self.calls]

    @asynccontextmanager
    async def session(
        self,
        adapter: AgentAdapter,
        *,
        instructions: str | None = None,
        history: tuple[Message, ...] = (),
        limits: Limits | None = None,
    ) -> AsyncIterator[AgentSession]:
        """Open a session of ``adapter`` as the core does: checked, tools bound, the attempt in the context."""
        adapter.check(self.tools)
        brief = TaskBrief(f"{self.trial.task}-{self.trial.index}-{id(self):x}", instructions, history)
        bound = [tool.bound(self) for tool in self.tools]
        token = running.set(self)
        try:
            async with adapter.open(brief, bound, self, limits or Limits()) as session:
                yield session
        finally:
            running.reset(token)
