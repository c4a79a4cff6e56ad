"""Markdown for a pull request or a job summary: headline, figures, what differs, and how trials failed.

Text of agents, suites and providers stands in code spans only: nothing in it can become a link, an image, a mention of
somebody, or a row of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tbadapters.core.comparison import AgentPair, Comparison
from tbadapters.core.figures import Amount
from tbadapters.core.numbers import counted
from tbadapters.core.result import RunResult
from tbadapters.reports.text import (
    TOOL_FAULT_COLUMNS,
    TOOL_FAULT_NOTE,
    UNKNOWN,
    agent_cells,
    agent_columns,
    coverage_text,
    figure_names,
    figure_value,
    money,
    pair_cells,
    pair_columns,
    percent,
    size_text,
    span,
    tool_fault_cells,
    visible,
)

_TICKS = re.compile("`+")
_SHOWN = 10
_LONGEST = 120  # characters of a fault's message


def write(result: RunResult | Comparison, path: str | Path) -> Path:
    """Write a run or a comparison as Markdown and return the path.

    Raises:
        OSError: the file can't be written.
    """
    target = Path(path)
    target.write_text(markdown(result), encoding="utf-8")
    return target


def markdown(result: RunResult | Comparison) -> str:
    """Return a run or a comparison as Markdown (GitHub's flavour: with tables)."""
    blocks = _comparison(result) if isinstance(result, Comparison) else _run(result)
    return "\n\n".join(blocks) + "\n"


def code(text: str) -> str:
    """Return any text as a code span that shows it; ``_table`` sees to what a cell needs besides."""
    shown = " ".join(visible(text).split()) or " "
    fence = "`" * (max(map(len, _TICKS.findall(shown)), default=0) + 1)
    padding = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


# -- a run --------------------------------------------------------------------------------------------------------


def _run(result: RunResult) -> Iterator[str]:
    yield f"### {code(result.agent)} on {code(result.suite)}"
    yield from _headline(result)
    yield _figures(result)
    if any(found.observed_all.of > 1 for found in result.by_tag.values()) and len(result.by_tag) > 1:
        yield _folded("By tag", _tags(result))
    if result.failures.failed:
        yield _folded("How trials failed", *_failures(result))
    if result.frequent_faults:
        yield _folded("What ended attempts", _faults(result))
    if result.tool_faults:
        yield _folded("Injected tool faults", _tool_faults(result), TOOL_FAULT_NOTE)
    yield _spent(result)


def _headline(result: RunResult) -> Iterator[str]:
    mark = "" if result.coverage.sufficient else "⚠️ "
    yield f"{mark}**{result.headline}**"
    yield f"{code(result.framework)}, {size_text(result)}; {coverage_text(result.coverage)} trials."
    yield from (f"⚠️ {code(note)}" for note in result.notes)
    if result.stopped:
        yield f"⚠️ Stopped early: {code(result.stopped)}"


def _figures(result: RunResult) -> str:
    missing = result.coverage.missing > 0
    names = figure_names(result.figures)
    rows = []
    for name, figure in result.figures.named().items():
        spans = ("", "") if isinstance(figure, Amount) else (span(figure.interval), _span(figure.bounds))
        rows.append((names[name], figure_value(figure, len(result.tasks)), *spans[: 1 + missing]))
    heads = ("figure", "value:", "95% interval:", "if all missing failed / passed:")
    return _table(heads[: 3 + missing], rows)


def _span(bounds: tuple[float, float] | None) -> str:
    return UNKNOWN if bounds is None else f"{100 * bounds[0]:.1f} to {100 * bounds[1]:.1f}%"


def _tags(result: RunResult) -> str:
    k = result.trials_per_task
    rows = []
    for tag, found in result.by_tag.items():
        rate, every, seen = found.pass_at_1, found.observed_all, found.coverage
        trials = f"{seen.valid:,} / {seen.planned:,}"
        rows.append((code(tag), str(every.of), percent(rate.value), span(rate.interval), f"{every.count}", trials))
    heads = ("tag", "tasks:", "pass@1:", "95% interval:", f"observed {k}/{k}:", "valid / planned trials:")
    return _table(heads, rows)


def _failures(result: RunResult) -> Iterator[str]:
    found = result.failures
    clean = found.looked_clean
    line = f"{clean.count:,} of {clean.of:,} failed trials looked clean ({percent(clean.share)})"
    if clean.count:
        line += ": " + ", ".join(f"{kind} {percent(share.share)}" for kind, share in found.classes.items())
    ends = ", ".join(f"{code(reason)} {count:,}" for reason, count in found.end_reasons.items())
    yield f"{line}. They ended by: {ends}."
    if found.most_frequent:
        rows = [
            (code(triple.table), "(row)" if triple.column is None else code(triple.column), triple.kind,
             f"{triple.trials:,}", f"{code(triple.task)} trial {triple.index}")
            for triple in found.most_frequent
        ]  # fmt: skip
        yield _table(("table", "column", "class", "trials:", "for example"), rows)
    yield _worst(result)


def _worst(result: RunResult) -> str:
    failing = [task for task in result.by_task.values() if task.tally.failed]
    worst = sorted(failing, key=lambda task: (task.rate or 0.0, task.task.id))[:_SHOWN]
    rows = [(code(task.task.id), f"{task.tally.passed} / {task.tally.valid}", span(task.interval)) for task in worst]
    return _table(("worst tasks", "passed / valid:", "95% interval:"), rows)


def _faults(result: RunResult) -> str:
    rows = [
        (found.fault.owner, f"{found.attempts:,}", code(f"{found.fault.code}: {found.fault.message}"[:_LONGEST]),
         f"{code(found.task)} trial {found.index}")
        for found in result.frequent_faults
    ]  # fmt: skip
    return _table(("whose", "attempts:", "what", "for example"), rows)


def _tool_faults(result: RunResult) -> str:
    return _numbers(TOOL_FAULT_COLUMNS, map(tool_fault_cells, result.tool_faults))


def _spent(result: RunResult) -> str:
    bill, usage = result.bill, result.usage
    text = f"Spent by the agent: {usage.input_tokens:,} input tokens ({usage.cached_input_tokens:,} cached), "
    text += f"{usage.output_tokens:,} output tokens, cost {money(bill.agent.cost)}."
    for who, item in bill.others.items():
        text += f" By the {who}: {item.usage.total_tokens:,} tokens, cost {money(item.cost)}."
    if result.without_verdict:
        tokens = sum(record.usage.total_tokens for record in result.without_verdict)
        text += f" {counted(len(result.without_verdict), 'attempt')} without a verdict took {tokens:,} tokens apart from that."
    bases = [f"{code(model)} {basis or 'has no known price'}" for model, basis in result.price_bases().items()]
    return f"{text} Prices: {'; '.join(bases)}." if bases else text


# -- several runs -------------------------------------------------------------------------------------------------


def _comparison(comparison: Comparison) -> Iterator[str]:
    yield f"### {len(comparison.results)} agents on {code(comparison.suite)}"
    yield "\n".join(f"- {_named(pair).sentence}" for pair in comparison.pairs)
    yield from (f"⚠️ {code(note)}" for note in comparison.notes)
    yield _agents(comparison)
    yield _pairs(comparison.pairs)
    for pair in comparison.pairs:
        if pair.most_different:
            rows = [
                (code(task.task), f"{task.a.passed} / {task.a.valid}", f"{task.b.passed} / {task.b.valid}")
                for task in pair.most_different
            ]
            table = _table(("task", f"{code(pair.a)}:", f"{code(pair.b)}:"), rows)
            yield _folded("Where they differ most", table)


def _named(pair: AgentPair) -> AgentPair:
    """Return a pair with its names as code spans, wherever its sentence has them."""
    shortfalls = tuple((code(agent), why) for agent, why in pair.shortfalls)
    return replace(pair, a=code(pair.a), b=code(pair.b), shortfalls=shortfalls)


def _agents(comparison: Comparison) -> str:
    rows = (agent_cells(code(name), result) for name, result in comparison.results.items())
    return _numbers(agent_columns(comparison.k), rows)


def _pairs(pairs: Sequence[AgentPair]) -> str:
    return _numbers(pair_columns(len(pairs)), (pair_cells(pair, code) for pair in pairs))


# -- inside -------------------------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a column whose name ends with a colon is aligned to the right."""
    lines = [[head.removesuffix(":") for head in heads], ["--:" if head.endswith(":") else "---" for head in heads]]
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in (*lines, *rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


def _numbers(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of names, on the left, and of their numbers."""
    first, *others = columns
    return _table((first, *(f"{name}:" for name in others)), rows)


def _folded(title: str, *blocks: str) -> str:
    inside = "\n\n".join(blocks)
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"
