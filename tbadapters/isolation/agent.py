"""The adapter of an agent that runs in processes of its own: the core's side of each attempt."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, replace
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from tbadapters.core.agent import ApprovalRequest, Approvals, Ended, NeedsApproval, Recorder, Said, TaskBrief
from tbadapters.core.errors import (
    AccessFault,
    AgentFault,
    Fault,
    ForeignTools,
    HarnessFault,
    InvalidOption,
    ProviderFault,
    UnknownAgentType,
    UsageError,
)
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Message, Usage
from tbadapters.core.tools import Tool
from tbadapters.isolation import wire
from tbadapters.isolation.processes import Process, Processes
from tbadapters.isolation.replayed import Replay
from tbadapters.isolation.spec import importable

R = TypeVar("R")
CALLS_AT_ONCE = 64  # tool calls of one agent that may wait for their turn
NEWS_SECONDS = 0.5  # to hear how a process ended
_REFUSALS = {kind.__name__: kind for kind in (ForeignTools, InvalidOption, UnknownAgentType)}


class IsolatedAgent:
    """An agent whose every attempt runs in a process of its own.

    Attributes:
        made_afresh: Whether a factory makes it for every attempt.

    Args:
        agent: A name (``module:attr``, ``file.py:attr``), or a function or factory that can be imported by its name.

    Raises:
        UnknownAgentType: another process can't import it.
        UsageError: it can't be imported or run.
    """

    def __init__(self, agent: object) -> None:
        self._processes = Processes(importable(agent))
        weakref.finalize(self, self._processes.close)
        looked = self._look(None)
        self.name, self.framework, self.models = looked.name, looked.framework, list(looked.models)
        self.made_afresh = looked.made_afresh

    def check(self, tools: Sequence[Tool]) -> None:
        """See ``AgentAdapter.check``; a process of its own looks."""
        self._look([_described(tool) for tool in tools])

    def _look(self, tools: Sequence[Mapping[str, Any]] | None) -> wire.Looked:
        try:
            return _looked(self._processes.look(tools))
        except BaseException:
            self._processes.close()
            raise

    def running(self) -> AbstractAsyncContextManager[None]:
        """Let attempts be opened while the block runs; no process is left after it."""
        return self._processes.running()

    def close(self) -> None:
        """End all processes; ``running`` does it by itself."""
        self._processes.close()

    @asynccontextmanager
    async def open(
        self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder, limits: Limits
    ) -> AsyncIterator[IsolatedSession]:
        """See ``AgentAdapter.open``. However it is left, the process and its group have ended then."""
        process = await self._processes.start()
        session = IsolatedSession(process, tools, recorder)
        raised: BaseException | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(session.listen, group)
                try:
                    await session.opened(brief, limits)
                    yield session
                    await session.closed()
                except BaseException as error:  # noqa: BLE001  (raised again below: the group would wrap it)
                    raised = error
                    await session.cancelled(limits.grace / 2)
                group.cancel_scope.cancel()
        finally:
            process.end()
            session.replay.close()
        if raised is not None:
            raise raised


class IsolatedSession:
    """One attempt's conversation with the agent at the other end of the pipe."""

    def __init__(self, process: Process, tools: Sequence[Tool], recorder: Recorder) -> None:
        self.replay = Replay()
        self._process, self._pipe = process, process.pipe
        self._tools = {tool.name: tool for tool in tools}
        self._recorder = recorder
        self._answer: asyncio.Future[wire.Reply] | None = None
        self._fault: Fault | UsageError | None = None
        self._began = False
        self._silent = anyio.Event()
        self._room = anyio.Semaphore(CALLS_AT_ONCE)

    async def opened(self, brief: TaskBrief, limits: Limits) -> None:
        """Have the agent's session opened."""
        order = {
            "type": "open",
            "id": brief.id,
            "instructions": brief.instructions,
            "history": [message.to_dict() for message in brief.history],
            "limits": asdict(limits),
            "tools": [_described(tool) for tool in self._tools.values()],
            "holds": Replay.holds(),
        }
        await self._asked(order, wire.Opened)

    async def send(self, turn: Message | Approvals) -> Said | NeedsApproval | Ended:
        """See ``AgentSession.send``."""
        if isinstance(turn, Message):
            order = {"type": "message", **turn.to_dict()}
        else:
            order = {"type": "approvals", "decisions": dict(turn.decisions)}
        answer = await self._asked(order, wire.Answered | wire.Asks | wire.Left)
        match answer:
            case wire.Answered():
                return Said(answer.text)
            case wire.Left():
                return Ended(answer.reason, answer.text)
            case _:
                return NeedsApproval(tuple(self._asking(call) for call in answer.calls))

    def _asking(self, call: wire.AskedCall) -> ApprovalRequest:
        try:
            arguments = wire.arguments_of(call.arguments)
        except Fault as fault:
            raise self._failed(fault) from fault
        return ApprovalRequest(call.id, call.tool, arguments if isinstance(arguments, dict) else {"": arguments})

    async def closed(self) -> None:
        """Have the agent's session closed."""
        await self._asked({"type": "close"}, wire.Closed)

    async def cancelled(self, seconds: float) -> None:
        """Have the agent cancelled, and give it a while to clean up."""
        if self._silent.is_set():
            return
        self._pipe.send({"type": "cancel"})
        with anyio.move_on_after(seconds, shield=True):
            await self._silent.wait()

    async def _asked(self, order: Mapping[str, Any], kind: Any) -> Any:
        """Send an order and return its answer, which is of this kind.

        Raises:
            Fault: what came instead.
        """
        if self._fault is not None:
            raise self._fault
        answered = self._answer = asyncio.get_running_loop().create_future()
        self._pipe.send(order)
        try:
            await self._pipe.drain()
            answer = await answered
        finally:
            self._answer = None
        if not isinstance(answer, kind):
            raise self._failed(wire.broken("gave an answer out of turn"))
        return answer

    def _failed(self, fault: Fault | UsageError) -> Fault | UsageError:
        """Let the conversation end by this fault; the first one stays."""
        self._fault = self._fault or fault
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(self._fault)
        return self._fault

    async def listen(self, group: TaskGroup) -> None:
        """Take what the process sends until it ends or does not keep to the protocol."""
        try:
            while (data := await self._pipe.receive()) is not None:
                self._began = True
                await self._taken(wire.parsed(data), group)
            self._failed(await self._gone())
        except Fault as fault:
            self._failed(fault)
            self._process.end()
        finally:
            self._silent.set()

    async def _gone(self) -> Fault:
        how = await self._process.ending(NEWS_SECONDS)
        if not self._began and self._process.pid is None:
            return HarnessFault("The agent's process was never started.", code="fork_server")
        return AgentFault(f"The agent's process {how} in the middle of the conversation.", code="process_ended")

    async def _taken(self, message: wire.Reply | wire.Report, group: TaskGroup) -> None:
        match message:
            case wire.Called():
                await self._room.acquire()
                group.start_soon(self._call, message)
            case wire.Seen(event="hold"):
                group.start_soon(self._hold, message)
            case wire.Seen():
                self.replay.tell(message)
            case wire.RequestStarts():
                self._recorder.request_starts(message.actor)
            case wire.RequestEnded():
                usage = Usage(**message.usage.model_dump()) if message.usage else None
                fault = _fault(message.fault) if message.fault else None
                self._recorder.model_request(message.model, usage, fault=fault, actor=message.actor)
            case wire.Noted():
                self._recorder.note(message.text)
            case wire.Failed():
                self._failed(_fault(message.fault))
            case wire.Refused():
                self._failed(_refusal(message))
            case _ if self._answer is None or self._answer.done():
                raise wire.broken("answered without being asked")
            case _:
                self._answer.set_result(message)

    async def _call(self, call: wire.Called) -> None:
        """Have a tool call executed here, and tell the process what came of it."""
        told: dict[str, Any] = {"type": "result", "id": call.id, "fault": None}
        try:
            result = await self._tool(call.name).call(wire.arguments_of(call.arguments), actor=call.actor)
            told |= {"text": result.text, "value": result.value, "is_error": result.is_error}
        except Fault as fault:
            told["fault"] = {"owner": fault.owner, "code": fault.code, "message": str(fault)}
            self._failed(fault)
        try:
            self._pipe.send(told)
            await self._pipe.drain()  # whoever does not listen to results gets no further ones
        finally:
            self._room.release()

    def _tool(self, name: str) -> Tool:
        # An unknown name is passed on, so that the attempt answers and records it as for any agent.
        known = self._tools.get(name) or next(iter(self._tools.values()), Tool(name, "", {}))
        return replace(known, name=name)

    async def _hold(self, seen: wire.Seen) -> None:
        async def go() -> None:
            self._pipe.send({"type": "go", "id": seen.id})
            await self._pipe.drain()

        try:
            await self.replay.held(seen, go)
        except Fault as fault:
            self._failed(fault)


def _looked(data: bytes) -> wire.Looked:
    """Return what an agent's process says that the agent is.

    Raises:
        UsageError: it can't be run.
    """
    try:
        said = wire.parsed(data)
    except AgentFault as fault:
        raise UsageError(str(fault)) from fault
    if isinstance(said, wire.Refused):
        raise _refusal(said)
    if not isinstance(said, wire.Looked):
        raise UsageError("The agent's process does not say what the agent is.")
    return said


def _described(tool: Tool) -> dict[str, Any]:
    """Return what the agent may know of a tool."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "needs_approval": tool.needs_approval,
        "writes": tool.writes,
        "ends_turn": tool.ends_turn,
    }


def _fault(told: wire.WireFault) -> Fault:
    """Return a fault as the agent's process tells it."""
    if told.owner == "agent":
        return AgentFault(told.message, code=told.code)
    kind = AccessFault if told.access else ProviderFault
    return kind(told.message, code=told.code, retry_after=told.retry_after)


def _refusal(refused: wire.Refused) -> UsageError:
    return _REFUSALS.get(refused.error, UsageError)(refused.message)
