"""Many trials: concurrency, cost ceiling, stopping early. For every task, k trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import anyio
from structlog.contextvars import bound_contextvars

from tbadapters.core.attempt_tasks import watched_tasks
from tbadapters.core.concurrency import Slots
from tbadapters.core.errors import AccessFault, RunStopped, TbAdaptersError, UnusableFolder, describe
from tbadapters.core.events import (
    AttemptFaulted,
    Event,
    LoopBlocked,
    OnEvent,
    PaceChanged,
    RunEnded,
    TrialEnded,
    TrialStarted,
)
from tbadapters.core.logs import get_logger
from tbadapters.core.pace import slowed
from tbadapters.core.pulse import BLOCKED, Pulse, feel
from tbadapters.core.records import AttemptRecord
from tbadapters.core.redaction import redacted
from tbadapters.core.store import Store
from tbadapters.core.suite import Task
from tbadapters.core.threads import roomy_threads
from tbadapters.core.trial import TrialPlan, run_trial

log = get_logger(__name__)

LOOK_SECONDS = 0.5  # between two looks at what changes while trials are under way


class Control:
    """How a run is stopped early: no new trial is begun, those under way are finished.

    Attributes:
        reason: Why, in one sentence; None while the run goes on.
    """

    def __init__(self) -> None:
        self.reason: str | None = None

    def stop(self, reason: str) -> None:
        """Begin no further trial; the first reason stays."""
        self.reason = self.reason or redacted(reason)


@dataclass
class Run:
    """One agent's trials: the plan, the store, and what is recorded so far.

    Attributes:
        spent: US dollars so far, faulted attempts included, as far as prices are known.
    """

    name: str
    plan: TrialPlan
    trials: int
    store: Store
    records: list[AttemptRecord] = field(default_factory=list)
    extra_attempts: int = 0
    spent: float = 0.0

    def next_attempt(self, task: Task, index: int) -> int | None:
        """Return the number of the attempt that a trial needs next, None where it has its verdict."""
        behind = self._behind.get((task.id, index), [])
        return None if any(r.passed is not None for r in behind) else len(behind)

    def __post_init__(self) -> None:
        self._behind: dict[tuple[str, int], list[AttemptRecord]] = {}
        self.spent = sum(record.spent for record in self.records)
        for record in self.records:
            self._behind.setdefault((record.task, record.index), []).append(record)

    @property
    def done(self) -> int:
        """How many trials had their verdict when the run was opened."""
        return sum(any(r.passed is not None for r in behind) for behind in self._behind.values())

    def may_retry(self) -> bool:
        """Say whether the run's retry budget allows one more attempt, and take it from there."""
        budget = self.plan.retries.budget
        if budget is not None and self.extra_attempts >= budget:
            return False
        self.extra_attempts += 1
        return True

    async def commit(self, record: AttemptRecord) -> None:
        """Keep an attempt: on disk first, then in memory. A cancelled run still ends the commit that it began."""
        with anyio.CancelScope(shield=True):
            await self.store.add(record)
        self.records.append(record)
        self.spent += record.spent


@dataclass(frozen=True, slots=True)
class _Job:
    run: Run
    task: Task
    index: int
    attempt: int


def folders_of(runs: Iterable[Run]) -> str:
    """Return the run folders of runs, in words."""
    return " and ".join(str(run.store.folder) for run in runs)


def missing(runs: Sequence[Run]) -> Iterator[_Job]:
    """Yield the trials that lack a verdict, one of each task before the second of any, the runs interleaved."""
    for index in range(max(run.trials for run in runs)):
        for tasks in zip(*(run.plan.suite.tasks for run in runs), strict=True):
            for run, task in zip(runs, tasks, strict=True):
                attempt = run.next_attempt(task, index) if index < run.trials else None
                if attempt is not None:
                    yield _Job(run, task, index, attempt)


class Runner:
    """Runs the missing trials of one or several runs, some at a time."""

    def __init__(self, *, concurrency: int | None, max_cost: float | None, on_event: OnEvent, control: Control) -> None:
        self._concurrency = concurrency
        self._max_cost = max_cost
        self._on_event = on_event
        self._control = control
        self._runs: Sequence[Run] = ()

    async def run(self, runs: Sequence[Run]) -> None:
        """Run every trial that lacks a verdict.

        Raises:
            RunStopped: quota, key or model make further requests pointless; what is finished is committed.
        """
        self._runs = runs
        self._watch_cost()
        jobs, pulse = missing(runs), Pulse(BLOCKED)
        slots = Slots(self._concurrency, is_late=lambda: pulse.is_late)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(roomy_threads(slots.most))
            stack.enter_context(feel(pulse))
            stack.enter_context(watched_tasks())
            try:
                async with anyio.create_task_group() as beside:
                    beside.start_soon(pulse.beat)
                    beside.start_soon(self._look_on, slots, pulse)
                    async with anyio.create_task_group() as workers:
                        for _ in range(slots.most):
                            workers.start_soon(self._work, jobs, slots)
                    beside.cancel_scope.cancel()
            except BaseExceptionGroup as group:
                error = _first(group)
                if isinstance(error, Exception):
                    self._control.stop(str(error) if isinstance(error, TbAdaptersError) else describe(error))
                raise error from group
            finally:
                for run in runs:
                    self._tell(RunEnded(run.name, self._control.reason))

    async def _work(self, jobs: Iterator[_Job], slots: Slots) -> None:
        while True:
            async with slots.one():
                job = next(jobs, None)
                if job is None or self._control.reason is not None:
                    return
                with bound_contextvars(run=job.run.name, task=job.task.id, trial=job.index):
                    slots.ended(await self._trial(job))

    async def _look_on(self, slots: Slots, pulse: Pulse) -> None:
        """Tell what changes while trials are under way."""
        told = PaceChanged(slots.limit, {})
        try:
            while True:
                await anyio.sleep(LOOK_SECONDS)
                now = PaceChanged(slots.limit, slowed() if self._concurrency is None else {})
                if now != told:
                    told = now
                    self._tell(now)
                self._tell_blocks(pulse)
        finally:
            self._tell_blocks(pulse)

    def _tell_blocks(self, pulse: Pulse) -> None:
        while pulse.blocks:
            block = pulse.blocks.pop(0)
            self._tell(LoopBlocked(block.seconds, block.where, block.task))

    async def _trial(self, job: _Job) -> AttemptRecord:
        run = job.run
        self._tell(TrialStarted(run.name, job.task.id, job.index))

        async def commit(record: AttemptRecord) -> None:
            try:
                await run.commit(record)
            except UnusableFolder as error:
                raise self._stopped(f"Nothing can be recorded any more ({error})") from error
            self._watch_cost(record)
            if record.passed is None:
                self._tell(AttemptFaulted(run.name, record))

        try:
            record = await run_trial(
                run.plan, job.task, job.index, first=job.attempt, may_retry=self._may_retry(run), commit=commit
            )
        except AccessFault as fault:
            raise self._stopped(_refusal(fault)) from fault
        self._tell(TrialEnded(run.name, record))
        log.debug("trial_ended", passed=record.passed, end_reason=record.end_reason)
        return record

    def _stopped(self, reason: str) -> RunStopped:
        self._control.stop(reason)
        return RunStopped(f"{reason} Everything finished is kept in {folders_of(self._runs)}; mend it and resume.")

    def _may_retry(self, run: Run) -> Callable[[], bool]:
        return lambda: self._control.reason is None and run.may_retry()

    def _watch_cost(self, record: AttemptRecord | None = None) -> None:
        """Begin no further trial at the ceiling, nor where it can't be watched."""
        if self._max_cost is None:
            return
        spent = sum(run.spent for run in self._runs)
        if record is not None and (models := record.unpriced_models):
            names = ", ".join(models)
            self._control.stop(f"The cost ceiling can't be watched: no price is known of {names}; give prices.")
        if spent >= self._max_cost:
            self._control.stop(f"The cost ceiling of ${self._max_cost:g} is reached (${spent:.4f} spent).")

    def _tell(self, event: Event) -> None:
        self._on_event(event)


def _refusal(fault: AccessFault) -> str:
    if fault.code == "client_setup":
        return f"No model can be asked ({fault})."
    return f"The model endpoint refuses further requests ({fault})."


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of a group that is not a group itself."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
