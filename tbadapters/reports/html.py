"""The HTML page of a run or a comparison: one file that opens from disk, with nothing fetched from anywhere.

Text of agents, users and tools reaches the page in two ways only: escaped by the template engine, or as compressed
data that the page's one script puts into text nodes. A content security policy names that script by its digest, so
nothing else could run even if something slipped through. Either way, characters that a reader could be fooled by
(controls, turned writing) are shown as what they are.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tbadapters.core.comparison import Comparison, p_text
from tbadapters.core.figures import COVERAGE_FLOOR, Amount
from tbadapters.core.result import RunResult, TaskResult
from tbadapters.core.statistics import all_passed
from tbadapters.reports import text
from tbadapters.reports.charts import curve_chart, difference_whisker, rate_whisker
from tbadapters.reports.trial_view import trial_view

_STATES = {True: "all", False: "some", None: "open"}
_MARKS = {True: "pass", False: "fail", None: "none"}


def write(result: RunResult | Comparison, path: str | Path) -> Path:
    """Write the page of a run or a comparison and return its path.

    Raises:
        OSError: the file can't be written.
    """
    target = Path(path)
    page = comparison_page(result, target) if isinstance(result, Comparison) else run_page(result)
    # A lone surrogate can't be written as UTF-8; escaped text has no business with one.
    target.write_bytes(page.encode("utf-8", errors="replace"))
    return target


def run_page(result: RunResult) -> str:
    """Return the page of a run."""
    figures = result.figures
    curves = curve_chart({"pass@k": figures.pass_at_k, "pass^k": figures.pass_hat_k}, result.trials_per_task)
    return _page(
        "run.html.j2",
        title=f"{result.agent} on {result.suite}",
        result=result,
        figures=figures,
        names=text.figure_names(figures),
        curves=curves,
        rows=list(_rows(result)),
        numbers={task.id: number for number, task in enumerate(result.tasks)},
        prices=result.price_bases(),
    )


def comparison_page(comparison: Comparison, target: Path) -> str:
    """Return the page of a comparison, with links from where it will stand to the runs' own pages."""
    k = min(result.trials_per_task for result in comparison.results.values())
    hats = {name: result.figures.pass_hat_k for name, result in comparison.results.items()}
    return _page(
        "comparison.html.j2",
        title=f"{', '.join(comparison.results)} on {comparison.suite}",
        comparison=comparison,
        curves=curve_chart({name: {i: r for i, r in rates.items() if i <= k} for name, rates in hats.items()}, k),
        links={name: _link(result, target) for name, result in comparison.results.items()},
        tasks=list(dict.fromkeys(task for result in comparison.results.values() for task in result.tallies)),
    )


@dataclass(frozen=True, slots=True)
class TrialMark:
    """A cell of the grid: ``pass``, ``fail`` or ``none``, and the same in words."""

    index: int
    mark: str
    words: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A row of the grid.

    Attributes:
        number: The task's number on the page.
        found: What its trials came to.
        state: ``all`` passed, ``some`` failed, or ``open``.
        marks: One a planned trial.
        data: Its trials' views, compressed.
    """

    number: int
    found: TaskResult
    state: str
    marks: tuple[TrialMark, ...]
    data: str


def _rows(result: RunResult) -> Iterator[TaskRow]:
    for number, found in enumerate(result.by_task.values()):
        trials = {record.index: record for record in found.trials}
        marks, views = [], []
        for index in range(found.tally.planned):
            record = trials.get(index)
            verdict = None if record is None else record.passed
            words = {True: "passed", False: "failed", None: "no verdict" if record else "not run"}[verdict]
            marks.append(TrialMark(index, _MARKS[verdict], words))
            views.append(None if record is None else trial_view(record, found.task).to_dict())
        yield TaskRow(number, found, _STATES[all_passed(found.tally)], tuple(marks), _compressed(views))


def _compressed(data: Any) -> str:
    """Return JSON as base64 of gzip: no character of it can end a script element. Equal data gives equal text."""
    raw = json.dumps(_visible(data), ensure_ascii=True, separators=(",", ":"), default=str).encode()
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii")


def _visible(value: Any) -> Any:
    """Return a value with all text in it made harmless to read; markup of our own stays as it is."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return text.visible(value)
    if isinstance(value, dict):
        return {key: _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, list | tuple) else value


def _link(result: RunResult, target: Path) -> str | None:
    if result.folder is None:
        return None
    page = result.folder.resolve() / "report.html"
    return quote(Path(os.path.relpath(page, target.resolve().parent)).as_posix())


def _page(template: str, **values: Any) -> str:
    environment = _environment()
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return environment.get_template(template).render(
        script=Markup(script),  # noqa: S704 - our own file, and its digest is in the policy
        style=Markup(_asset("page.css")),  # noqa: S704 - our own file
        digest=digest,
        floor=COVERAGE_FLOOR,
        **values,
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tbadapters.reports"),
        autoescape=True,
        finalize=_visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=text.percent, span=text.span, money=text.money, p=p_text, amount=text.amount)
    environment.filters.update(figure=text.figure_value, coverage=text.coverage_text, points=text.points)
    environment.globals.update(rate_whisker=rate_whisker, difference_whisker=difference_whisker)
    environment.tests["amount"] = lambda figure: isinstance(figure, Amount)
    return environment


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
