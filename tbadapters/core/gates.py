"""Gates: what a run must come to before something else may happen, such as a merge.

A requirement names a figure as reports print it (``pass@1>=0.8``), of all tasks, of each task that a pattern names
(``task:card_*:pass@1>=0.9``), or of the tasks that carry a tag (``tag:dispute:observed k/k>=0.5``). A regression
against a baseline is called by the paired test over tasks, never by two bare numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import inf
from typing import Literal, NamedTuple

from tbadapters.core.comparison import SIGNIFICANT, Comparison, p_told
from tbadapters.core.errors import InvalidOption, UnknownName
from tbadapters.core.figures import Amount, Figure, Figures, Rate, TaskCount, figures
from tbadapters.core.limits import is_share
from tbadapters.core.result import RunResult
from tbadapters.core.statistics import Interval
from tbadapters.core.suite import names_task

State = Literal["met", "not met", "coverage too low"]
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_FORM = re.compile(r"(?:(task|tag):(.+):)?\s*([^<>:]+?)\s*(>=|<=|>|<)\s*([0-9.]+)\s*(%?)")
_AT_K = re.compile(r"pass(@|\^)(\d+)|(pass@k \(unbiased\)|pass\^k \(unbiased\)|pass\^k \(plug-in\)), k = (\d+)")
_OBSERVED = re.compile(r"observed (\d+)/(\d+)")
_SERIES = {"@": "pass@k (unbiased)", "^": "pass^k (unbiased)"}
_RATES = ("pass@1", *_SERIES.values(), "pass^k (plug-in)", "observed k/k", "solved at least once", "retention")
_AMOUNTS = ("cost per trial", "cost per success", "cost per reliable task", "tokens per success")
_ROUNDING = 1e-9  # relative: a mean of rates that is 0.8 on paper may be stored as a little less
_FEWEST = 6  # tasks: of 5, even if all are worse, the paired test gives p = 2/32
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a figure must come to.

    Attributes:
        text: As it was given.
        scope: ``task`` (each task that ``pattern`` names), ``tag`` (the tasks of each such tag), or None: all tasks.
        pattern: A shell pattern, or None.
        figure: The figure's name, as in ``Figures.named``.
        k: For a figure of k: of how many trials; None: of all that were planned.
        sign: ``>=``, ``<=``, ``>`` or ``<``.
        limit: Rates from 0 to 1, costs in US dollars.
    """

    text: str
    scope: Literal["task", "tag"] | None
    pattern: str | None
    figure: str
    k: int | None
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Return the requirement that a text such as ``pass@1>=0.8`` states.

        Raises:
            InvalidOption: the text is not of this form, names no figure, or its number can't be one of the figure.
        """
        form = _FORM.fullmatch(text.strip())
        number = None if form is None else _number(form[5])
        if form is None or number is None:
            raise InvalidOption(
                f"The requirement {text!r} must read FIGURE>=NUMBER, task:PATTERN:FIGURE>=NUMBER or "
                "tag:NAME:FIGURE>=NUMBER (also <=, > and <), such as pass@1>=0.8."
            )
        name, k = _figure(form[3], text)
        if form[6]:
            number /= 100
        if (name in _RATES and not is_share(number)) or (form[6] and name in _AMOUNTS):
            need = "a rate is from 0 to 1 (0.8), or a percentage (80%)" if name in _RATES else "it is no rate"
            raise InvalidOption(f"The requirement {text!r} asks for {form[5]}{form[6]} of {name}: {need}.")
        scope: Literal["task", "tag"] | None = {"task": "task", "tag": "tag"}.get(form[1])  # type: ignore[assignment]
        return cls(text.strip(), scope, form[2], name, k, form[4], number)

    def holds(self, value: float) -> bool:
        """Say whether a value of the figure is as required; equal but for rounding counts as equal."""
        slack = _ROUNDING * max(1.0, abs(self.limit))
        shifted = value + slack if self.sign in (">=", "<") else value - slack
        return _OPERATORS[self.sign](shifted, self.limit)

    def distance(self, figure: Figure) -> float:
        """Return by how much a figure is better than required, least where it is unknown: the worst sort first."""
        value = _value(figure)
        if value is None:
            return -inf
        return value - self.limit if self.sign.startswith(">") else self.limit - value


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
        judged.append((state, requirement.distance(figure), _words(part, figure, len(result.tasks))))
    worst = _worst(state for state, _, _ in judged)
    words = [why for state, _, why in sorted(judged, key=lambda found: found[1]) if state == worst]
    listed = "; ".join(words[:_SHOWN]) + ("; ..." if len(words) > _SHOWN else "")
    if requirement.scope is None:
        return Finding(requirement.text, worst, listed)
    return Finding(requirement.text, worst, f"{len(words)} of {len(judged)} {requirement.scope}s: {listed}")


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
            f"The requirement {requirement.text!r} asks for {k} trials: this run has {found.k} trials a task."
        )
    return found.named(k)[requirement.figure]


def _state(requirement: Requirement, figure: Figure, found: Figures) -> State:
    value, coverage = _value(figure), found.coverage
    # Even where few trials are missing, few tasks may have k of them, and many be undetermined.
    enough = True
    if isinstance(figure, Rate):
        enough = figure.tasks >= coverage.floor * found.observed_all.of - _ROUNDING
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
            shown += f" ({figure.count} of {figure.of} tasks)"
        elif figure.tasks < tasks and not part.name:
            shown += f" ({figure.tasks} of {tasks} tasks)"
        spans = {"95% interval": figure.interval, "bounds": figure.bounds if coverage.missing else None}
    notes = [f"{name} {span.low:.4f} to {span.high:.4f}" for name, span in spans.items() if span is not None]
    if coverage.missing:
        notes.append(f"{coverage.missing:,} of {coverage.planned:,} trials missing")
    return f"{part.name}{shown}" + (f" ({', '.join(notes)})" if notes else "")


def _regression(result: RunResult, baseline: RunResult, max_drop: float) -> Finding:
    runs = Comparison({"run": result, "baseline": baseline})
    pair = runs.pair("run", "baseline")
    found, common = pair.pass_at_1, len(result.tallies.keys() & baseline.tallies.keys())
    if common < _FEWEST:
        raise InvalidOption(
            f"This run and its baseline have {common} tasks in common: over fewer than {_FEWEST} no drop, however "
            "large, can be told from chance. Run more tasks, or require a figure such as pass@1>=0.8."
        )
    required = f"no drop of pass@1 beyond {100 * max_drop:g} points against the baseline"
    if found.tasks < _FEWEST or found.value is None or found.p is None:
        return Finding(required, "coverage too low", f"{found.tasks} of {common} tasks have a valid trial of both")
    turn = 1 if pair.a == "baseline" else -1
    drop, real = turn * found.value, found.p.value <= SIGNIFICANT
    of_all = f" of the baseline's {len(baseline.tasks)}" if found.tasks < len(baseline.tasks) else ""
    facts = f"{p_told(found.p.value)}, paired over {found.tasks}{of_all} tasks"
    if found.interval is not None:
        low, high = sorted(-turn * 100 * end for end in found.interval)
        facts = f"95% interval {low:+.1f} to {high:+.1f}, {facts}"
    unlike = f"; the two were not made alike: {', '.join(runs.unlike)}" if runs.unlike else ""
    regressed = real and drop > max_drop + _ROUNDING
    said = "no drop"
    if drop > 0:
        said = "a regression" if regressed else "a drop that is put up with" if real else "may be chance"
    return Finding(required, "not met" if regressed else "met", f"{-100 * drop:+.1f} points ({facts}): {said}{unlike}")


def _figure(name: str, text: str) -> tuple[str, int | None]:
    """Return the name that ``Figures.named`` has for what is written, and its k."""
    shown = " ".join(name.split())
    if shown in (*_RATES, *_AMOUNTS):
        return shown, None
    at_k, observed = _AT_K.fullmatch(shown), _OBSERVED.fullmatch(shown)
    if at_k is not None:
        return at_k[3] or _SERIES[at_k[1]], int(at_k[4] or at_k[2])
    if observed is not None and observed[1] == observed[2]:
        return "observed k/k", int(observed[1])
    known = UnknownName("figure", shown, (*_RATES, *_AMOUNTS))
    raise InvalidOption(f"The requirement {text!r} can't be read: {known}")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
