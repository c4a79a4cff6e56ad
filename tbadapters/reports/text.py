"""How figures read, and how the text of agents and users is made harmless to print."""

from __future__ import annotations

from collections.abc import Callable

from tbadapters.core.comparison import AgentPair, p_text
from tbadapters.core.figures import Amount, Coverage, Figure, Figures, Rate
from tbadapters.core.numbers import counted, in_points
from tbadapters.core.printable import visible as visible  # noqa: PLC0414  (reports know it from here)
from tbadapters.core.result import RunResult
from tbadapters.core.statistics import Interval
from tbadapters.core.tool_fault_figures import ToolFaultFigures

UNKNOWN = "—"


def percent(value: float | None) -> str:
    """Return a rate as a percentage with one digit."""
    return UNKNOWN if value is None else f"{100 * value:.1f}%"


def span(interval: Interval | None) -> str:
    """Return an interval of rates."""
    return UNKNOWN if interval is None else f"{100 * interval.low:.1f} to {100 * interval.high:.1f}%"


def points(interval: Interval | None) -> str:
    """Return an interval of differences of rates, in percentage points."""
    return UNKNOWN if interval is None else f"{in_points(interval.low)} to {in_points(interval.high)}"


def money(value: float | None) -> str:
    """Return US dollars with digits enough for small sums; unknown is said in words."""
    if value is None:
        return "unknown"
    if value == 0 or value >= 1:
        return f"${value:,.2f}"
    return f"${value:.4f}" if value >= 0.001 else f"${value:.2g}"  # noqa: PLR2004 - a tenth of a cent


def amount(figure: Amount) -> str:
    """Return a figure without interval."""
    if figure.value is None:
        return UNKNOWN if figure.known else "unknown"
    match figure.unit:
        case "USD":
            return money(figure.value)
        case "tokens":
            return f"{figure.value:,.0f} tokens"
        case _:
            return percent(figure.value)


def figure_value(figure: Figure, tasks: int) -> str:
    """Return any figure's value; a mean over fewer than all ``tasks`` says so."""
    if isinstance(figure, Amount):
        return amount(figure)
    if isinstance(figure, Rate):
        return percent(figure.value) + (
            f" ({figure.tasks} of {counted(tasks, 'task')})" if figure.tasks < tasks else ""
        )
    undetermined = f", {figure.undetermined} undetermined" if figure.undetermined else ""
    return f"{figure.count} of {figure.of} ({percent(figure.rate)}{undetermined})"


def figure_names(figures: Figures) -> dict[str, str]:
    """Return for each figure's name how it is printed for this k; the name itself stays readable in it."""
    k = figures.k
    return {name: f"{name}, k = {k}" if "k (" in name else name.replace("k/k", f"{k}/{k}") for name in figures.named()}


def size_text(result: RunResult) -> str:
    """Return how much a run is."""
    return f"{counted(len(result.tasks), 'task')} x {counted(result.trials_per_task, 'trial')}, seed {result.seed}"


def coverage_text(coverage: Coverage) -> str:
    """Return planned, valid and missing trials in words."""
    return f"{coverage.planned:,} planned, {coverage.valid:,} valid, {coverage.missing:,} missing"


# The first column is a name; the others are numbers.


def agent_columns(k: int | None) -> tuple[str, ...]:
    """Return the columns of a comparison's agents; k is None where their runs differ in it."""
    every = f"observed {k or 'k'}/{k or 'k'}"
    return ("agent", "pass@1", "95% interval", every, "retention", "cost per success", "valid / planned trials")


def agent_cells(name: str, result: RunResult) -> tuple[str, ...]:
    """Return what one agent of a comparison came to, a cell a column."""
    found, seen = result.figures, result.coverage
    every = f"{found.observed_all.count} of {found.observed_all.of}"
    money_kept = (amount(found.retention), amount(found.cost_per_success))
    trials = f"{seen.valid:,} / {seen.planned:,}" + ("" if seen.sufficient else " (too few)")
    return (name, percent(found.pass_at_1.value), span(found.pass_at_1.interval), every, *money_kept, trials)


def pair_columns(pairs: int) -> tuple[str, ...]:
    """Return the columns of a comparison's pairs, so many of them."""
    many = " (Holm)" if pairs > 1 else ""
    return ("pair", "tasks", "difference of pass@1", "95% interval", f"p{many}", f"p of k/k{many}")


def pair_cells(pair: AgentPair, named: Callable[[str], str]) -> tuple[str, ...]:
    """Return what came of two agents, a cell a column; ``named`` makes an agent's name harmless."""
    found = pair.pass_at_1
    value = UNKNOWN if found.value is None else f"{in_points(found.value)} points"
    if pair.shortfalls:
        value += ", too few trials"
    p_values = (p_text(pair.p_pass_at_1), p_text(pair.p_observed_all))
    return (f"{named(pair.a)} less {named(pair.b)}", str(found.tasks), value, points(found.interval), *p_values)


TOOL_FAULT_COLUMNS = (
    "fault",
    "calls",
    "passed / trials",
    "pass@1",
    "without",
    "95% difference",
    "retained",
    "duplicate effects",
)
TOOL_FAULT_NOTE = "Without: trials that met no fault, of the tasks that have both; pass@1 is of these tasks."


def tool_fault_cells(found: ToolFaultFigures) -> tuple[str, ...]:
    """Return what one kind of injected fault came to, a cell a column."""
    rates = (
        percent(found.rate),
        percent(found.rate_without),
        points(found.difference.interval),
        percent(found.retained),
    )
    twice = f"{found.duplicates:,} in {counted(found.trials_with_duplicates, 'trial')}" if found.duplicates else "0"
    return (found.kind.replace("_", " "), f"{found.calls:,}", f"{found.passed:,} / {found.trials:,}", *rates, twice)
