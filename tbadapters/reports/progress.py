"""Progress on standard error: the plan before the first trial, then trials done, pass rate, cost and time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from tbadapters.core.events import (
    AttemptFaulted,
    Event,
    LoopBlocked,
    PaceChanged,
    RunPlanned,
    TrialEnded,
    TrialStarted,
)
from tbadapters.core.numbers import counted
from tbadapters.reports.text import visible


@contextmanager
def progress_display(mode: Literal["auto", "on", "off"]) -> Iterator[Callable[[Event], None]]:
    """Yield what shows each event: ``off`` nothing, ``auto`` the plan, and live progress where there is a terminal."""
    console = Console(stderr=True)
    if mode == "off":
        yield _silent
    elif mode == "on" or console.is_terminal:
        with _Live(console) as live:
            yield live.show
    else:
        yield lambda event: _say(console, event)


def _silent(event: Event) -> None:
    del event


def _say(console: Console, event: Event) -> None:
    """Print what is said in a line of its own, on a terminal or not."""
    if isinstance(event, RunPlanned):
        console.print(plan_sentence(event), markup=False, highlight=False, soft_wrap=True)
    elif isinstance(event, LoopBlocked):
        console.print(block_sentence(event), markup=False, highlight=False, soft_wrap=True)


def plan_sentence(plan: RunPlanned) -> str:
    """Return what is about to be run, in one line."""
    left = plan.planned - plan.done
    trials = f"{counted(plan.planned, 'trial')} planned ({counted(plan.tasks, 'task')} x {plan.planned // plan.tasks})"
    resumed = f", {plan.done} done before, {left} to run" if plan.done else ""
    cost = "cost not known beforehand" if plan.estimated_cost is None else f"about ${plan.estimated_cost:.2f}"
    return f"{plan.run} on {plan.suite}: {trials}{resumed}; {cost} ({plan.estimate_basis})"


def block_sentence(block: LoopBlocked) -> str:
    """Return what blocked the event loop, in one line."""
    return visible(
        f"Warning: {block.where} ({block.task or 'no task'}) blocked the event loop, and with it all trials, for "
        f"{block.seconds:.0f} s: it must await, or be a sync agent, which runs in a thread of its own."
    )


class _Live:
    """One bar a run, on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self._bars: dict[str, _Bar] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, event: Event) -> None:
        _say(self._console, event)
        if isinstance(event, RunPlanned):
            row = self._progress.add_task(escape(event.run), total=event.planned, completed=event.done, figures="")
            self._bars[event.run] = _Bar(self._progress, row)
        elif isinstance(event, TrialStarted | TrialEnded | AttemptFaulted):
            self._bars[event.run].show(event)
        elif isinstance(event, PaceChanged):
            for bar in self._bars.values():
                bar.slow(event)


class _Bar:
    """One run's bar and the figures beside it, of the trials run since it was opened."""

    def __init__(self, progress: Progress, row: TaskID) -> None:
        self._progress = progress
        self._row = row
        self._passed = self._valid = self._faulted = self._under_way = 0
        self._slowed = ""
        self._cost = 0.0
        self._priced = False

    def slow(self, event: PaceChanged) -> None:
        self._slowed = ", ".join(f"{escape(visible(e))} {rate:.3g}/s" for e, rate in sorted(event.endpoints.items()))
        self._progress.update(self._row, figures=self._figures())

    def show(self, event: TrialStarted | TrialEnded | AttemptFaulted) -> None:
        if isinstance(event, TrialStarted):
            self._under_way += 1
        elif isinstance(event, AttemptFaulted):
            self._faulted += 1
        else:
            record = event.record
            self._under_way -= 1
            self._valid += record.passed is not None
            self._passed += record.passed is True
            self._cost += record.cost or 0.0
            self._priced |= record.cost is not None
            self._progress.advance(self._row)
        self._progress.update(self._row, figures=self._figures())

    def _figures(self) -> str:
        rate = f"passed {self._passed / self._valid:.0%}" if self._valid else "passed -"
        cost = f"${self._cost:.4f}" if self._priced else "cost unknown"
        faulted = f"  {self._faulted} faulted" if self._faulted else ""
        slowed = f"  slowed to {self._slowed}" if self._slowed else ""
        return f"{rate}  {cost}{faulted}  {self._under_way} under way{slowed}"
