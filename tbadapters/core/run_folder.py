"""A run folder read back: the result of what is recorded there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tbadapters.core.errors import UnusableFolder
from tbadapters.core.records import AttemptRecord
from tbadapters.core.result import RunResult, TaskInfo
from tbadapters.core.store import read_manifest, read_records


def load_result(folder: Path) -> RunResult:
    """Return the result of a run folder, finished or not.

    Raises:
        UnusableFolder: it is no run folder, or it is damaged.
    """
    return result_of(folder, read_manifest(folder), read_records(folder))


def result_of(
    folder: Path, manifest: Mapping[str, Any], records: Iterable[AttemptRecord], *, stopped: str | None = None
) -> RunResult:
    """Return the result of a run's manifest and attempts.

    Raises:
        UnusableFolder: the manifest lacks what a run needs.
    """
    deciding: dict[tuple[str, int], AttemptRecord] = {}
    faulted: list[AttemptRecord] = []
    for record in sorted(records, key=lambda r: r.attempt):
        before = deciding.get((record.task, record.index))
        if before is not None:
            faulted.append(before)
        deciding[record.task, record.index] = record
    try:
        settings = manifest["settings"]
        return RunResult(
            suite=settings["suite"],
            agent=settings["agent"],
            framework=settings["framework"],
            trials_per_task=settings["trials"],
            seed=settings["seed"],
            tasks=tuple(TaskInfo.from_dict(task) for task in manifest["tasks"]),
            records=tuple(deciding.values()),
            faulted=tuple(faulted),
            manifest=manifest,
            folder=folder,
            stopped=stopped,
        )
    except KeyError as error:
        raise UnusableFolder(f"The manifest of {folder} is damaged: it has no {error}.") from error
