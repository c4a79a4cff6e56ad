"""One trial: an attempt, pushed turn by turn into the agent's session; another one after an infrastructure fault."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

import anyio

from tbadapters.core.abandoned import abandon, threads_of
from tbadapters.core.agent import AgentAdapter, Approvals, TaskBrief
from tbadapters.core.approvals import ApprovalPolicy
from tbadapters.core.attempt import Attempt, Parties, end_reason, fault_record
from tbadapters.core.attempt_tasks import end_tasks, told
from tbadapters.core.context import TrialRef, running
from tbadapters.core.conversation import conversation_for
from tbadapters.core.cost import Prices
from tbadapters.core.errors import (
    AccessFault,
    AgentFault,
    Fault,
    GraderFault,
    HarnessFault,
    LimitReached,
    ProviderFault,
    SandboxFault,
    TbAdaptersError,
    boundary,
    describe,
    is_ours,
)
from tbadapters.core.grading import Verdict
from tbadapters.core.judge import Judge, NoJudge
from tbadapters.core.limits import Limits, Retries
from tbadapters.core.logs import get_logger
from tbadapters.core.messages import Message
from tbadapters.core.paced_requests import PacedRequests, keeping_pace
from tbadapters.core.pulse import attempt_name, lost_seconds
from tbadapters.core.records import AttemptRecord, recordable
from tbadapters.core.retrying import TryAgain, attempts
from tbadapters.core.suite import Suite, Task
from tbadapters.core.tool_faults import FaultySandbox, ToolFaults
from tbadapters.core.transport import ProviderFaults
from tbadapters.core.users import SimulatedUser

log = get_logger(__name__)

Commit = Callable[[AttemptRecord], Awaitable[None]]
UserOf = Callable[[Task], SimulatedUser]
MOMENT = 0.5  # seconds that a stopped agent has to end by itself before it is cancelled


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """What all trials of a run have in common.

    Attributes:
        paced: Whether model requests are held back where their endpoint refuses some; see ``core.pace``.
        faults: What is injected into tool calls, or None.
    """

    adapter: AgentAdapter
    suite: Suite
    limits: Limits
    retries: Retries
    user_of: UserOf
    judge: Judge = field(default_factory=NoJudge)
    instructions: Literal["append", "none"] = "append"
    seed: int = 0
    prices: Prices = field(default_factory=dict)
    paced: bool = False
    approvals: ApprovalPolicy = "user"
    faults: ToolFaults | None = None

    def brief(self, task: Task) -> TaskBrief:
        """Return what the agent is told of a task: an opaque id, the policy, the history."""
        policy = (task.instructions or self.suite.policy) if self.instructions == "append" else None
        return TaskBrief(secrets.token_hex(8), policy, task.history)


async def run_trial(
    plan: TrialPlan, task: Task, index: int, *, first: int, may_retry: Callable[[], bool], commit: Commit
) -> AttemptRecord:
    """Run one trial: an attempt, and further ones only after faults that the agent does not own.

    Args:
        plan: What the run's trials have in common.
        task: The task.
        index: The trial's index.
        first: The number of the first attempt (a resumed trial has some behind it).
        may_retry: Asked before each further attempt; False ends the trial without a verdict.
        commit: Keeps each attempt's record before anything follows from it.

    Returns:
        The deciding record: the last attempt's.

    Raises:
        AccessFault: quota, key or model; another attempt can't help.
    """
    record: AttemptRecord | None = None
    number = first
    try:
        async for again in attempts(plan.retries):
            with again:
                record, fault = await run_attempt(plan, task, TrialRef(task.id, index, plan.seed), number)
                number += 1
                await commit(record)
                if isinstance(fault, AccessFault):
                    raise fault
                left = number - first < plan.retries.attempts and _is_soon(fault, plan.retries)
                if record.passed is None and left and may_retry():
                    _try_again(fault)
    except TryAgain:
        pass
    assert record is not None, "at least one attempt is made"  # noqa: S101  (narrows the type)
    return record


def _is_soon(fault: Fault | None, retries: Retries) -> bool:
    """Whether another attempt can be waited for."""
    return fault is None or fault.retry_after is None or fault.retry_after <= retries.retry_after_max


def _try_again(fault: Fault | None) -> NoReturn:
    raise TryAgain(fault.retry_after if fault else None)


async def run_attempt(plan: TrialPlan, task: Task, trial: TrialRef, number: int) -> tuple[AttemptRecord, Fault | None]:
    """Run one attempt from the clean backend to its record; return it with the fault that ended it."""
    clock = _Clock()
    closing = AsyncExitStack()
    closing.enter_context(keeping_pace(plan.paced))
    try:
        attempt = await _opened(plan, task, trial, number, closing)
        clock.lap("setup")
        faults = ProviderFaults(PacedRequests() if plan.paced else None)
        fault, abandoned = await _conversed(plan, task, attempt, faults)
        await attempt.close(fault)
        left = await _ended_tasks(attempt)
        clock.lap("agent")
        verdict = await _verdict(attempt, plan.limits)
        clock.lap("grading")
        record = attempt.record(verdict, clock.phases, abandoned=abandoned)
        return _with_surroundings(record, attempt, faults, left), attempt.fault
    except Fault as fault:
        clock.lap("setup")
        return _unopened(trial, number, fault, clock), fault
    finally:
        await _torn_down(closing, plan.limits)


async def _ended_tasks(attempt: Attempt) -> int:
    """End the tasks that the agent left running, and return how many there were; no call of theirs is under way."""
    with anyio.CancelScope(shield=True):
        left = await end_tasks(attempt, attempt.limits.grace)
    if left:
        attempt.note(told(left))
    return len(left)


def _with_surroundings(record: AttemptRecord, attempt: Attempt, faults: ProviderFaults, tasks: int) -> AttemptRecord:
    """Return the record with what was seen around the agent: on the wire, and of tasks and threads that went on."""
    held = {"held": faults.held_seconds()} if faults.held_seconds() else {}
    return replace(
        record,
        seconds={**record.seconds, **held},
        tasks_left=tasks,
        threads_left=threads_of(attempt),
        provider_faults=faults.counted(),
        client_retries=faults.retries,
    )


async def _torn_down(closing: AsyncExitStack, limits: Limits) -> None:
    """Close the sandbox, exactly once and within its deadline; what goes wrong there can't undo a verdict."""
    with anyio.CancelScope(shield=True):
        try:
            async with asyncio.timeout(limits.grading_seconds):
                await closing.aclose()
        except Exception as error:  # noqa: BLE001  (whatever a backend raises while it closes)
            log.warning("sandbox_not_closed", error=describe(error))


async def _opened(plan: TrialPlan, task: Task, trial: TrialRef, number: int, stack: AsyncExitStack) -> Attempt:
    backend = plan.suite.backend
    with boundary(SandboxFault):
        async with asyncio.timeout(plan.limits.setup_seconds):
            sandbox = await stack.enter_async_context(backend.open(task))
            initial = await sandbox.state()
            if plan.faults is not None:
                sandbox = FaultySandbox(sandbox, plan.faults, trial, lambda: backend.open(task))
    with boundary(HarnessFault):
        user = plan.user_of(task)
        part = plan.suite.part_of(task)
        conversation = conversation_for(part.conversation, task, user)
        end_tools = tuple(tool for tool in part.tool_list if tool.ends_turn)
        parties = Parties(
            sandbox, initial, backend.grader(task), conversation, user, plan.judge, end_tools, plan.approvals
        )
        attempt = Attempt(trial, parties, plan.limits, number=number, prices=plan.prices)
    stack.push_async_callback(_ended_tasks, attempt)
    stack.push_async_callback(attempt.close)  # whatever ends the attempt: no call is under way when the sandbox closes
    return attempt


def _unopened(trial: TrialRef, number: int, fault: Fault, clock: _Clock) -> AttemptRecord:
    record = AttemptRecord(
        trial.task, trial.index, number, end_reason(None, fault), None, fault_record(fault), seconds=clock.phases
    )
    return recordable(record)


async def _conversed(
    plan: TrialPlan, task: Task, attempt: Attempt, provider_faults: ProviderFaults
) -> tuple[Fault | None, bool]:
    """Let the agent's whole conversation happen; return the fault that ended it, and whether it was abandoned.

    It runs as an asyncio task of its own, awaited with a timeout: an agent that swallows cancellation would hold a
    task group for ever. This is the one place where the project makes a bare task; one that outlives its attempt is
    among the ``abandoned_tasks``.
    """
    with provider_faults.observe():
        token = running.set(attempt)
        try:
            name = attempt_name(attempt.trial.task, attempt.trial.index)
            talking = asyncio.get_running_loop().create_task(_talk(plan, task, attempt), name=name)
        finally:
            running.reset(token)
        await _over(talking, attempt, plan.limits, provider_faults)
        abandoned = not talking.done()
    return _fault_of(talking, attempt, provider_faults), abandoned


async def _talk(plan: TrialPlan, task: Task, attempt: Attempt) -> None:
    """Everything that the agent does: open its session, answer each turn, close the session."""
    tools = [tool.bound(attempt) for tool in attempt.tools]
    seconds = plan.limits.setup_seconds
    opening = asyncio.get_running_loop().call_later(seconds, attempt.stop, LimitReached("setup_seconds", seconds))
    try:
        async with plan.adapter.open(plan.brief(task), tools, attempt, plan.limits) as session:
            opening.cancel()
            turn: Message | Approvals | None = attempt.start()
            while turn is not None:
                turn = await attempt.answer(await session.send(turn))
    except SystemExit as error:
        raise AgentFault(describe(error)) from error
    finally:
        opening.cancel()


async def _over(talking: asyncio.Task[None], attempt: Attempt, limits: Limits, provider_faults: ProviderFaults) -> None:
    """Wait until the agent ended, was stopped or met its deadline; end it then."""
    talking.add_done_callback(lambda _: attempt.stopped.set())
    try:
        before, name = lost_seconds(talking.get_name()), talking.get_name()
        await _stopped(
            attempt,
            limits.seconds,
            lambda: attempt.user_seconds + provider_faults.held_seconds() + lost_seconds(name) - before,
        )
        if attempt.stopped.is_set():
            await asyncio.wait({talking}, timeout=MOMENT)
        elif limits.seconds is not None and not talking.done():
            attempt.stop(LimitReached("seconds", limits.seconds))
    finally:
        # A run that is cancelled still gives its agents their grace: an anyio scope would cancel this waiting again.
        with anyio.CancelScope(shield=True):
            await _ended(talking, limits.grace)


async def _stopped(attempt: Attempt, seconds: float | None, waited: Callable[[], float]) -> None:
    """Wait until an attempt is stopped, for so many seconds besides those in which the agent waited.

    It waits for the user, for the pace at which its models may be asked, and where others block the loop.
    """
    began, left = time.monotonic(), seconds
    while not attempt.stopped.is_set() and (left is None or left > 0):
        with anyio.move_on_after(left):
            await attempt.stopped.wait()
        if seconds is not None:
            left = seconds + waited() - (time.monotonic() - began)


async def _ended(talking: asyncio.Task[None], grace: float) -> None:
    """End the agent's task where it has not ended: cancel it, wait for a while, and abandon it then."""
    talking.add_done_callback(_heard)
    if talking.done():
        return
    talking.cancel()
    try:
        await asyncio.wait({talking}, timeout=grace)
    finally:
        if not talking.done():
            abandon(talking)


def _heard(talking: asyncio.Task[None]) -> None:
    """Look at how an agent ended, so that asyncio does not complain that nobody did: what stopped it is known."""
    if not talking.cancelled():
        talking.exception()


def _fault_of(talking: asyncio.Task[None], attempt: Attempt, provider_faults: ProviderFaults) -> Fault | None:
    """Say what ended a conversation: the first of what the core, the agent's session and the transport saw."""
    if isinstance(attempt.fault, LimitReached):
        # Whoever meets a limit because its model does not answer, or asks again until it does, is not to blame.
        return provider_faults.unrecovered(swallowed=True) or _stalled(attempt, provider_faults) or attempt.fault
    if attempt.fault is not None:
        return attempt.fault
    error = AgentFault("The agent cancelled itself.", code="cancelled") if talking.cancelled() else talking.exception()
    if isinstance(error, Fault) and not isinstance(error, AgentFault):
        return error
    if isinstance(error, TbAdaptersError) and not isinstance(error, Fault):
        raise error
    # What a framework made of a provider's fault, a polite sentence or an exception of its own, is not the agent's.
    fault = provider_faults.unrecovered(swallowed=error is None)
    if fault is None and error is not None:
        if isinstance(error, AgentFault):
            return error
        return HarnessFault(describe(error)) if is_ours(error) else AgentFault(describe(error))
    return fault


def _stalled(attempt: Attempt, provider_faults: ProviderFaults) -> Fault | None:
    """Return the provider's fault where a model request took most of the time that a deadline allowed."""
    deadlines = {"seconds": attempt.limits.seconds, "setup_seconds": attempt.limits.setup_seconds}
    seconds = deadlines.get(attempt.fault.code) if attempt.fault else None
    waited = max(attempt.waiting_seconds(), provider_faults.waiting_seconds())
    if seconds is None or waited <= seconds / 2:
        return None
    return ProviderFault(f"A model request got no answer for {waited:.0f} s.", code="stalled")


async def _verdict(attempt: Attempt, limits: Limits) -> Verdict | None:
    try:
        async with asyncio.timeout(limits.grading_seconds):
            return await attempt.graded()
    except TimeoutError:
        attempt.fault = GraderFault(f"Grading took over {limits.grading_seconds:g} s.", code="deadline")
        return None


class _Clock:
    """Wall time of an attempt's phases, in seconds."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._began = self._last = time.perf_counter()

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.phases[phase] = now - self._last
        self.phases["total"] = now - self._began
        self._last = now
