"""Whether anybody else changed a run folder while its run was under way.

An agent's process runs as the user who started the run, and may find and write the folder. What it writes there changes
no figure of this run, which come from what the run itself holds; but whoever reads the folder later must know.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tbadapters.core.errors import UnusableFolder
from tbadapters.core.records import AttemptRecord
from tbadapters.core.run_folder import undamaged
from tbadapters.core.store import read_manifest, read_records, write_manifest


def mended_changes(folder: Path, manifest: Mapping[str, Any], records: Iterable[AttemptRecord]) -> str | None:
    """Say in one sentence what others changed in a run folder, None where nothing; the manifest is put back.

    Args:
        folder: The run folder.
        manifest: What its manifest held when the run began.
        records: What the run has recorded.
    """
    changed = []
    try:
        same = read_manifest(folder) == manifest
    except UnusableFolder:
        same = False
    if not same:
        changed.append("manifest.json")
        write_manifest(folder, manifest)
    if not _recorded(folder, records):
        changed.append("run.db")
    if not changed:
        return None
    return (
        f"{' and '.join(changed)} of {folder} changed under the run's hands: somebody else, such as the agent's code, "
        "wrote there. The reports hold what the run saw; do not resume it."
    )


def _recorded(folder: Path, records: Iterable[AttemptRecord]) -> bool:
    try:
        with undamaged(folder):
            found = read_records(folder)
    except UnusableFolder:
        return False
    held = {(r.task, r.index, r.attempt): r.to_dict() for r in records}
    return len(found) == len(held) and all(held.get((r.task, r.index, r.attempt)) == r.to_dict() for r in found)
