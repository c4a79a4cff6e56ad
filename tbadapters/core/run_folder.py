"""A run folder read back: the result of what is recorded there, and why the run ended early."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveInt, StrictStr, ValidationError

from tbadapters.core.cost import Price, price_table_version
from tbadapters.core.errors import UnknownName, UnusableFolder, describe
from tbadapters.core.figures import COVERAGE_FLOOR
from tbadapters.core.options import check_option
from tbadapters.core.records import AttemptRecord, repriced
from tbadapters.core.result import RunResult
from tbadapters.core.store import read_manifest, read_records
from tbadapters.core.task_info import TaskInfo

STOPPED = "stopped.txt"


class _Settings(BaseModel):
    """What is read of a manifest's settings."""

    suite: StrictStr
    suite_seed: int | None = None
    agent: StrictStr
    framework: StrictStr
    trials: PositiveInt
    seed: int
    limits: dict[str, float | None]


class _Task(BaseModel):
    id: StrictStr
    tags: list[str] = []
    end_states: dict[str, list[str]] = {}


class _Price(BaseModel):
    input: NonNegativeFloat
    cached_input: NonNegativeFloat | None
    output: NonNegativeFloat


class _Manifest(BaseModel):
    """What must be in a manifest for the run to be shown or resumed."""

    settings: _Settings
    name: StrictStr | None = None
    suite_source: str | None = None
    suite_options: dict[StrictStr, Any] = {}
    notes: list[StrictStr] = []
    tasks: list[_Task] = Field(min_length=1)
    prices: dict[str, _Price] = {}
    coverage_floor: float = Field(COVERAGE_FLOOR, ge=0, le=1)


def load_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run folder, with all in it that a run needs.

    Raises:
        UnusableFolder: it is no run folder, or its manifest is damaged.
    """
    manifest = read_manifest(folder)
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise UnusableFolder(f"The manifest of {folder} is damaged ({where}: {first['msg']}).") from error
    return manifest


def load_result(
    folder: str | PathLike[str], *, coverage_floor: float | None = None, prices: Mapping[str, Price] | None = None
) -> RunResult:
    """Return the result of a run folder, finished or not.

    Args:
        folder: The run folder.
        coverage_floor: The least share of planned trials with a verdict that allows a headline; None: the run's own.
        prices: Prices by model name, beside those that the run was given: every request is priced anew. None: what the
            requests cost is what it was when they were made.

    Raises:
        InvalidOption: the floor is not from 0 to 1, or a price is none.
        UnknownName: a price is of a model that no request of the run asked.
        UnusableFolder: it is no run folder, or it is damaged.
    """
    result = read_result(folder, coverage_floor=coverage_floor, prices=prices)
    check_priced(prices or {}, [result])
    return result


def check_priced(prices: Mapping[str, Price], results: Iterable[RunResult]) -> None:
    """Refuse a price that prices nothing: a model misspelt would keep the price that it has, without a word.

    Raises:
        UnknownName: none of the runs asked a model of that name.
    """
    asked = {model for result in results for model in result.price_bases()}
    for model in prices:
        if model not in asked:
            raise UnknownName("asked model", model, asked)


def read_result(
    folder: str | PathLike[str], *, coverage_floor: float | None, prices: Mapping[str, Price] | None
) -> RunResult:
    """Return the result of a run folder as ``load_result`` does, whoever's prices are given: those of several runs.

    Raises:
        InvalidOption: the floor is not from 0 to 1, or a price is none.
        UnusableFolder: it is no run folder, or it is damaged.
    """
    check_option("coverage_floor", coverage_floor)
    check_option("prices", prices or {})
    path = Path(folder)
    manifest = load_manifest(path)
    if coverage_floor is not None:
        manifest["coverage_floor"] = coverage_floor
    with undamaged(path):
        records = read_records(path)
        if prices:
            then = {model: Price(**price) for model, price in (manifest.get("prices") or {}).items()}
            records = [repriced(record, {**then, **prices}) for record in records]
            given = {model: price.to_dict() for model, price in {**then, **prices}.items()}
            manifest |= {"prices": given, "price_table": price_table_version()}
        return result_of(path, manifest, records, stopped=stop_reason(path))


@contextmanager
def undamaged(folder: Path) -> Iterator[None]:
    """Read what is recorded in a run folder.

    Raises:
        UnusableFolder: what is read there is not what was once written.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, sqlite3.Error) as error:
        raise UnusableFolder(f"The record of {folder} is damaged ({describe(error)}).") from error


def keep_stop_reason(folder: Path, reason: str | None) -> None:
    """Keep why the run ended early beside its record; None: it did not, or it goes on."""
    path = folder / STOPPED
    if reason is None:
        path.unlink(missing_ok=True)
    else:
        path.write_text(f"{reason}\n", encoding="utf-8", errors="replace")


def stop_reason(folder: Path) -> str | None:
    """Return why the run ended early, or None."""
    try:
        return (folder / STOPPED).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None


def result_of(
    folder: Path, manifest: Mapping[str, Any], records: Iterable[AttemptRecord], *, stopped: str | None = None
) -> RunResult:
    """Return the result of a run's manifest and attempts."""
    deciding: dict[tuple[str, int], AttemptRecord] = {}
    faulted: list[AttemptRecord] = []
    for record in sorted(records, key=lambda r: r.attempt):
        before = deciding.get((record.task, record.index))
        if before is not None:
            faulted.append(before)
        deciding[record.task, record.index] = record
    settings = manifest["settings"]
    return RunResult(
        suite=settings["suite"],
        agent=manifest.get("name") or settings["agent"],
        framework=settings["framework"],
        trials_per_task=settings["trials"],
        seed=settings["seed"],
        tasks=tuple(TaskInfo.from_dict(task) for task in manifest["tasks"]),
        records=tuple(deciding.values()),
        faulted=tuple(faulted),
        manifest=manifest,
        folder=folder,
        stopped=stopped,
        coverage_floor=manifest.get("coverage_floor", COVERAGE_FLOOR),
    )
