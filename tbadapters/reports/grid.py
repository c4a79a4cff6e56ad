"""The grid of a run's page: a row a task, a cell a planned trial, and the trials' views, compressed."""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tbadapters.core.records import CLEAN_ENDS, AttemptRecord
from tbadapters.core.result import RunResult, TaskResult
from tbadapters.core.statistics import all_passed
from tbadapters.reports.harmless import harmless
from tbadapters.reports.trial_view import trial_view

LOOKS = {
    "clean": "that failed but looked clean",
    "wrong_value": "with a wrong value",
    "unexpected": "with an unexpected effect",
    "missing": "with a missing effect",
    "right_records": "that failed with the right records",
    "cut_off": "that failed and did not end by themselves",
    "no_verdict": "without a verdict",
}
_STATES = {True: "all", False: "some", None: "open"}
_MARKS = {True: "pass", False: "fail", None: "none"}


@dataclass(frozen=True, slots=True)
class TrialMark:
    """A cell of the grid: ``pass``, ``fail`` or ``none``, the same in words, and how the trial looks (of ``LOOKS``)."""

    index: int
    mark: str
    words: str
    looks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row of the grid.

    Attributes:
        number: The task's number on the page.
        found: What its trials came to.
        name: The task's id without the suite's name.
        state: ``all`` passed, ``some`` failed (and it ``never`` passed), or ``open``.
        marks: One a planned trial.
        data: Its trials' views, compressed.
    """

    number: int
    found: TaskResult
    name: str
    state: str
    marks: tuple[TrialMark, ...]
    data: str

    @property
    def words(self) -> str:
        """What the search looks through."""
        return " ".join((self.found.task.id, *self.found.task.tags)).lower()


def task_rows(result: RunResult) -> Iterator[TaskRow]:
    """Yield the rows of a run's grid, in the suite's order."""
    earlier: dict[tuple[str, int], list[AttemptRecord]] = defaultdict(list)
    for ended in result.faulted:
        earlier[ended.task, ended.index].append(ended)
    for number, found in enumerate(result.by_task.values()):
        trials = {record.index: record for record in found.trials}
        marks, views = [], []
        for index in range(found.tally.planned):
            record = trials.get(index)
            marks.append(_mark(index, record))
            before = earlier[found.task.id, index]
            views.append(None if record is None else trial_view(record, found.task, before))
        yield TaskRow(
            number, found, short_id(found.task.id, result.suite), _state(found), tuple(marks), compressed(views)
        )


def short_id(task: str, suite: str) -> str:
    """Return a task's id without the name of the suite that the page is about."""
    return task.removeprefix(f"{suite}/")


def looks_of(rows: list[TaskRow]) -> dict[str, str]:
    """Return the looks that some trial has, with their words."""
    seen = {look for row in rows for mark in row.marks for look in mark.looks}
    return {look: words for look, words in LOOKS.items() if look in seen}


def _state(found: TaskResult) -> str:
    never = found.tally.valid == found.tally.planned and not found.tally.passed
    return _STATES[all_passed(found.tally)] + (" never" if never else "")


def _mark(index: int, record: AttemptRecord | None) -> TrialMark:
    verdict = None if record is None else record.passed
    words = {True: "passed", False: "failed", None: "no verdict" if record else "not run"}[verdict]
    return TrialMark(index, _MARKS[verdict], words, tuple(_looks(record)))


def _looks(record: AttemptRecord | None) -> Iterator[str]:
    if record is None or record.verdict is None or record.passed is None:
        yield "no_verdict"
        return
    if record.passed:
        return
    if record.looked_clean:
        yield "clean"
    yield from dict.fromkeys(effect.kind for effect in record.verdict.effects)
    if not record.verdict.effects:
        yield "right_records"
    if record.end_reason not in CLEAN_ENDS:
        yield "cut_off"


def compressed(data: Any) -> str:
    """Return JSON as base64 of gzip: no character of it can end a script element. Equal data gives equal text."""
    raw = json.dumps(harmless(data), ensure_ascii=True, separators=(",", ":"), default=str).encode()
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii")
