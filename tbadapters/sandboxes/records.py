"""What a suite's tool works on: the records of one open sandbox."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.schema import COUNTERS, Schema, insert_sql, quoted

Key = str | int | tuple[str | int, ...]
_FIRST_ID = 9001
_NEXT_ID = (
    f"INSERT INTO {COUNTERS} VALUES (?, {_FIRST_ID}) ON CONFLICT (prefix) DO UPDATE SET last = last + 1 RETURNING last"  # noqa: S608  constants
)


class Records:
    """A thin wrapper over one sandbox's database; the first parameter of every tool of a SQLite suite.

    What a tool does through it is one transaction: an error leaves nothing behind.

    Attributes:
        now: The task's clock, frozen, as ISO text. Never use the machine's clock or SQLite's.
    """

    def __init__(self, connection: sqlite3.Connection, schema: Schema, now: str) -> None:
        self._connection = connection
        self._schema = schema
        self.now = now

    def one(self, sql: str, *params: Any) -> dict[str, Any] | None:
        """Return the first row of a query, or None."""
        cursor = self._connection.execute(sql, params)
        row = cursor.fetchone()
        return None if row is None else _as_dict(cursor, row)

    def all(self, sql: str, *params: Any) -> list[dict[str, Any]]:
        """Return all rows of a query. Say ``ORDER BY``: an agent must read the same twice."""
        cursor = self._connection.execute(sql, params)
        return [_as_dict(cursor, row) for row in cursor]

    def run(self, sql: str, *params: Any) -> int:
        """Execute a statement and return the number of rows that it touched."""
        return self._connection.execute(sql, params).rowcount

    def get(self, table: str, key: Key) -> dict[str, Any]:
        """Return the row of this primary key (a tuple, where the key is composite).

        Raises:
            ToolError: there is none; the agent reads ``There is no card 'X'.``
        """
        known = self._schema.table(table)
        row = self.one(f"{known.select} WHERE {known.where}", *_parts(key))
        if row is None:
            raise self._absent(table, key)
        return row

    def insert(self, table: str, **columns: Any) -> dict[str, Any]:
        """Insert a row and return it, defaults filled in."""
        sql = insert_sql(self._schema.table(table), columns)
        (key,) = self._connection.execute(sql, tuple(columns.values())).fetchall()
        return self.get(table, key)

    def update(self, table: str, key: Key, **columns: Any) -> dict[str, Any]:
        """Set columns of the row of this primary key and return the whole row.

        Raises:
            ToolError: there is no such row.
        """
        if not columns:
            return self.get(table, key)
        setters = ", ".join(f"{quoted(name)} = ?" for name in columns)
        known = self._schema.table(table)
        returned = ", ".join(map(quoted, known.key))
        sql = f"UPDATE {quoted(table)} SET {setters} WHERE {known.where} RETURNING {returned}"  # noqa: S608  identifiers are quoted
        found = self._connection.execute(sql, (*columns.values(), *_parts(key))).fetchall()
        if not found:
            raise self._absent(table, key)
        return self.get(table, found[0])

    def delete(self, table: str, key: Key) -> None:
        """Delete the row of this primary key.

        Raises:
            ToolError: there is no such row.
        """
        where = self._schema.table(table).where
        if not self.run(f"DELETE FROM {quoted(table)} WHERE {where}", *_parts(key)):  # noqa: S608  identifiers are quoted
            raise self._absent(table, key)

    def new_id(self, prefix: str) -> str:
        """Return the next id of this prefix: ``TKT-9001``, ``TKT-9002``, ... in every sandbox anew."""
        (last,) = self._connection.execute(_NEXT_ID, (prefix,)).fetchall()[0]
        return f"{prefix}-{last}"

    def _absent(self, table: str, key: Key) -> ToolError:
        shown = ", ".join(repr(part) for part in _parts(key))
        return ToolError(f"There is no {singular(table)} {shown}.")


def singular(table: str) -> str:
    """Return a table's name as the word for one of its rows: ``identity_checks`` gives ``identity check``."""
    words = table.replace("_", " ")
    for plural, one in ((r"ies$", "y"), (r"(ss|x|ch|sh|z)es$", r"\1"), (r"(?<!s)s$", "")):
        changed = re.sub(plural, one, words)
        if changed != words:
            return changed
    return words


def _parts(key: Key) -> tuple[str | int, ...]:
    return key if isinstance(key, tuple) else (key,)


def _as_dict(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}
