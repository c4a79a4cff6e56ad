"""The published models of ThinkingBox-Bench v1.0: reference points beside a run of the very same tasks and trials.

They are figures of models, each under the reference harness's own agent; none has a published interval. Beside anything
but a canonical run (the same 507 tasks, 20 trials each, nothing left out or done in another way) they would compare what
is not comparable, so they are shown nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from tbadapters.core.result import RunResult

SUITE = "thinkingbox"


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """What is published of one model; rates are from 0 to 1.

    Attributes:
        name: As published.
        open_weights: Whether its weights are.
        pass_at_1: Over all tasks.
        by_domain: Domain -> pass@1.
        solved: Rate of the tasks solved at least once (pass@20), or None where it is not published.
        every: Rate of the tasks at observed 20/20, or None.
        exact: Whether ``every`` is published; else it is the published retention, of two digits, times pass@1.
    """

    name: str
    open_weights: bool
    pass_at_1: float
    by_domain: Mapping[str, float]
    solved: float | None
    every: float | None
    exact: bool

    @property
    def retention(self) -> float | None:
        """Observed 20/20 over pass@1."""
        return None if self.every is None else self.every / self.pass_at_1


@dataclass(frozen=True, slots=True)
class PublishedFailures:
    """How the failed trials of the published models looked, as shares: of all failed, and by class of the clean ones."""

    models: int
    failed: int
    looked_clean: float
    classes: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Published:
    """The published study.

    Attributes:
        source: Where the figures are from.
        tasks: Domain -> its number of tasks.
        trials: Trials of each task.
        models: The models, the highest pass@1 first.
        failures: How their failures looked.
    """

    source: str
    tasks: Mapping[str, int]
    trials: int
    models: tuple[PublishedModel, ...]
    failures: PublishedFailures


@cache
def published() -> Published:
    """Return the published figures, which are carried as data."""
    path = files("tbadapters.reports") / "data" / "thinkingbox_published.json"
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    tasks = {name: size for name, size in data["tasks"].items() if name != "total"}
    table = data["pass_at_1_percent"]
    models = [
        _model(name, row, table["columns"], data, open_weights=group == "open_weights")
        for group in ("proprietary", "open_weights")
        for name, row in table[group].items()
    ]
    models.sort(key=lambda model: -model.pass_at_1)
    return Published(data["source"], tasks, data["trials_per_task"], tuple(models), _failures(data["failures"]))


def beside(result: RunResult) -> Published | None:
    """Return the published figures if a run may stand beside them, else None.

    It may if it is of all the tasks, with as many trials, under their policy, without a note that something was not the
    canonical way, and nearly all of its trials have a verdict.
    """
    found = published()
    told = result.manifest.get("settings", {}).get("instructions", "append") == "append"
    same = (
        result.suite == SUITE
        and len(result.tasks) == sum(found.tasks.values())
        and result.trials_per_task == found.trials
    )
    return found if same and told and not result.notes and result.coverage.sufficient else None


def _model(
    name: str, row: list[float], columns: list[str], data: Mapping[str, Any], *, open_weights: bool
) -> PublishedModel:
    rates = {column: percent / 100 for column, percent in zip(columns, row, strict=True)}
    overall = rates.pop("overall")
    total = data["tasks"]["total"]
    told = data["consistency"].get(name, {})
    retention = data["retention_observed_20_of_20_over_pass_at_1"].get(name)
    solved, every = told.get("solved_at_least_once"), told.get("observed_20_of_20")
    if solved is None and "never_solved" in told:
        solved = total - told["never_solved"]
    share = every / total if every is not None else None if retention is None else retention * overall
    return PublishedModel(
        name, open_weights, overall, rates, None if solved is None else solved / total, share, every is not None
    )


def _failures(data: Mapping[str, Any]) -> PublishedFailures:
    names = {"wrong_value": "wrong_value", "unexpected": "unexpected_effect", "missing": "missing_effect"}
    classes = {kind: data[f"of_those_{name}_percent"] / 100 for kind, name in names.items()}
    return PublishedFailures(
        data["models"], data["failed_trials"], data["looked_clean_percent_of_failed"] / 100, classes
    )
