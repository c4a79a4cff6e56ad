"""One attempt inside the agent's process: the session's messages are taken from the pipe, all else is told to it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import anyio

from tbadapters.adapters.factory import AgentFactory
from tbadapters.core.agent import AgentAdapter, AgentSession, Approvals, Ended, NeedsApproval, Said, TaskBrief
from tbadapters.core.context import TrialRef, running
from tbadapters.core.errors import (
    AccessFault,
    AgentFault,
    Fault,
    LimitReached,
    ProviderFault,
    SandboxFault,
    TbAdaptersError,
    UsageError,
    describe,
)
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Message, Usage
from tbadapters.core.model_request import is_model_request
from tbadapters.core.thread_door import ThreadDoor
from tbadapters.core.threads import roomy_threads
from tbadapters.core.tools import Tool, ToolResult
from tbadapters.core.transport import TransportHook, observe_transport
from tbadapters.isolation.spec import Importable, entered
from tbadapters.isolation.wire import MESSAGE_MAX, NOTE_MAX, Pipe, given

_ASK_AGAIN = 0.005  # seconds until a held request asks whether it may go
_HEADERS = ("retry-after", "retry-after-ms")


def main() -> NoReturn:
    """Play one attempt in a process that was started afresh."""
    agent = Importable.from_json(sys.argv[2])
    entered(agent.spec)
    play(socket.socket(fileno=int(sys.argv[1])), agent)


def play(connection: socket.socket, agent: Importable) -> NoReturn:
    """Play one attempt to its end and leave the process, whatever the agent still runs."""
    connection.set_inheritable(False)
    status = 1
    try:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(_played(connection, agent))
        status = 0
    finally:
        _leave(status)


def _leave(status: int) -> NoReturn:
    with contextlib.suppress(Exception):  # the agent may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


async def _played(connection: socket.socket, agent: Importable) -> None:
    pipe = await Pipe.over(connection, limited=False)
    first = await pipe.receive()
    if first is None:
        return
    order = json.loads(first)
    tools = None if order["tools"] is None else [Tool(**tool) for tool in order["tools"]]
    if order["type"] == "look":
        pipe.send(await _looked(agent, tools))
    else:
        await _Play(pipe, agent, order, tools or []).run()
    await pipe.drain()


async def _looked(agent: Importable, tools: Sequence[Tool] | None) -> dict[str, Any]:
    """Return what the agent is, or why it can't be run."""
    try:
        adapter = agent.resolve()
        if tools is not None:
            adapter.check(tools)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (an agent's module may raise anything)
        return _refused(error)
    models = [str(model) for model in getattr(adapter, "models", ())]
    made = isinstance(adapter, AgentFactory)
    return {
        "type": "looked",
        "name": adapter.name,
        "framework": adapter.framework,
        "models": models,
        "made_afresh": made,
    }


def _refused(error: BaseException) -> dict[str, Any]:
    message = str(error) if isinstance(error, TbAdaptersError) else describe(error)
    return {"type": "refused", "error": type(error).__name__, "message": message}


class _Play:
    """The conversation with the agent: what the session is told and what it answers."""

    def __init__(self, pipe: Pipe, agent: Importable, order: Mapping[str, Any], tools: Sequence[Tool]) -> None:
        self._pipe, self._agent = pipe, agent
        history = tuple(Message(**message) for message in order["history"])
        self._brief = TaskBrief(order["id"], order["instructions"], history)
        self._limits = Limits(**order["limits"])
        self._attempt = InsideAttempt(pipe, self._brief.id, self._limits)
        self._tools = [tool.bound(self._attempt) for tool in tools]
        self._witness = _Witness(pipe, holds=order["holds"])
        self._turns: asyncio.Queue[Message | Approvals | None] = asyncio.Queue()

    async def run(self) -> None:
        """Converse until the run closes the session or goes away."""
        running.set(self._attempt)
        async with roomy_threads(1):
            with observe_transport(self._witness):
                # A task of its own, for it is cancelled like the one in trial.py: once.
                talking = asyncio.get_running_loop().create_task(self._conversed())
                async with anyio.create_task_group() as group:
                    group.start_soon(self._listened, talking)
                    await asyncio.wait({talking})
                    await self._pipe.drain()
                    group.cancel_scope.cancel()

    async def _listened(self, talking: asyncio.Task[None]) -> None:
        while (data := await self._pipe.receive()) is not None:
            message = json.loads(data)
            match message["type"]:
                case "result":
                    self._attempt.answered(message)
                case "message":
                    self._turns.put_nowait(Message(message["text"], message["role"]))
                case "approvals":
                    self._turns.put_nowait(Approvals(message["decisions"]))
                case "close":
                    self._turns.put_nowait(None)
                case "go":
                    self._witness.go(message["id"])
                case "cancel":
                    talking.cancel()
        _leave(1)  # the run is gone: nobody would hear an answer

    async def _conversed(self) -> None:
        try:
            adapter: AgentAdapter = self._agent.resolve()
            async with adapter.open(self._brief, self._tools, self._attempt, self._limits) as session:
                self._pipe.send({"type": "opened"})
                await self._answered(session)
        except UsageError as error:
            self._pipe.send(_refused(error))
        except asyncio.CancelledError:
            self._fail(AgentFault("The agent cancelled itself.", code="cancelled"))
        except (Exception, SystemExit) as error:  # noqa: BLE001  (the agent's own code may raise anything)
            self._fail(error if isinstance(error, Fault) else AgentFault(describe(error)))
        else:
            self._pipe.send({"type": "closed"})

    async def _answered(self, session: AgentSession) -> None:
        while (turn := await self._turns.get()) is not None:
            match await session.send(turn):
                case Said(text=text) | Ended(text=text) if len(text) > MESSAGE_MAX:
                    raise AgentFault(f"The agent's answer has {len(text)} characters; {MESSAGE_MAX} is the most.")
                case Said(text=text):
                    self._pipe.send({"type": "said", "text": text})
                case Ended(reason=reason, text=text):
                    self._pipe.send({"type": "ended", "reason": reason, "text": text})
                case NeedsApproval(calls=calls):
                    asked = [{"id": c.id, "tool": c.tool, "arguments": given(c.arguments)} for c in calls]
                    self._pipe.send({"type": "asks", "calls": asked})
            await self._pipe.drain()

    def _fail(self, fault: Fault) -> None:
        self._pipe.send({"type": "failed", "fault": _wire_fault(fault)})


def _wire_fault(fault: Fault) -> dict[str, Any]:
    provider = isinstance(fault, ProviderFault)
    return {
        "owner": "provider" if provider else "agent",
        "access": isinstance(fault, AccessFault),
        "code": fault.code,
        "message": str(fault),
        "retry_after": fault.retry_after,
    }


class InsideAttempt:
    """What stands for the attempt inside the agent's process: ``RunningAttempt`` and ``Recorder``.

    It only passes on. What counts is counted at the other end of the pipe; here the same count of model requests lets
    a limit be met where the request is made.
    """

    def __init__(self, pipe: Pipe, attempt_id: str, limits: Limits) -> None:
        self.trial = TrialRef(attempt_id, 0)
        self._pipe, self._limits = pipe, limits
        self._waiting: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._calls = 0
        self._requests = 0
        self._over: Fault | None = None
        self._door = ThreadDoor()

    async def call(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Have a tool call executed in the sandbox, at the other end of the pipe.

        Raises:
            Fault: the attempt is over.
        """
        number, self._calls = self._calls, self._calls + 1
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._pipe.send({"type": "call", "id": number, "name": name, "arguments": given(arguments), "actor": actor})
        try:
            await self._pipe.drain()
            result = await answer
        finally:
            del self._waiting[number]
        if result["fault"] is not None:
            raise self._ended(result["fault"])
        return ToolResult(result["text"], result["value"], result["is_error"])

    def call_sync(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Do the same from a worker thread."""
        return self._door.call(name, lambda: self.call(name, arguments, actor=actor))

    def answered(self, result: Mapping[str, Any]) -> None:
        """Take the result of a call."""
        waiting = self._waiting.get(result["id"])
        if waiting is not None and not waiting.done():
            waiting.set_result(result)

    def request_starts(self, actor: str | None = None) -> None:
        """See ``Recorder.request_starts``."""
        if self._over is not None:
            raise self._over
        self._pipe.send({"type": "request_starts", "actor": actor})
        self._requests += 1
        most = self._limits.model_requests
        if most is not None and self._requests > most:
            self._over = LimitReached("model_requests", most)
            raise self._over

    def model_request(
        self, model: str, usage: Usage | None, *, fault: Fault | None = None, actor: str | None = None
    ) -> None:
        """See ``Recorder.model_request``."""
        tokens = usage.to_dict() if usage else None
        told = _wire_fault(fault) if fault else None
        self._pipe.send({"type": "request_ended", "model": model, "usage": tokens, "actor": actor, "fault": told})

    def note(self, text: str) -> None:
        """See ``Recorder.note``."""
        self._pipe.send({"type": "note", "text": text[:NOTE_MAX]})

    def _ended(self, fault: Mapping[str, Any]) -> Fault:
        kinds = {"agent": AgentFault, "provider": ProviderFault}
        self._over = kinds.get(fault["owner"], SandboxFault)(fault["message"], code=fault["code"])
        return self._over


class _Witness(TransportHook):
    """Tells the run what the transport sees of the agent's model requests; keys in headers stay here."""

    reads_answers = True

    def __init__(self, pipe: Pipe, *, holds: bool) -> None:
        self.holds = holds
        self._pipe = pipe
        self._free: set[int] = set()
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._numbers: dict[Any, int] = {}
        self._count = 0

    def hold(self, request: Any) -> float:
        """See ``TransportHook``: the run is asked, and asked again until it says yes."""
        if not self.holds or not is_model_request(request):
            return 0.0
        if request not in self._numbers:
            self._tell(request, "hold", method=request.method, url=_address(request))
        return 0.0 if self._numbers[request] in self._free else _ASK_AGAIN

    def go(self, number: int) -> None:
        """Hear that a request may be sent."""
        self._free.add(number)

    def request(self, request: Any) -> None:
        """See ``TransportHook``."""
        if not is_model_request(request):
            return
        try:
            body = request.content.decode(errors="replace")
        except RuntimeError:  # it is streamed
            body = ""
        self._tell(request, "request", method=request.method, url=_address(request), body=body)

    def response(self, request: Any, status: int, headers: Mapping[str, str]) -> None:
        """See ``TransportHook``."""
        if request in self._numbers:
            kept = {name: headers[name] for name in _HEADERS if name in headers}
            self._tell(request, "response", status=status, headers=kept)

    def ended(self, request: Any, status: int, body: bytes) -> None:
        """See ``TransportHook``."""
        if request in self._numbers:
            self._tell(request, "ended", status=status, body=body.decode(errors="replace"))
            del self._numbers[request]

    def failed(self, request: Any, error: BaseException) -> None:
        """See ``TransportHook``."""
        if request in self._numbers:
            names = ",".join(base.__name__ for base in type(error).__mro__)
            self._tell(request, "failed", error=names[:2000], body=str(error))
            del self._numbers[request]

    def _tell(self, request: Any, event: str, **what: Any) -> None:
        number = self._numbers.setdefault(request, self._count)
        self._count += number == self._count
        message = {"type": "seen", "id": number, "event": event, **what}
        if threading.get_ident() == self._loop_thread:
            self._pipe.send(message)
        else:  # a sync client asks from a thread
            self._loop.call_soon_threadsafe(self._pipe.send, message)


def _address(request: Any) -> str:
    """Return where a request goes, without the query: some APIs take their key there."""
    return str(request.url.copy_with(query=None, username=None, password=None))
