"""One call of ``evaluate`` or ``compare``, from options to run folders.

For every task, k trials; each opens a clean sandbox, lets user and agent converse, is graded on the records that are
left behind, and is kept in the run folder before it counts.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from anyio import CancelScope, to_thread

from tbadapters.adapters.factory import AgentFactory
from tbadapters.adapters.registry import resolve_agent
from tbadapters.core.approvals import ApprovalPolicy
from tbadapters.core.comparison import Comparison
from tbadapters.core.concurrency import FIRST
from tbadapters.core.cost import Price, estimate_cost
from tbadapters.core.errors import RunStopped, TbAdaptersError, ToolsDiffer, UnusableFolder, describe
from tbadapters.core.events import Event, OnEvent, RunPlanned
from tbadapters.core.judge import chosen_judge
from tbadapters.core.limits import Limits, Retries
from tbadapters.core.logs import get_logger
from tbadapters.core.manifest import manifest, settings
from tbadapters.core.options import check_agents, check_options
from tbadapters.core.redaction import redacted
from tbadapters.core.result import RunResult
from tbadapters.core.run_folder import keep_stop_reason, load_manifest, result_of, undamaged
from tbadapters.core.runner import Control, Run, Runner, folders_of
from tbadapters.core.sandbox import running
from tbadapters.core.store import Store, check_resume, new_folder, read_manifest, write_manifest
from tbadapters.core.suite import Suite
from tbadapters.core.tampering import mended_changes
from tbadapters.core.tool_faults import ToolFaults
from tbadapters.core.trial import TrialPlan
from tbadapters.core.user_choice import UserOf, chosen_user
from tbadapters.isolation.agent import IsolatedAgent
from tbadapters.reports.files import write_comparison, write_run
from tbadapters.reports.progress import progress_display
from tbadapters.suites import Suites, load_suite

log = get_logger(__name__)

DEFAULT_OUT = "runs"

Tasks = Sequence[str] | str | int | None
User = str | UserOf | object  # a model object of PydanticAI is an object to us
Folder = str | PathLike[str]


@dataclass(kw_only=True)
class Campaign:
    """One call of ``evaluate`` or ``compare``: agents, one suite, options. ``control.stop()`` ends it early.

    The command line uses it directly; everyone else goes through the two doors.
    """

    agents: Mapping[Any, object] = field(kw_only=False)
    suite: Suites
    tasks: Tasks = None
    trials: int = 20
    concurrency: int | None = None
    limits: Limits = field(default_factory=Limits)
    retries: Retries = field(default_factory=Retries)
    user: User = "scripted"
    judge: object = None
    instructions: Literal["append", "none"] = "append"
    seed: int = 0
    max_cost: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    coverage_floor: float | None = None
    out: Folder | None = None
    resume: Folder | None = None
    progress: Literal["auto", "on", "off"] = "auto"
    approvals: ApprovalPolicy = "user"
    isolation: Literal["none", "process"] = "none"
    faults: ToolFaults | None = None
    on_event: OnEvent | None = None
    control: Control = field(default_factory=Control)

    def __post_init__(self) -> None:
        self._manifests: dict[Path, dict[str, Any]] = {}  # of the run folders, as they were when the run began
        check_options(vars(self))
        self._user, self._judge = chosen_user(self.user), chosen_judge(self.judge)

    async def run(self) -> tuple[RunResult, ...]:
        """Plan every run, run what is missing, write the run folders, and return the results in the agents' order."""
        plans = self._plans()
        async with AsyncExitStack() as stack:
            display = stack.enter_context(progress_display(self.progress))

            def tell(event: Event) -> None:
                display(event)
                if self.on_event is not None:
                    self.on_event(event)

            runs = [await stack.enter_async_context(self._opened(name, plan)) for name, plan in plans.items()]
            for run in runs:
                tell(self._announcement(run))
            runner = Runner(
                concurrency=self._concurrency,
                max_cost=self.max_cost,
                on_event=tell,
                control=self.control,
            )
            for backend in {id(run.plan.suite.backend): run.plan.suite.backend for run in runs}.values():
                await stack.enter_async_context(running(backend))
            try:
                async with _processes_of(runs):
                    await runner.run(runs)
                if self.isolation == "process":
                    await self._unchanged(runs)
            except BaseException as error:
                await self._salvaged(runs)
                if isinstance(error, Exception | CancelledError) and not isinstance(error, TbAdaptersError):
                    error.add_note(f"What is finished is kept in {folders_of(runs)}.")
                raise
            with _after(folders_of(runs)):
                return tuple([await self._written(run) for run in runs])

    @property
    def _concurrency(self) -> int | None:
        """Trials under way, None where it adapts: in processes of their own, agents are too large to have many of."""
        return FIRST if self.concurrency is None and self.isolation == "process" else self.concurrency

    async def comparison(self) -> Comparison:
        """Run all agents and write their comparison beside their run folders."""
        check_agents(self.agents)
        results = await self.run()

        def write() -> Comparison:
            folder = new_folder(Path(self.out or DEFAULT_OUT), "compare")
            comparison = Comparison({result.agent: result for result in results}, folder=folder)
            write_comparison(comparison, folder)
            return comparison

        with _after(" and ".join(str(result.folder) for result in results)):
            return await to_thread.run_sync(write)

    def _plans(self) -> dict[str | None, TrialPlan]:
        """Load suite and agents. On the loop's own thread: what an agent's module makes may be bound to it."""
        suite = load_suite(self.suite).select(self.tasks)
        if self.judge is None:
            suite = suite.without_judge()
        injected = (self.faults.note,) if self.faults else ()
        suite = replace(suite, notes=(*suite.notes, *self._user.notes(suite), *injected))
        return {name: self._plan(agent, suite) for name, agent in self.agents.items()}

    def _plan(self, agent: object, suite: Suite) -> TrialPlan:
        isolated = IsolatedAgent(agent) if self.isolation == "process" else None
        adapter = isolated or resolve_agent(agent)
        made = isolated.made_afresh if isolated else isinstance(adapter, AgentFactory)
        if suite.tools_differ and not made:
            raise ToolsDiffer(suite.name, [part.name for part in suite.parts])
        for part in suite.parts or (suite,):
            adapter.check(part.tool_list)
        return TrialPlan(
            adapter=adapter,
            suite=suite,
            limits=self.limits,
            retries=self.retries,
            user_of=self._user.of,
            judge=self._judge.judge,
            instructions=self.instructions,
            seed=self.seed,
            prices=self.prices,
            paced=self._concurrency is None,
            approvals=self.approvals,
            faults=self.faults,
        )

    @asynccontextmanager
    async def _opened(self, name: str | None, plan: TrialPlan) -> AsyncIterator[Run]:
        shown, folder = await to_thread.run_sync(self._folder, name, plan)
        async with Store.open(folder) as store:
            await to_thread.run_sync(keep_stop_reason, folder, None)
            with undamaged(folder):
                records = await store.records()
            self._manifests[folder] = await to_thread.run_sync(read_manifest, folder)
            yield Run(shown, plan, self.trials, store, records)

    def _folder(self, name: str | None, plan: TrialPlan) -> tuple[str, Path]:
        """Return the agent's name and the run folder: a new one with its manifest, or the one that is resumed."""
        now = settings(plan, trials=self.trials, user=self._user.name, judge=self._judge.name)
        if self.resume is not None:
            folder = Path(self.resume)
            before = load_manifest(folder)
            check_resume(folder, now, suite_options=plan.suite.options)
            if self.coverage_floor is not None:  # a way to read what was run, not a part of it: it may change
                write_manifest(folder, before | {"coverage_floor": self.coverage_floor})
            return before.get("name") or plan.adapter.name, folder
        shown = redacted(name or plan.adapter.name)
        folder = new_folder(Path(self.out or DEFAULT_OUT), plan.suite.name, shown)
        write_manifest(
            folder, manifest(plan, now, name=shown, coverage_floor=self.coverage_floor, isolation=self.isolation)
        )
        return shown, folder

    def _announcement(self, run: Run) -> RunPlanned:
        planned = len(run.plan.suite.tasks) * self.trials
        done = run.done
        models: Sequence[str] = getattr(run.plan.adapter, "models", ())
        costs = [estimate_cost(model, planned - done, prices=self.prices) for model in models]
        cost = max((c for c in costs if c is not None), default=None)
        basis = f"a typical trial with {', '.join(models)}" if models else "the agent's model is not known beforehand"
        return RunPlanned(run.name, run.plan.suite.name, len(run.plan.suite.tasks), planned, done, cost, basis)

    async def _unchanged(self, runs: Sequence[Run]) -> None:
        """Look whether only the run itself wrote its folders.

        Raises:
            RunStopped: somebody else did.
        """
        for run in runs:
            folder = run.store.folder
            changes = await to_thread.run_sync(mended_changes, folder, self._manifests[folder], run.records)
            if changes:
                self.control.stop(changes)
                raise RunStopped(changes)

    async def _salvaged(self, runs: Sequence[Run]) -> None:
        """Write what there is beside the records; the error that ended the run is what is told, whatever fails here."""
        with CancelScope(shield=True):
            for run in runs:
                try:
                    await self._written(run)
                except (OSError, UnusableFolder) as error:
                    log.warning("reports_not_written", folder=str(run.store.folder), error=describe(error))

    async def _written(self, run: Run) -> RunResult:
        """Write what a run folder holds beside its record, and return the result."""

        def write() -> RunResult:
            folder = run.store.folder
            keep_stop_reason(folder, self.control.reason)
            result = result_of(folder, self._manifests[folder], run.records, stopped=self.control.reason)
            write_run(result, folder)
            return result

        return await to_thread.run_sync(write)


@asynccontextmanager
async def _processes_of(runs: Sequence[Run]) -> AsyncIterator[None]:
    """Keep the processes of isolated agents while their trials run; none is left when the reports are written."""
    async with AsyncExitStack() as stack:
        for run in runs:
            if isinstance(run.plan.adapter, IsolatedAgent):
                await stack.enter_async_context(run.plan.adapter.running())
        yield


@contextmanager
def _after(folders: str) -> Iterator[None]:
    """Do what follows the last trial: nothing that fails here can undo what is recorded."""
    try:
        yield
    except (OSError, UnusableFolder) as error:
        raise RunStopped(
            f"All trials are done and recorded in {folders}, but the reports could not be written "
            f"({error}): write them again with `tbadapters report`."
        ) from error
