"""One attempt at a trial: start, call, answer, grade. It holds no loop and ends in one serializable record.

Who drives it is another matter: ``trial.py`` pushes the user's turns into an agent's session; a server lets an agent
pull them. Either way the agent reaches the backend only through ``Attempt.call``, and what the record says of tool
calls is what the sandbox executed, not what a framework reports.
"""

from __future__ import annotations

import time
from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
import anyio.lowlevel

from tbadapters.core.agent import ApprovalRequest, Approvals, Ended, NeedsApproval, Said
from tbadapters.core.approvals import ApprovalPolicy, policy_name
from tbadapters.core.context import TrialRef
from tbadapters.core.conversation import Conversation, End
from tbadapters.core.cost import Prices, cost_of
from tbadapters.core.errors import (
    AgentFault,
    AttemptEnded,
    Fault,
    GraderFault,
    LimitReached,
    SandboxFault,
    boundary,
    describe,
)
from tbadapters.core.grading import Evidence, Grader, Verdict
from tbadapters.core.judge import Judge, Judgement, NoJudge, NotedJudge
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Entry, Message, ModelRequest, Usage
from tbadapters.core.plain import plain, shortened
from tbadapters.core.records import AttemptRecord, FaultRecord, Spent, recordable
from tbadapters.core.sandbox import Sandbox
from tbadapters.core.spending import collect_requests
from tbadapters.core.state import State
from tbadapters.core.thread_door import ThreadDoor
from tbadapters.core.tool_arguments import invalid_arguments, taken
from tbadapters.core.tool_faults import TOLD
from tbadapters.core.tools import Tool, ToolCall, ToolResult
from tbadapters.core.user_side import UserSide
from tbadapters.core.users import SimulatedUser


@dataclass(frozen=True, slots=True)
class Parties:
    """What an attempt is made of besides the agent.

    Attributes:
        sandbox: The clean backend, open.
        initial: Its state before the agent has touched it.
        grader: The task's grader.
        conversation: The turns, by the suite's protocol.
        user: The simulated user.
        judge: Whom the grader may ask about what was said.
        end_tools: Tools that end the conversation and that the sandbox need not know.
        approvals: Who agrees to calls that need approval.
    """

    sandbox: Sandbox
    initial: State
    grader: Grader
    conversation: Conversation
    user: SimulatedUser
    judge: Judge = field(default_factory=NoJudge)
    end_tools: tuple[Tool, ...] = ()
    approvals: ApprovalPolicy = "user"


class Attempt:
    """One attempt, from the clean backend to the verdict.

    It is the ``RunningAttempt`` of the suite's tools and the ``Recorder`` of the agent's session at once: both count
    towards the same limits.

    Attributes:
        stopped: Set when a limit is met or the sandbox died (whoever drives the agent ends it then), or it has ended.
        fault: What stopped it, or None.
    """

    def __init__(self, trial: TrialRef, parties: Parties, limits: Limits, *, number: int, prices: Prices) -> None:
        self.trial = trial
        self.limits = limits
        self.stopped = anyio.Event()
        self.fault: Fault | None = None
        self._parties = parties
        self._number = number
        self._prices = prices
        self._transcript: list[Entry] = []
        self._calls: list[ToolCall] = []
        self._requests: list[ModelRequest] = []
        self._user = UserSide(parties.conversation, parties.user, deadline=limits.user_seconds)
        self._judge_requests: list[ModelRequest] = []
        self._calls_started = 0
        self._requests_started = 0
        self._approvals_asked = 0
        self._waiting_since: float | None = None
        self._user_turns = 0
        self._end: str | None = None
        self._closed = False
        self._tools = {tool.name: tool for tool in (*parties.sandbox.tools, *parties.end_tools)}
        # An agent's parallel calls overlap, but transactions on one backend can't.
        self._one_call = anyio.Lock()
        self._under_way = anyio.CancelScope()
        self._door = ThreadDoor()

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the agent may call, unbound."""
        return tuple(self._tools.values())

    # -- the conversation ---------------------------------------------------------------------------------------

    def start(self) -> Message:
        """Return the user's opening message."""
        return self._user_says(self._user.start())

    async def answer(self, said: Said | NeedsApproval | Ended) -> Message | Approvals | None:
        """Take the agent's answer and return the user's next turn, or None where the conversation is over.

        Raises:
            UserFault: the simulated user failed.
            LimitReached: the user has no turn left, or more approvals are asked for than tool calls are allowed.
        """
        # A session that answers without ever waiting would keep the loop from its own deadline.
        await anyio.lowlevel.checkpoint()
        if isinstance(self.fault, AttemptEnded):  # the agent's code swallowed it and says something still
            return None
        if isinstance(said, NeedsApproval):
            self._count_approvals(len(said.calls))
            return Approvals({call.id: await self._approve(call) for call in said.calls})
        if (text := shortened(said.text)) is not said.text:
            said = replace(said, text=text)
            self.note("The agent's answer was too long to be kept: its middle is left out.")
        self._transcript.append(Entry("agent", said.text))
        if isinstance(said, Ended):
            self._transcript.append(Entry("note", f"The agent ended the conversation: {said.reason}."))
        following = await self._user.next(said)
        if isinstance(following, End):
            self._end = following.reason
            return None
        return self._user_says(following)

    def _user_says(self, message: Message) -> Message:
        if self.limits.user_turns is not None and self._user_turns >= self.limits.user_turns:
            raise self.stop(LimitReached("user_turns", self.limits.user_turns))
        self._user_turns += 1
        self._transcript.append(Entry("user", message.text))
        return message

    def _count_approvals(self, asked: int) -> None:
        self._approvals_asked += max(1, asked)
        if self.limits.tool_calls is not None and self._approvals_asked > self.limits.tool_calls:
            raise self.stop(LimitReached("tool_calls", self.limits.tool_calls))

    async def _approve(self, call: ApprovalRequest) -> bool:
        by = self._parties.approvals
        agreed = await self._user.approve(call, by)
        data = {"tool": call.tool, "arguments": plain(call.arguments), "approved": agreed, "by": policy_name(by)}
        self._transcript.append(Entry("approval", f"{'Approved' if agreed else 'Denied'}: {call.tool}", data))
        return agreed

    # -- tool calls ---------------------------------------------------------------------------------------------

    async def call(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Execute a tool call in the sandbox and record it.

        The arguments are copied as JSON-like data when they are given; the copy is what is executed and recorded. An
        unknown tool, invalid arguments and a tool's own error are results with ``is_error``: the agent may recover.

        Raises:
            AttemptEnded: the call was one of an end-turn tool; it is recorded.
            Fault: the attempt is over: a limit is met, the sandbox died, or it ended earlier.
        """
        self._raise_if_stopped()
        if self.limits.tool_calls is not None and self._calls_started >= self.limits.tool_calls:
            raise self.stop(LimitReached("tool_calls", self.limits.tool_calls))
        self._calls_started += 1
        given = taken(arguments)
        async with self._one_call:
            self._raise_if_stopped()
            began = time.perf_counter()
            ends = name in self._tools and self._tools[name].ends_turn
            result = ToolResult("") if ends else self._refused(name, given) or await self._executed(name, plain(given))
            shown = given if isinstance(given, dict) else {"": given}
            call = ToolCall(len(self._calls), name, shown, result, actor, time.perf_counter() - began)
            self._calls.append(call)
            self._transcript.append(Entry("tool_call", name, {"index": call.index}))
            if result.fault is not None:
                self.note(f"Injected fault: {TOLD.get(result.fault, result.fault)} ({result.fault}).")
            if ends:
                raise self.stop(AttemptEnded(name))
        return result

    def call_sync(self, name: str, arguments: Mapping[str, Any], *, actor: str | None = None) -> ToolResult:
        """Do the same from a worker thread; ``ThreadDoor.call`` says what it raises besides."""
        return self._door.call(name, lambda: self.call(name, arguments, actor=actor))

    def _refused(self, name: str, arguments: Any) -> ToolResult | None:
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult(f"There is no tool {name!r}. Tools: {', '.join(sorted(self._tools))}.", is_error=True)
        problem = invalid_arguments(tool, arguments)
        return ToolResult(problem, is_error=True) if problem else None

    async def _executed(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        with anyio.CancelScope() as self._under_way:
            try:
                with boundary(SandboxFault):
                    return await self._parties.sandbox.call(name, arguments)
            except Fault as fault:
                raise self.stop(fault) from fault.__cause__
            except (Exception, CancelledError, GeneratorExit, KeyboardInterrupt):
                raise
            except BaseException as error:  # nothing may pass a tool that would end the agent's task, or the loop
                raise self.stop(SandboxFault(describe(error))) from error
        self.note(f"The call of {name} was cancelled: the attempt was over.")
        raise _late()

    # -- what the session reports (Recorder) ----------------------------------------------------------------------

    def request_starts(self, actor: str | None = None) -> None:
        """See ``Recorder.request_starts``."""
        del actor
        self._raise_if_stopped()
        if self.limits.model_requests is not None and self._requests_started >= self.limits.model_requests:
            raise self.stop(LimitReached("model_requests", self.limits.model_requests))
        self._requests_started += 1
        self._waiting_since = time.monotonic()

    def model_request(
        self, model: str, usage: Usage | None, *, fault: Fault | None = None, actor: str | None = None
    ) -> None:
        """See ``Recorder.model_request``. Tokens and cost above their limit stop the attempt."""
        self._waiting_since = None
        self._requests.append(ModelRequest(model, usage, actor, str(fault) if fault else None))
        self._transcript.append(Entry("model_request", model, {"index": len(self._requests) - 1}))
        if self.limits.tokens is not None and self.usage.total_tokens > self.limits.tokens:
            self.stop(LimitReached("tokens", self.limits.tokens))
        if self.limits.cost is not None and (self.cost or 0.0) > self.limits.cost:
            self.stop(LimitReached("cost", self.limits.cost))

    def note(self, text: str) -> None:
        """See ``Recorder.note``."""
        self._transcript.append(Entry("note", text))

    @property
    def usage(self) -> Usage:
        """Tokens so far."""
        return sum((r.usage for r in self._requests if r.usage), Usage())

    @property
    def cost(self) -> float | None:
        """US dollars so far; None where a model's price or a request's usage is unknown."""
        return cost_of(self._requests, self._prices)

    @property
    def user_seconds(self) -> float:
        """Seconds that the agent has waited for the simulated user so far."""
        return self._user.seconds

    def waiting_seconds(self) -> float:
        """Return how long the last model request has been under way, 0 where none is."""
        return 0.0 if self._waiting_since is None else time.monotonic() - self._waiting_since

    # -- the end --------------------------------------------------------------------------------------------------

    def stop(self, fault: Fault) -> Fault:
        """Let whoever drives the agent end it; return the fault that stopped it, which is the first one."""
        if self.fault is None:
            self.fault = fault
            self.stopped.set()
        return self.fault

    def _raise_if_stopped(self) -> None:
        if self.fault is not None:
            raise self.fault
        if self._closed:
            raise _late()

    async def close(self, fault: Fault | None = None) -> None:
        """Let no further call reach the backend, and wait for the one that is under way.

        A call that does not end within ``Limits.grace`` is cancelled. One that does not end then either is the
        sandbox's fault: its state would change while it is read.

        Args:
            fault: What ended the attempt in the eyes of whoever drove the agent; None: what stopped it, if anything.
        """
        self.fault = fault or self.fault
        self._closed = True
        if isinstance(self.fault, AttemptEnded):
            self._end, self.fault = self.fault.code, None
        if await self._idle():
            return
        self._under_way.cancel()
        if not await self._idle() and (self.fault is None or isinstance(self.fault, AgentFault)):
            self.fault = SandboxFault("A tool call did not end when it was cancelled.", code="hanging_call")

    async def _idle(self) -> bool:
        """Wait until no call is under way; return False where one still is after the grace."""
        with anyio.move_on_after(self.limits.grace):
            async with self._one_call:
                return True
        return False

    async def graded(self) -> Verdict | None:
        """Read the final state and have it graded.

        A fault that the agent owns fails the trial, its state is graded and recorded all the same; with any other
        fault there is no verdict.
        """
        if not (self.fault is None or isinstance(self.fault, AgentFault)):
            return None
        try:
            with boundary(SandboxFault):
                final = await self._parties.sandbox.state()
            messages = tuple(Message(e.text, e.kind) for e in self._transcript if e.kind in ("user", "agent"))
            with boundary(GraderFault), collect_requests(self._judge_requests):
                judge = NotedJudge(self._parties.judge, self._judged)
                said = tuple(self._transcript)
                evidence = Evidence(self._parties.initial, final, tuple(self._calls), messages, judge, said)
                verdict = await self._parties.grader.grade(evidence)
                self._calls = [call.with_found(verdict.changes, verdict.errors) for call in self._calls]
                if self.fault is None or verdict.passed is None:
                    return verdict
                return replace(verdict, passed=False, reward=0.0, reasons=(*verdict.reasons, str(self.fault)))
        except Fault as fault:
            self.fault = fault
            return None

    def _judged(self, judgement: Judgement) -> None:
        self._transcript.append(Entry("judgement", str(judgement), judgement.to_dict()))

    def record(
        self, verdict: Verdict | None, seconds: Mapping[str, float], *, abandoned: bool = False
    ) -> AttemptRecord:
        """Return the record as things stand, as it will be read back."""
        fault = self.fault
        record = AttemptRecord(
            task=self.trial.task,
            index=self.trial.index,
            attempt=self._number,
            end_reason=end_reason(self._end, fault),
            verdict=verdict,
            fault=fault_record(fault),
            transcript=tuple(self._transcript),
            tool_calls=tuple(self._calls),
            requests=tuple(self._requests),
            cost=self.cost,
            user=Spent.of(self._user.requests, self._prices),
            judge=Spent.of(self._judge_requests, self._prices),
            seconds=seconds,
            abandoned=abandoned,
        )
        return recordable(record)


def _late() -> AgentFault:
    return AgentFault("The attempt is over: this call came too late.", code="late_call")


def fault_record(fault: Fault | None) -> FaultRecord | None:
    """Return a fault as data."""
    return FaultRecord(fault.owner, fault.code, str(fault)) if fault else None


def end_reason(end: str | None, fault: Fault | None) -> str:
    """Return why an attempt ended, in the words of ``AttemptRecord.end_reason``."""
    if isinstance(fault, LimitReached):
        return fault.code
    if isinstance(fault, AgentFault):
        return "agent_error"
    if fault is not None:
        return "fault"
    return end or "agent_ended"
