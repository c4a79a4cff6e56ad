"""Results, comparisons and trials as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tbadapters.core.comparison import AgentPair, Comparison
from tbadapters.core.figures import Amount, Figures
from tbadapters.core.numbers import counted
from tbadapters.core.records import AttemptRecord
from tbadapters.core.result import RunResult, TaskResult
from tbadapters.core.suite import Task
from tbadapters.core.task_info import TaskInfo
from tbadapters.core.tool_fault_figures import ToolFaultFigures
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
from tbadapters.reports.trial_view import Cell, EffectView, Step, TrialView, trial_view

WIDTH = 100
FAULT_WIDTH = 300  # characters of a fault's message
WORST = 10
_VERDICT_STYLE = {"passed": "bold green", "failed": "bold red", "no verdict": "bold yellow"}
_KIND_STYLE = {"wrong_value": "red", "missing": "yellow", "unexpected": "magenta"}


def render(result: RunResult | Comparison, *, width: int = WIDTH, color: bool = False) -> str:
    """Return a result or a comparison as text.

    Args:
        result: What to show.
        width: Columns of the terminal.
        color: Whether to colour it with escape sequences of our own; none of an agent ever pass.
    """
    parts = comparison_parts(result) if isinstance(result, Comparison) else result_parts(result)
    return _printed(parts, width, color=color)


def show_trial(
    record: AttemptRecord, task: Task | TaskInfo | None = None, *, width: int = WIDTH, color: bool = False
) -> str:
    """Return one trial as text: conversation, tool calls, and effects side by side.

    Args:
        record: The attempt.
        task: Its task, so that golden actions can be named.
        width: Columns of the terminal.
        color: Whether to colour it.
    """
    return _printed(_trial_parts(trial_view(record, task)), width, color=color)


# -- a run --------------------------------------------------------------------------------------------------------


def result_parts(result: RunResult) -> list[RenderableType]:
    """Return the tables of a result."""
    head = Text.assemble((visible(result.agent), "bold"), f" ({visible(result.framework)}) on ", (result.suite, "bold"))
    lines = [head, Text(size_text(result), "dim")]
    lines.append(Text(visible(result.headline), "" if result.coverage.sufficient else "bold yellow"))
    lines.extend(Text(visible(note), "yellow") for note in result.notes)
    if result.stopped:
        lines.append(Text(f"Stopped early: {visible(result.stopped)}", "bold yellow"))
    parts: list[RenderableType] = [*lines, _figures_table(result)]
    if len(_telling_tags(result)) > 1:
        parts.append(_tags_table(result))
    worst = _worst(result)
    if worst:
        parts.append(_tasks_table(worst))
    if result.failures.failed:
        parts.extend(_failure_parts(result))
    if result.frequent_faults:
        parts.append(_faults_table(result))
    if result.tool_faults:
        parts.extend(_tool_faults_parts(result.tool_faults))
    parts.append(_spent(result))
    if result.folder is not None:
        parts.append(Text(f"Run folder: {visible(str(result.folder))}", no_wrap=True, overflow="ignore"))
    return parts


def _figures_table(result: RunResult) -> Table:
    table = _table(f"Figures ({coverage_text(result.coverage)} trials)", "figure", "value|", "95% interval|")
    missing = result.coverage.missing > 0
    if missing:
        table.add_column("if all missing failed / passed", justify="right")
    names = figure_names(result.figures)
    for name, figure in result.figures.named().items():
        limits = None if isinstance(figure, Amount) else figure.bounds
        interval = "" if isinstance(figure, Amount) else span(figure.interval)
        table.add_row(
            names[name],
            figure_value(figure, len(result.tasks)),
            interval,
            *([span(limits) if limits else ""] if missing else []),
        )
    return table


def _tags_table(result: RunResult) -> Table:
    k = result.trials_per_task
    table = _table("By tag", "tag", "tasks|", "pass@1|", "95% interval|", f"observed {k}/{k}|", "valid / planned|")
    for tag, found in _telling_tags(result):
        rate, every, seen = found.pass_at_1, found.observed_all, found.coverage
        count = f"{every.count} of {every.of}"
        trials = f"{seen.valid:,} / {seen.planned:,}"
        table.add_row(visible(tag), str(every.of), percent(rate.value), span(rate.interval), count, trials)
    return table


def _telling_tags(result: RunResult) -> list[tuple[str, Figures]]:
    """Return the tags that more than one task has: another would repeat the list of tasks."""
    return [(tag, found) for tag, found in result.by_tag.items() if found.observed_all.of > 1]


def _worst(result: RunResult) -> list[TaskResult]:
    failing = [found for found in result.by_task.values() if found.tally.failed]
    return sorted(failing, key=lambda found: (found.rate or 0.0, found.task.id))[:WORST]


def _tasks_table(worst: Iterable[TaskResult]) -> Table:
    table = _table("Worst tasks", "task", "passed / valid|", "95% interval|", "planned|")
    for found in worst:
        tally = found.tally
        passed = f"{tally.passed} / {tally.valid}"
        table.add_row(visible(found.task.id), passed, span(found.interval), str(tally.planned))
    return table


def _failure_parts(result: RunResult) -> list[RenderableType]:
    found = result.failures
    clean = found.looked_clean
    classes = ", ".join(f"{kind} {percent(share.share)}" for kind, share in found.classes.items())
    ends = ", ".join(f"{visible(reason)} {count}" for reason, count in found.end_reasons.items())
    lines = f"{clean.count} of {clean.of} failed trials looked clean ({percent(clean.share)})"
    text = Text(
        f"{lines}; of those: {classes}.\nThey ended by: {ends}." if clean.count else f"{lines}.\nThey ended by: {ends}."
    )
    if not found.most_frequent:
        return [_title("Failures"), text]
    table = _table(None, "table", "column", "class", "trials|", "for example")
    for triple in found.most_frequent:
        example = f"{triple.task} trial {triple.index}"
        column = "(row)" if triple.column is None else triple.column
        kind = Text(triple.kind, _KIND_STYLE[triple.kind])
        table.add_row(visible(triple.table), visible(column), kind, str(triple.trials), visible(example))
    return [_title("Failures"), text, table]


def _faults_table(result: RunResult) -> Table:
    table = _table("What ended attempts", "whose|", "attempts|", "example", "what")
    for found in result.frequent_faults:
        fault = found.fault
        example = visible(f"{found.task} trial {found.index}")
        table.add_row(
            fault.owner, str(found.attempts), example, visible(f"{fault.code}: {fault.message}")[:FAULT_WIDTH]
        )
    return table


def _tool_faults_parts(figures: Sequence[ToolFaultFigures]) -> list[RenderableType]:
    table = _numbers("Injected tool faults", TOOL_FAULT_COLUMNS, map(tool_fault_cells, figures))
    return [table, Text(TOOL_FAULT_NOTE, "dim")]


def _spent(result: RunResult) -> Text:
    usage, apart = result.usage, result.without_verdict
    text = "Spent: tokens unknown, no model request of the agent reported any."
    if usage.total_tokens:
        text = (
            f"Spent: {usage.input_tokens:,} input tokens ({usage.cached_input_tokens:,} cached), "
            f"{usage.output_tokens:,} output tokens, cost {money(result.cost)}."
        )
    for who, item in result.bill.others.items():
        text += f" The {who}: {item.usage.total_tokens:,} tokens, cost {money(item.cost)}."
    if apart:
        tokens = sum(record.usage.total_tokens for record in apart)
        ended = ", ".join(f"{fault} x {number}" for fault, number in result.infrastructure_faults.items())
        text += f" Apart from that: {counted(len(apart), 'attempt')} without a verdict ({ended}), {tokens:,} tokens."
    for sentence in result.disturbances.sentences:
        text += f" {visible(sentence)}"
    bases = (f"{visible(model)} {basis or 'has no known price'}" for model, basis in result.price_bases().items())
    prices = "; ".join(bases)
    return Text(f"\n{text}" + (f"\nPrices: {prices}." if prices else ""), "dim")


# -- several runs -------------------------------------------------------------------------------------------------


def comparison_parts(comparison: Comparison) -> list[RenderableType]:
    """Return the tables of a comparison."""
    head = Text.assemble((f"{len(comparison.results)} agents", "bold"), " on ", (comparison.suite, "bold"))
    parts: list[RenderableType] = [head, _agents_table(comparison), _pairs_table(comparison.pairs)]
    parts.append(Text("\n" + "\n".join(visible(sentence) for sentence in comparison.sentences)))
    parts.extend(Text(visible(note), "yellow") for note in comparison.notes)
    parts.extend(_apart_table(pair) for pair in comparison.pairs if pair.most_different)
    return parts


def _agents_table(comparison: Comparison) -> Table:
    rows = (agent_cells(visible(name), result) for name, result in comparison.results.items())
    return _numbers("Agents", agent_columns(comparison.k), rows)


def _pairs_table(pairs: Sequence[AgentPair]) -> Table:
    rows = (pair_cells(pair, visible) for pair in pairs)
    return _numbers("Pairs, by task", pair_columns(len(pairs)), rows)


def _apart_table(pair: AgentPair) -> Table:
    names = (visible(pair.a), visible(pair.b))
    table = _table(f"Where {names[0]} and {names[1]} differ most", "task", *(f"{name}|" for name in names))
    for task in pair.most_different[:5]:
        counts = (f"{tally.passed} / {tally.valid}" for tally in (task.a, task.b))
        table.add_row(visible(task.task), *counts)
    return table


# -- one trial ----------------------------------------------------------------------------------------------------


def _trial_parts(view: TrialView) -> list[RenderableType]:
    head = Text.assemble((visible(view.task), "bold"), f" trial {view.index}: ")
    head.append(view.verdict, _VERDICT_STYLE[view.verdict])
    facts = [f"ended by {visible(view.end_reason)}", f"{view.seconds:.2f} s", f"{view.model_requests} model requests"]
    facts.append(f"{view.input_tokens:,} + {view.output_tokens:,} tokens, cost {money(view.cost)}")
    facts.extend(f"apart from that: {part}" for part in view.apart)
    if view.attempt:
        facts.insert(0, f"attempt {view.attempt + 1}")
    parts: list[RenderableType] = [head, Text(", ".join(facts), "dim")]
    if view.fault:
        parts.append(Text(f"Fault of the {visible(view.fault)}", "bold yellow"))
    parts.append(_title("Conversation"))
    parts.extend(_step(step) for step in view.steps)
    if view.reasons:
        parts.append(_title("Reasons"))
        parts.extend(Text(f"- {visible(reason)}") for reason in view.reasons)
    if view.effects:
        nearest = f" (nearest allowed end state: {visible(view.end_state)})" if view.end_state else ""
        parts.append(_title(f"Effects{nearest}"))
        parts.extend(_effect(effect) for effect in view.effects)
    return parts


def _step(step: Step) -> RenderableType:
    if step.call is None:
        said = step.kind in ("user", "agent")
        label = Text(f"{step.kind}: ", "bold cyan" if step.kind == "user" else "bold" if said else "dim")
        return Padding(label + Text(visible(step.text), "" if said else "dim"), (0, 0, 0, 0))
    call = step.call
    line = Text(f"  #{call.index} ", "dim")
    if call.actor:
        line.append(f"[{visible(call.actor)}] ", "dim")
    line.append(visible(call.line), "bold magenta" if call.wrote else "")
    if call.caused:
        line.append(f"  <- caused effect {', '.join(map(str, call.caused))}", "bold red")
    answer = Text(("error: " if call.is_error else "") + visible(call.result), "red" if call.is_error else "dim")
    return Group(line, Padding(answer, (0, 0, 0, 6)))


def _effect(effect: EffectView) -> RenderableType:
    lines = [Text.assemble(f"{effect.number}. ", (effect.kind, _KIND_STYLE[effect.kind]), f" {visible(effect.place)}")]
    if effect.caused_by is not None:
        lines.append(Text(f"   caused by #{effect.call} {visible(effect.caused_by)}"))
    if effect.golden is not None:
        lines.append(Text(f"   golden action: {visible(effect.golden)}"))
    table = _table(None, "column", "initial", "final", "expected")
    for cell in effect.cells:
        table.add_row(visible(cell.column), *_cell(cell))
    return Group(*lines, Padding(table, (0, 0, 0, 3)))


def _cell(cell: Cell) -> list[Text]:
    texts = [UNKNOWN if value is None else visible(value) for value in (cell.initial, cell.final, cell.expected)]
    return [Text(texts[0]), Text(texts[1], "bold red" if cell.differs else ""), Text(texts[2])]


# -- inside -------------------------------------------------------------------------------------------------------


def _title(text: str) -> Text:
    return Text(f"\n{text}", "bold")


def _table(title: str | None, *columns: str) -> Table:
    """Return an empty table; a column whose name ends with | is aligned to the right."""
    heading = Text(f"\n{title}", "bold") if title else None
    table = Table(title=heading, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="")
    for column in columns:
        table.add_column(column.removesuffix("|"), justify="right" if column.endswith("|") else "left", overflow="fold")
    return table


def _numbers(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of names, on the left, and of their numbers."""
    first, *others = columns
    table = _table(title, first, *(f"{name}|" for name in others))
    for row in rows:
        table.add_row(*row)
    return table


def _printed(parts: Iterable[RenderableType], width: int, *, color: bool) -> str:
    out = StringIO()
    # No markup, no emoji names: what an agent said is printed as it is.
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        force_jupyter=False,  # there rich would show each part by itself, and leave the text empty
        color_system="standard" if color else None,
        markup=False,
        emoji=False,
        highlight=False,
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    return "\n".join(line for line, before in zip(lines, ["", *lines], strict=False) if line or before)
