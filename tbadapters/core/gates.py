"""Gates: what a run must come to before something else may happen, such as a merge.

A requirement names a figure as reports print it (``pass@1>=0.8``), of all tasks, of each task that a pattern names
(``task:card_*:pass@1>=0.9``), or of the tasks that carry a tag (``tag:dispute:observed k/k>=0.5``). A regression
against a baseline is called by the paired test over tasks, never by two bare numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from tbadapters.core.comparison import SIGNIFICANT, Comparison, p_told
from tbadapters.core.errors import InvalidOption, UnknownName
from tbadapters.core.figures import Amount, Figure, Figures, Rate, TaskCount, figures
from tbadapters.core.limits import is_share
from tbadapters.core.numbers import counted, in_points
from tbadapters.core.paired import pair_tasks, rate_difference
from tbadapters.core.requirements import ROUNDING, Requirement
from tbadapters.core.result import RunResult
from tbadapters.core.statistics import Interval, Tally
from tbadapters.core.suite import names_task

State = Literal["met", "not met", "coverage too low"]
_FEWEST = 6  # tasks: of 5, even if all are worse, the paired test gives p = 2/32
_SHOWN = 5
_REGRESSION = "a regression"


@dataclass(frozen=True, slots=True)
class Finding:
    """What came of one requirement, or of the comparison with the baseline.

    Attributes:
        requirement: What was required.
        state: ``met``, ``not met``, or ``coverage too low`` to say.
        why: The figure behind it, in words.
    """

    requirement: str
    state: State
    why: str


@dataclass(frozen=True, slots=True)
class Gate:
    """What came of all requirements.

    Attributes:
        findings: One a requirement, the comparison with the baseline last.
        lacking: Why the coverage of the run or its baseline is too low to say anything, in words; empty where it is not.
    """

    findings: tuple[Finding, ...]
    lacking: str

    @property
    def state(self) -> State:
        """``met`` where every requirement is; what is not met counts before what can't be said."""
        return _worst(finding.state for finding in self.findings)


def check_gate(
    result: RunResult, require: Sequence[str] = (), *, against: RunResult | None = None, max_drop: float | None = None
) -> Gate:
    """Return whether a run comes to what is required of it.

    Args:
        result: The run.
        require: Requirements, see ``Requirement``.
        against: A baseline on the same suite: the run must not pass less often.
        max_drop: The drop of pass@1 that is put up with, from 0 to 1; None for 0.

    Raises:
        InvalidOption: nothing is required, a requirement makes no sense, or the baseline ran other tasks, or too few.
        UnknownName: a pattern names no task, or no tag, of the run.
    """
    if not is_share(max_drop or 0.0) or (max_drop is not None and against is None):
        need = "points of pass@1 from 0 to 1 are needed, such as 0.03, with a baseline to drop from"
        raise InvalidOption(f"max_drop={max_drop!r}: {need}.")
    requirements = [Requirement.parse(text) for text in require]
    if not requirements and against is None:
        raise InvalidOption("A gate needs at least one requirement, such as pass@1>=0.8, or a baseline.")
    findings = [_finding(result, requirement) for requirement in requirements]
    seen = {"this run": result.coverage} | ({} if against is None else {"the baseline": against.coverage})
    lacking = "; ".join(f"{whose}: {found.shortfall}" for whose, found in seen.items() if not found.sufficient)
    if against is not None:
        findings.append(_regression(result, against, max_drop or 0.0))
    if lacking:
        findings = [replace(found, state="coverage too low") for found in findings]
    return Gate(tuple(findings), lacking)


class _Part(NamedTuple):
    """The tasks that a requirement is about, or one of them."""

    name: str
    figures: Figures


def _finding(result: RunResult, requirement: Requirement) -> Finding:
    """Judge a requirement on each of its parts; the worst of them decides."""
    judged: list[tuple[State, float, str]] = []
    for part in _parts(result, requirement):
        figure = _chosen(part.figures, requirement)
        state = _state(requirement, figure, part.figures)
        judged.append((state, requirement.distance(_value(figure)), _words(part, figure, len(result.tasks))))
    worst = _worst(state for state, _, _ in judged)
    words = [why for state, _, why in sorted(judged, key=lambda found: found[1]) if state == worst]
    listed = "; ".join(words[:_SHOWN]) + ("; ..." if len(words) > _SHOWN else "")
    if requirement.scope is None:
        return Finding(requirement.text, worst, listed)
    return Finding(requirement.text, worst, f"{len(words)} of {counted(len(judged), requirement.scope)}: {listed}")


def _worst(states: Iterable[State]) -> State:
    found = set(states)
    return "not met" if "not met" in found else "coverage too low" if "coverage too low" in found else "met"


def _parts(result: RunResult, requirement: Requirement) -> Iterator[_Part]:
    pattern = requirement.pattern or ""
    if requirement.scope is None:
        yield _Part("", result.figures)
    elif requirement.scope == "tag":
        tags = {tag: found for tag, found in result.by_tag.items() if fnmatchcase(tag, pattern)}
        if not tags:
            raise UnknownName("tag", pattern, result.by_tag)
        yield from (_Part(f"{tag}: ", found) for tag, found in tags.items())
    else:
        tasks = [found for task, found in result.by_task.items() if names_task(pattern, task, result.suite)]
        if not tasks:
            raise UnknownName("task", pattern, result.by_task)
        k, floor = result.trials_per_task, result.coverage_floor
        for found in tasks:
            yield _Part(f"{found.task.id}: ", figures([found.tally], found.trials, k, floor=floor))


def _chosen(found: Figures, requirement: Requirement) -> Figure:
    k = requirement.k
    if k is None:
        return found.named()[requirement.figure]
    if not 1 <= k <= found.k or (requirement.figure == "observed k/k" and k != found.k):
        raise InvalidOption(
            f"The requirement {requirement.text!r} asks for {counted(k, 'trial')}: this run has "
            f"{counted(found.k, 'trial')} a task."
        )
    return found.named(k)[requirement.figure]


def _state(requirement: Requirement, figure: Figure, found: Figures) -> State:
    value, coverage = _value(figure), found.coverage
    # Even where few trials are missing, few tasks may have k of them, and many be undetermined.
    enough = True
    if isinstance(figure, Rate):
        enough = figure.tasks >= coverage.floor * found.observed_all.of - ROUNDING
    elif isinstance(figure, TaskCount):
        enough = not figure.undetermined
    if coverage.sufficient and enough and value is not None:
        return "met" if requirement.holds(value) else "not met"
    bounds = None if isinstance(figure, Amount) else figure.bounds
    if bounds is not None:  # what is missing may not matter
        certain = {requirement.holds(bound) for bound in bounds}
        return "coverage too low" if len(certain) > 1 else "met" if certain == {True} else "not met"
    unknown = isinstance(figure, Amount) and not figure.known and coverage.valid
    return "coverage too low" if coverage.missing and not unknown else "not met"


def _value(figure: Figure) -> float | None:
    return figure.rate if isinstance(figure, TaskCount) else figure.value


def _words(part: _Part, figure: Figure, tasks: int) -> str:
    value, coverage = _value(figure), part.figures.coverage
    if isinstance(figure, Amount):
        shown = ("undefined" if figure.known else "unknown") if value is None else f"{value:.6g} {figure.unit}"
        spans: dict[str, Interval | None] = {}
    else:
        shown = "undefined" if value is None else f"{value:.4f}"
        if isinstance(figure, TaskCount):
            shown += f" ({figure.count} of {counted(figure.of, 'task')})"
        elif figure.tasks < tasks and not part.name:
            shown += f" ({figure.tasks} of {counted(tasks, 'task')})"
        spans = {"95% interval": figure.interval, "bounds": figure.bounds if coverage.missing else None}
    notes = [f"{name} {span.low:.4f} to {span.high:.4f}" for name, span in spans.items() if span is not None]
    if coverage.missing:
        notes.append(f"{coverage.missing:,} of {counted(coverage.planned, 'trial')} missing")
    return f"{part.name}{shown}" + (f" ({', '.join(notes)})" if notes else "")


def _regression(result: RunResult, baseline: RunResult, max_drop: float) -> Finding:
    runs = Comparison({"run": result, "baseline": baseline})
    pair = runs.pair("run", "baseline")
    found, common = pair.pass_at_1, len(result.tallies.keys() & baseline.tallies.keys())
    if common < _FEWEST:
        raise InvalidOption(
            f"This run and its baseline have {counted(common, 'task')} in common: over fewer than {_FEWEST} no drop, however "
            "large, can be told from chance. Run more tasks, or require a figure such as pass@1>=0.8."
        )
    required = f"no drop of pass@1 beyond {counted(100 * max_drop, 'point')} against the baseline"
    if found.tasks < _FEWEST or found.value is None or found.p is None:
        return Finding(
            required, "coverage too low", f"{found.tasks} of {counted(common, 'task')} have a valid trial of both"
        )
    turn = 1 if pair.a == "run" else -1
    of_all = f" of the baseline's {len(baseline.tasks)}" if found.tasks < len(baseline.tasks) else ""
    facts = f"{p_told(found.p.value)}, paired over {found.tasks}{of_all} tasks"
    missing = result.coverage.missing + baseline.coverage.missing
    for name, span in {"bounds": pair.bounds if missing else None, "95% interval": found.interval}.items():
        if span is not None:
            low, high = sorted(turn * end for end in span)
            facts = f"{name} {in_points(low)} to {in_points(high)}, {facts}"
    said = _said(turn * found.value, found.p.value, max_drop)
    if missing and _open(result, baseline, max_drop, said):
        said += f" (but {counted(missing, 'trial')} missing could change that)"
    unlike = f"; the two were not made alike: {', '.join(runs.unlike)}" if runs.unlike else ""
    state: State = "not met" if said.startswith(_REGRESSION) else "met"
    return Finding(required, state, f"{in_points(turn * found.value)} points ({facts}): {said}{unlike}")


def _said(change: float, p: float, max_drop: float) -> str:
    """Say what a change of pass@1 against the baseline is."""
    if change >= 0:
        return "no drop"
    if p > SIGNIFICANT:
        return "may be chance"
    return _REGRESSION if -change > max_drop + ROUNDING else "a drop that is put up with"


def _open(result: RunResult, baseline: RunResult, max_drop: float, said: str) -> bool:
    """Return whether the missing trials, had they all spoken against the run or all for it, could turn the verdict."""
    for ours, theirs in ((Tally.worst, Tally.best), (Tally.best, Tally.worst)):
        run = {task: ours(tally) for task, tally in result.tallies.items()}
        base = {task: theirs(tally) for task, tally in baseline.tallies.items()}
        found = rate_difference(pair_tasks(run, base), seed=result.seed)
        if found.value is not None and found.p is not None:
            regressed = _said(found.value, found.p.value, max_drop) == _REGRESSION
            if regressed is not (said == _REGRESSION):
                return True
    return False
