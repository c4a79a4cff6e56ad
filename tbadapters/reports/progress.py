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

from tbadapters.core.events import AttemptFaulted, Event, RunPlanned, TrialEnded


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
        yield lambda event: _plan(console, event)


def _silent(event: Event) -> None:
    del event


def _plan(console: Console, event: Event) -> None:
    if isinstance(event, RunPlanned):
        console.print(plan_sentence(event), markup=False, highlight=False, soft_wrap=True)


def plan_sentence(plan: RunPlanned) -> str:
    """Return what is about to be run, in one line."""
    left = plan.planned - plan.done
    trials = f"{plan.planned} trials planned ({plan.tasks} tasks x {plan.planned // plan.tasks})"
    resumed = f", {plan.done} done before, {left} to run" if plan.done else ""
    cost = "cost not known beforehand" if plan.estimated_cost is None else f"about ${plan.estimated_cost:.2f}"
    return f"{plan.run} on {plan.suite}: {trials}{resumed}; {cost} ({plan.estimate_basis})"


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
        if isinstance(event, RunPlanned):
            _plan(self._console, event)
            row = self._progress.add_task(escape(event.run), total=event.planned, completed=event.done, figures="")
            self._bars[event.run] = _Bar(self._progress, row)
        elif isinstance(event, TrialEnded | AttemptFaulted):
            self._bars[event.run].show(event)


class _Bar:
    """One run's bar and the figures beside it, of the trials run since it was opened."""

    def __init__(self, progress: Progress, row: TaskID) -> None:
        self._progress = progress
        self._row = row
        self._passed = self._valid = self._faulted = 0
        self._cost = 0.0
        self._priced = False

    def show(self, event: TrialEnded | AttemptFaulted) -> None:
        record = event.record
        if isinstance(event, AttemptFaulted):
            self._faulted += 1
        else:
            self._valid += record.passed is not None
            self._passed += record.passed is True
            self._cost += record.cost or 0.0
            self._priced |= record.cost is not None
            self._progress.advance(self._row)
        self._progress.update(self._row, figures=self._figures())

    def _figures(self) -> str:
        rate = f"passed {self._passed / self._valid:.0%}" if self._valid else "passed -"
        cost = f"${self._cost:.4f}" if self._priced else "cost unknown"
        return f"{rate}  {cost}" + (f"  {self._faulted} faulted" if self._faulted else "")
