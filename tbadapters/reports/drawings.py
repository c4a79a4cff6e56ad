"""Which figures of which runs stand in each drawing of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tbadapters.core.figures import Amount, Figures, known_cost
from tbadapters.core.records import AttemptRecord
from tbadapters.core.result import RunResult
from tbadapters.reports import text
from tbadapters.reports.charts import Whisker, rate_whisker
from tbadapters.reports.published import Published
from tbadapters.reports.scatter import Point, Scatter, scatter

_SURVIVING = (1.0, 0.75, 0.5, 0.25)


@dataclass(frozen=True, slots=True)
class Bar:
    """An amount beside others: ``share`` of the greatest, None where it is unknown or undefined."""

    name: str
    share: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Spending:
    """Where a run's US dollars went, None where a price is unknown; ``lost`` to attempts without a verdict."""

    passed: float | None
    failed: float | None
    lost: float | None

    @property
    def share_passed(self) -> float | None:
        """What passed trials took of what trials with a verdict took."""
        if self.passed is None or self.failed is None or not self.passed + self.failed:
            return None
        return self.passed / (self.passed + self.failed)


@dataclass(frozen=True, slots=True)
class Part:
    """The tasks that carry one tag; ``marks`` are (place from 0 to 100, words) of published models."""

    tag: str
    figures: Figures
    whisker: Whisker
    marks: tuple[tuple[float, str], ...]


def parts(result: RunResult, beside: Published | None = None) -> tuple[Part, ...]:
    """Return the parts of a run that say more than the run or a task does, the highest pass@1 first."""
    found = [(tag, f) for tag, f in result.by_tag.items() if 1 < f.observed_all.of < len(result.tasks)]
    found.sort(key=lambda item: -1.0 if item[1].pass_at_1.value is None else -1.0 - item[1].pass_at_1.value)
    return tuple(
        Part(tag, f, rate_whisker(f.pass_at_1.value, f.pass_at_1.interval), tuple(_marks(tag, f, beside)))
        for tag, f in found
    )


def _marks(tag: str, figures: Figures, beside: Published | None) -> Iterator[tuple[float, str]]:
    if beside is None or beside.tasks.get(tag) != figures.observed_all.of:
        return
    for model in beside.models:
        rate = model.by_domain[tag]
        yield round(100 * rate, 2), f"{model.name}: {text.percent(rate)}"


def survival(results: Mapping[str, RunResult], some: Sequence[Part] = (), beside: Published | None = None) -> Scatter:
    """Return a single trial's score against the share of tasks that pass every trial."""
    agents = [
        Point(
            name, f.pass_at_1.value, f.observed_all.rate, "agent", number, f.pass_at_1.interval, f.observed_all.interval
        )
        for number, name, f in _figures(results)
    ]
    within = [Point(p.tag, p.figures.pass_at_1.value, p.figures.observed_all.rate, "part") for p in some]
    models = [
        Point(m.name, m.pass_at_1, m.every, "published", about=not m.exact) for m in (beside.models if beside else ())
    ]
    return scatter([*agents, *within, *models], x="pass@1", y=f"observed {_k(results)}", shares=_SURVIVING)


def breadth(results: Mapping[str, RunResult], some: Sequence[Part] = (), beside: Published | None = None) -> Scatter:
    """Return the share of tasks that are ever solved against the share that always are."""
    agents = [
        Point(
            name, f.solved_at_least_once.rate, f.observed_all.rate, "agent", number,
            f.solved_at_least_once.interval, f.observed_all.interval,
        )
        for number, name, f in _figures(results)
    ]  # fmt: skip
    within = [
        Point(p.tag, p.figures.solved_at_least_once.rate, p.figures.observed_all.rate, "part")
        for p in some
        if p.figures.coverage.valid
    ]
    models = [
        Point(m.name, m.solved, m.every, "published", about=not m.exact) for m in (beside.models if beside else ())
    ]
    return scatter([*agents, *within, *models], x="solved at least once", y=f"observed {_k(results)}")


def bars(amounts: Iterable[tuple[str, Amount]]) -> tuple[Bar, ...]:
    """Return amounts of one unit beside each other, in their order."""
    listed = list(amounts)
    most = max((amount.value for _, amount in listed if amount.value), default=0.0)
    return tuple(
        Bar(name, amount.value / most if amount.value is not None and most else None, text.amount(amount))
        for name, amount in listed
    )


def spending(result: RunResult) -> Spending:
    """Return where a run's money went."""
    passed = [record for record in result.records if record.passed]
    failed = [record for record in result.records if record.passed is False]
    return Spending(_cost(passed), _cost(failed), _cost(result.without_verdict))


def _cost(records: Sequence[AttemptRecord]) -> float | None:
    return known_cost(records) if records else 0.0


def _figures(results: Mapping[str, RunResult]) -> Iterator[tuple[int, str, Figures]]:
    """Return number, name and figures of those with a trial that has a verdict: there is nothing to draw of others."""
    for number, (name, result) in enumerate(results.items()):
        if result.coverage.valid:
            yield number, name, result.figures


def _k(results: Mapping[str, RunResult]) -> str:
    ks = {result.trials_per_task for result in results.values()}
    return "/".join(2 * [str(ks.pop()) if len(ks) == 1 else "k"])
