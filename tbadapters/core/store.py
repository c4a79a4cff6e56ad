"""The run folder: a manifest, and an append-only record of attempts that survives a kill at any moment.

<utc>_<suite>_<agent>_<id>/
  manifest.json   what the run is; a resume with other settings is refused
  run.db          SQLite: one row an attempt, committed with its transcript before the trial counts
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
from anyio import to_thread

from tbadapters.core.errors import ResumeMismatch, UnusableFolder
from tbadapters.core.locks import folder_lock
from tbadapters.core.records import AttemptRecord
from tbadapters.core.redaction import redacted, redacted_data
from tbadapters.core.run_db import ADD, COPY, SCHEMA, DamagedRecords, LostRecords, copy_of, mend, read_all, row_of

IMPORTED = "imported "  # how the suite's digest of an imported run begins
_UNWRITABLE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})


def new_folder(parent: Path, *parts: str) -> Path:
    """Create ``parent/<utc>_<parts>_<id>`` and return it.

    Raises:
        UnusableFolder: it can't be created.
    """
    utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    name = "_".join([utc, *(_safe(redacted(part)) for part in parts), secrets.token_hex(3)])
    folder = parent / name
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UnusableFolder(
            f"The run folder {folder} can't be created ({error.strerror}): choose another with out=."
        ) from error
    return folder


def _safe(part: str) -> str:
    """Return text as a part of a folder's name that can't lead out of it."""
    return re.sub(r"[^A-Za-z0-9.-]+", "-", part).strip("-.")[:60] or "unnamed"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a run folder.

    Raises:
        UnusableFolder: there is none, or it can't be read.
    """
    path = folder / "manifest.json"
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
    except OSError as error:
        raise UnusableFolder(f"{folder} is no run folder: it has no readable manifest.json.") from error
    except ValueError as error:
        raise UnusableFolder(f"{path} is damaged: {error}.") from error
    return manifest


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a run folder's manifest, without keys and passwords."""
    (folder / "manifest.json").write_text(json.dumps(redacted_data(manifest), indent=2, sort_keys=True) + "\n")


def refuse_imported(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that was made elsewhere.

    Raises:
        ResumeMismatch: it is one.
    """
    if str(manifest.get("settings", {}).get("suite_digest", "")).startswith(IMPORTED):
        raise ResumeMismatch(
            f"{folder} can't be resumed: its trials were imported, and what their agent was is not known. "
            "Evaluate the agent in a new run, and compare the two."
        )


def check_resume(folder: Path, settings: Mapping[str, Any], *, suite_options: Mapping[str, Any] | None = None) -> None:
    """Compare the settings of a run folder with those of the run that resumes it.

    Args:
        folder: The run folder.
        settings: Those of the run that resumes it.
        suite_options: What its suite was loaded with; None: not known.

    Raises:
        ResumeMismatch: they differ; the sentence names each difference.
        UnusableFolder: it is no run folder.
    """
    manifest = read_manifest(folder)
    refuse_imported(folder, manifest)
    before, now = dict(manifest.get("settings", {})), redacted_data(json.loads(json.dumps(settings)))
    if suite_options is not None:
        before["suite_options"] = manifest.get("suite_options", {})
        now["suite_options"] = redacted_data(json.loads(json.dumps(dict(suite_options), default=repr)))
    differing = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    if differing and differing != ["suite_options"]:  # options that make no difference may be others
        shown = ", ".join(f"{name}: {before.get(name)!r} then, {now.get(name)!r} now" for name in differing)
        raise ResumeMismatch(
            f"{folder} can't be resumed with other settings ({shown}): use the same, or start a new run."
        )


class Store:
    """The attempts of one run folder, open for writing."""

    def __init__(self, folder: Path, database: aiosqlite.Connection) -> None:
        self.folder = folder
        self._database = database
        self._one_commit = anyio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(cls, folder: Path) -> AsyncIterator[Store]:
        """Open a run folder's record of attempts; only one process may.

        A damaged one is mended first: what can be read of it is kept.

        Raises:
            UnusableFolder: it can't be written, or another process has it open.
        """
        with folder_lock(folder):
            async with AsyncExitStack() as stack:
                with _readable(folder):
                    await to_thread.run_sync(mend, folder / "run.db")
                    database = await stack.enter_async_context(aiosqlite.connect(folder / "run.db"))
                    await database.execute("PRAGMA journal_mode = WAL")
                    await database.execute("PRAGMA synchronous = FULL")
                    for statement in SCHEMA:
                        await database.execute(statement)
                    await database.commit()
                yield cls(folder, database)

    async def add(self, record: AttemptRecord) -> None:
        """Commit one attempt with its transcript.

        Raises:
            UnusableFolder: it can't be written (the disk is full), or this attempt was committed before.
        """
        row = row_of(record.to_dict())
        async with self._one_commit:
            await self._commit(row)

    async def _commit(self, row: Sequence[Any]) -> None:
        with _readable(self.folder):
            try:
                await self._database.execute(ADD, row)
                await self._database.execute(COPY, copy_of(row))
                await self._database.commit()
            except sqlite3.Error:
                await self._database.rollback()  # or the next commit would keep half of this one
                raise

    async def records(self) -> list[AttemptRecord]:
        """Return all attempts, by task, trial and attempt."""
        return await to_thread.run_sync(read_records, self.folder)


def read_records(folder: Path) -> list[AttemptRecord]:
    """Return all attempts of a run folder, which may be open elsewhere.

    Raises:
        UnusableFolder: it has no readable record, or a part of it is damaged.
    """
    path = folder / "run.db"
    if not path.is_file():
        raise UnusableFolder(f"{folder} holds no run.db: nothing was recorded there.")
    with _readable(folder):
        try:
            rows = _rows(path)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _UNWRITABLE:
                raise
            rows = _rows_of_copy(path)
    return [AttemptRecord.from_dict(row) for row in rows]


def _rows(path: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as database:
        return read_all(database)


def _rows_of_copy(path: Path) -> list[dict[str, Any]]:
    """Read a database that lies where nothing can be written: SQLite wants files beside it even for reading.

    The copy has the write-ahead log too, in which the last attempts of a killed run may be.
    """
    with tempfile.TemporaryDirectory() as temporary:
        for part in (path, path.with_name(f"{path.name}-wal")):
            if part.is_file():
                shutil.copyfile(part, Path(temporary) / part.name)
        return _rows(Path(temporary) / path.name)


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, DamagedRecords, OSError) as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if isinstance(error, DamagedRecords) or code == sqlite3.SQLITE_CORRUPT:
            mend = "resume the run, which keeps all of it that can be read"
            raise UnusableFolder(f"{folder / 'run.db'} is damaged ({error}): {mend}.") from error
        if isinstance(error, LostRecords) or code == sqlite3.SQLITE_NOTADB:
            mend = "put a copy of the file back, or start a new run; reports that are in the folder stay as they are"
            raise UnusableFolder(
                f"{folder / 'run.db'} can't be used: its first page is damaged ({error}): {mend}."
            ) from error
        raise UnusableFolder(f"{folder / 'run.db'} can't be used: {error}.") from error
