"""The HTML page of a run or a comparison: one file that opens from disk, with nothing fetched from anywhere.

Text of agents, users and tools reaches the page in two ways only: escaped by the template engine, or as compressed
data that the page's one script puts into text nodes. A content security policy names that script by its digest, so
nothing else could run even if something slipped through. Either way, characters that a reader could be fooled by
(controls, turned writing) are shown as what they are.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tbadapters.core.comparison import Comparison, p_text
from tbadapters.core.figures import Amount, Figures
from tbadapters.core.numbers import counted
from tbadapters.core.result import RunResult
from tbadapters.core.statistics import Tally
from tbadapters.reports import drawings, text
from tbadapters.reports.charts import curve_chart, difference_whisker, rate_whisker
from tbadapters.reports.grid import looks_of, short_id, task_rows
from tbadapters.reports.harmless import breakable, harmless
from tbadapters.reports.published import beside

_DENSE = 100  # tasks from which on a row of the grid is as low as can be read
_LONG = 28  # letters of a task's id that do not fit into a third of the page's width
_WIDEST = 25  # trials that fit into a row of the grid


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
    figures, rows, reference = result.figures, list(task_rows(result)), beside(result)
    some, alone = drawings.parts(result, reference), {result.agent: result}
    return _page(
        "run.html.j2",
        title=f"{result.agent} on {result.suite}",
        result=result,
        figures=figures,
        names=text.figure_names(figures),
        curves=curve_chart({"pass@k": figures.pass_at_k, "pass^k": figures.pass_hat_k}, result.trials_per_task),
        survival=drawings.survival(alone, some, reference),
        breadth=drawings.breadth(alone, some, reference),
        parts=some,
        costs=drawings.bars([("all tasks", figures.cost_per_success), *_dearest(some)]),
        spending=drawings.spending(result),
        published=reference,
        ours=alone,
        rows=rows,
        looks=looks_of(rows),
        tags={tag: number for number, tag in enumerate(result.by_tag)},
        dense=len(rows) > _DENSE,
        fits=result.trials_per_task <= _WIDEST,
        numbers={task.id: number for number, task in enumerate(result.tasks)},
        prices=result.price_bases(),
    )


def comparison_page(comparison: Comparison, target: Path) -> str:
    """Return the page of a comparison, with links from where it will stand to the runs' own pages."""
    results = comparison.results
    k = min(result.trials_per_task for result in results.values())
    hats = {name: result.figures.pass_hat_k for name, result in results.items()}
    common = [beside(result) for result in results.values()]
    reference = None if None in common else common[0]
    return _page(
        "comparison.html.j2",
        title=f"{', '.join(results)} on {comparison.suite}",
        comparison=comparison,
        curves=curve_chart({name: {i: r for i, r in rates.items() if i <= k} for name, rates in hats.items()}, k),
        survival=drawings.survival(results, beside=reference),
        breadth=drawings.breadth(results, beside=reference),
        costs=drawings.bars((name, result.figures.cost_per_success) for name, result in results.items()),
        parts=_parts(results),
        failing=any(result.failures.failed for result in results.values()),
        published=reference,
        ours=results,
        links={name: _link(result, target) for name, result in results.items()},
        rows=list(_compared(results)),
        long_ids=any(len(short_id(task.id, r.suite)) > _LONG for r in results.values() for task in r.tasks),
    )


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """A row of a comparison's table of tasks.

    Attributes:
        id: The task's id.
        named: One an agent: its name, then the task's number on that agent's own page and its tally; None where the
            task was not planned.
        apart: How far the agents' rates are apart, from 0 to 1.
    """

    id: str
    named: tuple[tuple[str, tuple[int, Tally] | None], ...]
    apart: float


def _compared(results: Mapping[str, RunResult]) -> Iterator[ComparedTask]:
    known = {
        name: dict(zip(result.tallies, enumerate(result.tallies.values()), strict=True))
        for name, result in results.items()
    }
    for task in dict.fromkeys(task for tallies in known.values() for task in tallies):
        named = tuple((name, tallies.get(task)) for name, tallies in known.items())
        rates = [found[1].passed / found[1].valid for _, found in named if found and found[1].valid]
        yield ComparedTask(task, named, max(rates) - min(rates) if rates else 0.0)


def _parts(results: Mapping[str, RunResult]) -> dict[str, tuple[Figures | None, ...]]:
    """Return the figures of each agent by tag."""
    known = [{part.tag: part.figures for part in drawings.parts(result)} for result in results.values()]
    return {tag: tuple(k.get(tag) for k in known) for tag in dict.fromkeys(tag for k in known for tag in sorted(k))}


def _dearest(some: tuple[drawings.Part, ...]) -> list[tuple[str, Amount]]:
    """Return the parts by what a success costs there, the dearest first; those without a success before all."""
    amounts = [(part.tag, part.figures.cost_per_success) for part in some]
    return sorted(amounts, key=lambda item: -(item[1].value if item[1].value is not None else float("inf")))


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
        **values,
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("tbadapters.reports"),
        autoescape=True,
        finalize=harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(percent=text.percent, span=text.span, money=text.money, p=p_text, amount=text.amount)
    environment.filters.update(figure=text.figure_value, coverage=text.coverage_text, points=text.points)
    environment.filters.update(counted=counted)
    environment.filters.update(breakable=breakable, short=short_id, tool_fault=text.tool_fault_cells)
    environment.globals.update(tool_fault_columns=text.TOOL_FAULT_COLUMNS, tool_fault_note=text.TOOL_FAULT_NOTE)
    environment.globals.update(rate_whisker=rate_whisker, difference_whisker=difference_whisker)
    environment.tests["amount"] = lambda figure: isinstance(figure, Amount)
    return environment


@cache
def _asset(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")
