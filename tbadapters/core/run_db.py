"""The file in which attempts are kept: SQLite in WAL mode, each record twice, on pages of its own, with a digest.

SQLite itself sees to it that a commit survives a kill and a loss of power. The second, packed copy is for what it can't
mend: a page that the disk gives back damaged. No single page takes a record with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tbadapters.core.logs import get_logger

log = get_logger(__name__)

SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS attempts (
  task TEXT NOT NULL,
  trial INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  verdict TEXT CHECK (verdict IN ('passed', 'failed')),
  end_reason TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (task, trial, attempt)
) STRICT
""",
    """
CREATE TABLE IF NOT EXISTS copies (
  attempt INTEGER PRIMARY KEY,
  digest BLOB NOT NULL,
  packed BLOB NOT NULL
) STRICT
""",
)
ADD = "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)"
COPY = "INSERT INTO copies VALUES (last_insert_rowid(), ?, ?)"
_ALL = "SELECT attempts.rowid, record FROM attempts ORDER BY task, trial, attempt"
_DIGESTS = "SELECT attempt, digest FROM copies"
_HAS_TABLE = "SELECT count(*) FROM sqlite_master WHERE name = ?"
_LAST = (
    "SELECT max(rowid) FROM attempts",
    "SELECT max(attempt) FROM copies",
    "SELECT count(*) FROM attempts",  # answered by the index
)
_VERDICTS = {"passed": True, "failed": False}


class DamagedRecords(Exception):
    """Raised when what is read is not what was once written, though SQLite finds nothing wrong."""


class LostRecords(sqlite3.DatabaseError):
    """Raised when nothing at all can be read of a file, not even how much there was."""


def row_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of an attempt's record."""
    verdict = (record["verdict"] or {}).get("passed")
    word = next((word for word, passed in _VERDICTS.items() if passed is verdict), None)
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=str)
    return record["task"], record["index"], record["attempt"], word, record["end_reason"], text


def copy_of(row: Sequence[Any]) -> tuple[bytes, bytes]:
    """Return digest and packed copy of the record in a row."""
    text = str(row[-1]).encode(errors="surrogatepass")
    return _digest(text), zlib.compress(text, 1)


def read_all(database: sqlite3.Connection) -> list[dict[str, Any]]:
    """Return all records, by task, trial and attempt.

    Raises:
        sqlite3.Error: a page is damaged.
        DamagedRecords: a record is not what was written.
    """
    return [json.loads(text) for text in _verified(database)]


def _verified(database: sqlite3.Connection) -> Iterator[str]:
    # A folder of before there were copies has none, and whoever only reads makes no table.
    copies = database.execute(_HAS_TABLE, ("copies",)).fetchone()[0]
    digests: dict[int, bytes] = dict(database.execute(_DIGESTS)) if copies else {}
    for number, text in database.execute(_ALL):
        written = digests.get(number)
        if written is not None and written != _digest(text.encode(errors="surrogatepass")):
            raise DamagedRecords(f"attempt {number} is not what was written")
        yield text


def salvage(database: sqlite3.Connection) -> tuple[list[dict[str, Any]], int]:
    """Return the records that can be read of a damaged file, one by one and from either copy; and how many can't."""
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    last = max(_tried(database, query) for query in _LAST)
    lost = 0
    for number in range(1, last + 1):
        record = next(_versions(database, number), None)
        if record is None:
            lost += 1
        else:
            found[record["task"], record["index"], record["attempt"]] = record
    return [found[key] for key in sorted(found)], lost


def _versions(database: sqlite3.Connection, number: int) -> Iterator[dict[str, Any]]:
    """Yield what can be read of an attempt's record, and is what was written."""
    digest = b""
    with suppress(sqlite3.Error, zlib.error, ValueError, TypeError):
        row = database.execute("SELECT digest, packed FROM copies WHERE attempt = ?", (number,)).fetchone()
        if row is not None:
            digest, text = bytes(row[0]), zlib.decompress(row[1])
            if _digest(text) == digest:
                yield json.loads(text)
    with suppress(sqlite3.Error, ValueError, TypeError, AttributeError):
        row = database.execute("SELECT record FROM attempts WHERE rowid = ?", (number,)).fetchone()
        if row is not None and (not digest or _digest(row[0].encode(errors="surrogatepass")) == digest):
            record = json.loads(row[0])
            if isinstance(record, dict) and {"task", "index", "attempt"} <= record.keys():
                yield record


def _tried(database: sqlite3.Connection, query: str) -> int:
    try:
        return int(database.execute(query).fetchone()[0] or 0)
    except sqlite3.Error:
        return 0


def mend(path: Path) -> None:
    """Where a file is damaged, put one in its place that holds all that can be read; keep the damaged one beside it.

    May be killed at any moment and called again. Nobody else may have the file open.

    Raises:
        sqlite3.Error: nothing can be read.
    """
    mended, damaged = path.with_name(f"{path.name}.mended"), path.with_name(f"{path.name}.damaged")
    if not mended.is_file():
        if not path.is_file() or path.stat().st_size == 0:
            return
        with closing(sqlite3.connect(path)) as database:
            if is_sound(database):
                return
            records, lost = salvage(database)
            if not records and not lost:  # not even how many there were
                raise LostRecords("nothing in it can be read")
        log.warning("run_db_mended", path=str(path), kept=len(records), lost=lost)
        _write(mended.with_suffix(".new"), records)
        mended.with_suffix(".new").replace(mended)
    for end in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.replace(f"{path}{end}", f"{damaged}{end}")  # noqa: PTH105  (with_name can't append)
    mended.replace(path)


def is_sound(database: sqlite3.Connection) -> bool:
    """Say whether all of a file can be read, and is what was written."""
    try:
        if database.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            return False
        if database.execute(_HAS_TABLE, ("attempts",)).fetchone()[0]:
            deque(_verified(database), maxlen=0)
    except DamagedRecords:
        return False
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        return False
    return True


def _write(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        for statement in SCHEMA:
            database.execute(statement)
        for record in records:
            row = row_of(record)
            database.execute(ADD, row)
            database.execute(COPY, copy_of(row))


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
