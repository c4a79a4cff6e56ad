"""What one run came to: its trials, its figures, and the doors to its reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from tbadapters.core import statistics as stats
from tbadapters.core.bill import Bill
from tbadapters.core.cost import Price, cost_nothing, price_basis
from tbadapters.core.disturbances import Disturbances
from tbadapters.core.errors import InvalidOption, UnknownName
from tbadapters.core.failures import FailureSignature, FrequentFault, broken_agent, failure_signature, frequent_faults
from tbadapters.core.figures import (
    COVERAGE_FLOOR,
    Coverage,
    Figures,
    TaskCount,
    figures,
    known_cost,
    tally_trials,
    total_usage,
)
from tbadapters.core.messages import Usage
from tbadapters.core.numbers import counted
from tbadapters.core.records import AttemptRecord
from tbadapters.core.results_file import result_dict
from tbadapters.core.shown import Shown
from tbadapters.core.statistics import Interval, Tally
from tbadapters.core.task_info import TaskInfo
from tbadapters.core.tool_fault_figures import ToolFaultFigures, tool_fault_figures
from tbadapters.core.trial_table import dataframe, trial_rows


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one task's trials came to.

    Attributes:
        task: The task.
        tally: Planned, valid and passed trials.
        trials: The deciding attempts, in the order of the trials.
    """

    task: TaskInfo
    tally: Tally
    trials: tuple[AttemptRecord, ...]

    @property
    def rate(self) -> float | None:
        """Passed over valid trials."""
        return stats.task_rate(self.tally)

    @property
    def interval(self) -> Interval | None:
        """The exact 95 % interval (Clopper and Pearson) of the rate."""
        return stats.clopper_pearson(self.tally.passed, self.tally.valid)


@dataclass(frozen=True, repr=False)
class RunResult(Shown):
    """What one run came to.

    Attributes:
        suite: The suite's name.
        agent: The agent's name.
        framework: Its framework's name.
        trials_per_task: Planned trials a task, k.
        seed: The run's seed.
        tasks: The tasks, in the suite's order.
        records: The deciding (last) attempt of each trial that was run.
        faulted: Earlier attempts, which ended in a fault of the infrastructure.
        manifest: What the run folder says of versions and settings.
        folder: The run folder, or None.
        stopped: Why the run ended early, or None.
        coverage_floor: The least share of planned trials with a verdict that allows a headline.
    """

    suite: str
    agent: str
    framework: str
    trials_per_task: int
    seed: int
    tasks: tuple[TaskInfo, ...]
    records: tuple[AttemptRecord, ...]
    faulted: tuple[AttemptRecord, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    stopped: str | None = None
    coverage_floor: float = COVERAGE_FLOOR

    def __post_init__(self) -> None:
        place = {task.id: number for number, task in enumerate(self.tasks)}
        ordered = tuple(sorted(self.records, key=lambda r: (place[r.task], r.index)))
        object.__setattr__(self, "records", ordered)
        # Who reports requests at all reports every one: a trial without any was free, its cost is not unknown.
        if any(record.requests for record in (*self.records, *self.faulted)):
            object.__setattr__(self, "records", _free_where_unasked(self.records))
            object.__setattr__(self, "faulted", _free_where_unasked(self.faulted))

    # -- trials ---------------------------------------------------------------------------------------------------

    @property
    def trials(self) -> tuple[AttemptRecord, ...]:
        """The deciding attempt of each trial that was run, by task and index."""
        return self.records

    @cached_property
    def by_task(self) -> Mapping[str, TaskResult]:
        """What each task's trials came to, by task id, in the suite's order."""
        found: dict[str, list[AttemptRecord]] = {task.id: [] for task in self.tasks}
        for record in self.records:
            found[record.task].append(record)
        return {
            task.id: TaskResult(task, tally_trials(self.trials_per_task, found[task.id]), tuple(found[task.id]))
            for task in self.tasks
        }

    @cached_property
    def tallies(self) -> Mapping[str, Tally]:
        """Planned, valid and passed trials of each task, by task id."""
        return {task_id: result.tally for task_id, result in self.by_task.items()}

    def task(self, task_id: str) -> TaskResult:
        """Return what one task's trials came to; the suite's name may be left out of the id.

        Raises:
            UnknownName: no such task in this run.
        """
        for name in (task_id, f"{self.suite}/{task_id}"):
            if name in self.by_task:
                return self.by_task[name]
        raise UnknownName("task", task_id, self.by_task)

    def trial(self, task_id: str, index: int) -> AttemptRecord:
        """Return the deciding attempt of one trial.

        Raises:
            UnknownName: no such task, or no such trial, or it has not been run.
        """
        trials = {record.index: record for record in self.task(task_id).trials}
        if index not in trials:
            raise UnknownName(f"trial of {task_id}", str(index), map(str, trials))
        return trials[index]

    # -- figures --------------------------------------------------------------------------------------------------

    @cached_property
    def figures(self) -> Figures:
        """Every figure of all tasks."""
        return self._figures(self.tasks)

    @cached_property
    def by_tag(self) -> Mapping[str, Figures]:
        """The same figures of the tasks that carry a tag, by tag."""
        tags = dict.fromkeys(sorted({tag for task in self.tasks for tag in task.tags}))
        return {tag: self._figures([task for task in self.tasks if tag in task.tags]) for tag in tags}

    @property
    def coverage(self) -> Coverage:
        """Planned, valid and missing trials."""
        return self.figures.coverage

    @property
    def pass_at_1(self) -> float | None:
        """``pass@1``: the mean over tasks of passed over valid trials."""
        return self.figures.pass_at_1.value

    def pass_at(self, k: int) -> float | None:
        """Return ``pass@k (unbiased)``: the chance that at least one of k trials of a task passes.

        Raises:
            InvalidOption: k is not between 1 and the planned trials.
        """
        return self.figures.pass_at_k[self._checked(k)].value

    def pass_hat(self, k: int) -> float | None:
        """Return ``pass^k (unbiased)``: the chance that all of k trials of a task pass.

        Raises:
            InvalidOption: k is not between 1 and the planned trials.
        """
        return self.figures.pass_hat_k[self._checked(k)].value

    @property
    def observed_all(self) -> TaskCount:
        """``observed k/k``: the tasks whose planned trials all passed."""
        return self.figures.observed_all

    @property
    def usage(self) -> Usage:
        """The agent's tokens in all trials with a verdict."""
        return total_usage(self._valid)

    @property
    def cost(self) -> float | None:
        """The agent's US dollars in all trials with a verdict; None where a price is unknown."""
        return known_cost(self._valid)

    @property
    def bill(self) -> Bill:
        """What all trials with a verdict took: the agent, and apart from it the simulated user and the judge."""
        return Bill.of(self._valid)

    @property
    def without_verdict(self) -> tuple[AttemptRecord, ...]:
        """All attempts that ended in a fault of the infrastructure; their tokens and money are accounted apart."""
        return (*self.faulted, *(r for r in self.records if r.passed is None))

    @cached_property
    def disturbances(self) -> Disturbances:
        """What disturbed the run: faults that were overcome, waiting, agents and threads that did not end."""
        return Disturbances.of((*self.records, *self.faulted))

    @property
    def abandoned(self) -> int:
        """How many attempts were left behind because their agent did not end when it was cancelled."""
        return self.disturbances.abandoned

    @property
    def infrastructure_faults(self) -> dict[str, int]:
        """What ended the attempts without a verdict: ``owner: code`` -> how many, the most frequent first."""
        ended = Counter(f"{r.fault.owner}: {r.fault.code}" for r in self.without_verdict if r.fault)
        return dict(ended.most_common())

    @cached_property
    def frequent_faults(self) -> tuple[FrequentFault, ...]:
        """What ended attempts besides a verdict, or failed them: the agent's errors and limits, and all others'."""
        return frequent_faults((*self.records, *self.faulted))

    @cached_property
    def tool_faults(self) -> tuple[ToolFaultFigures, ...]:
        """What the faults that were injected into tool calls did, by kind; empty where none was."""
        return tool_fault_figures(self.records)

    @cached_property
    def failures(self) -> FailureSignature:
        """How the failed trials look."""
        return failure_signature(self.records)

    @property
    def headline(self) -> str:
        """The run in one sentence; refused where too few of the planned trials have a verdict."""
        found, rate = self.coverage, self.figures.pass_at_1
        if not found.sufficient or rate.value is None:
            limits = rate.bounds or Interval(0.0, 1.0)
            return f"No headline: {found.shortfall}; pass@1 lies between {limits.low:.1%} and {limits.high:.1%}."
        span = f" (95% interval {rate.interval.low:.1%} to {rate.interval.high:.1%})" if rate.interval else ""
        every, k = self.observed_all, self.trials_per_task
        every_trial = "the only trial" if k == 1 else f"all {k} trials"
        still_open = f", {every.undetermined} could while trials are missing" if every.undetermined else ""
        return (
            f"pass@1 is {rate.value:.1%}{span}; {every.count} of {counted(every.of, 'task')} passed "
            f"{every_trial}{still_open}."
        )

    @property
    def in_short(self) -> str:
        """See ``Shown``."""
        return f"{self.agent!r} on {self.suite}: {self.headline}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the figures must know, a sentence each; see ``Suite.notes`` and ``broken_agent``."""
        return (*self.manifest.get("notes", ()), *broken_agent(self.records))

    # -- doors ----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return what ``results.json`` holds; ``docs/results.md`` describes it field by field."""
        return result_dict(self)

    def to_dataframe(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """Return the planned trials as a data frame, a row each; ``docs/results.md`` describes the columns.

        Args:
            library: Whose data frame; None for that of pandas, or of polars where there is no pandas.

        Raises:
            UsageError: the library is not installed; tbadapters needs neither for anything else.
        """
        return dataframe(trial_rows(self), library)

    # -- inside ---------------------------------------------------------------------------------------------------

    @cached_property
    def _valid(self) -> tuple[AttemptRecord, ...]:
        return tuple(r for r in self.records if r.passed is not None)

    def _checked(self, k: int) -> int:
        if not 1 <= k <= self.trials_per_task:
            raise InvalidOption(
                f"k={k}: this run has {counted(self.trials_per_task, 'trial')} a task, so k is 1 to that."
            )
        return k

    def _figures(self, tasks: Sequence[TaskInfo]) -> Figures:
        results = [self.by_task[task.id] for task in tasks]
        records = [record for result in results for record in result.trials]
        return figures([result.tally for result in results], records, self.trials_per_task, floor=self.coverage_floor)

    def price_bases(self) -> dict[str, str | None]:
        """Return for each model whose price was taken, None where it has none."""
        given = self.manifest.get("prices") or {}
        prices = {model: Price(**price) for model, price in given.items()}
        parts = [
            part for r in (*self.records, *self.faulted) for part in (r.requests, r.user.requests, r.judge.requests)
        ]
        models = sorted({request.model for part in parts for request in part})
        table = self.manifest.get("price_table")
        return {model: price_basis(model, prices, table=table) for model in models}


def _free_where_unasked(records: Iterable[AttemptRecord]) -> tuple[AttemptRecord, ...]:
    return tuple(replace(r, cost=0.0) if r.cost is None and cost_nothing(r.requests) else r for r in records)
