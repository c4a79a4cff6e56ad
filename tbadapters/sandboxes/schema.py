"""What a SQLite schema says about its tables, and a world of rows laid into it as an image to restore from."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tbadapters.core.errors import SuiteError
from tbadapters.core.keys import key_text
from tbadapters.core.state import State, TableRules

COUNTERS = "_tbadapters_counters"
_COUNTER_TABLE = f"CREATE TABLE {COUNTERS} (prefix TEXT PRIMARY KEY, last INTEGER NOT NULL) WITHOUT ROWID"


class RepeatedKey(ValueError):
    """Raised when two rows can't be told apart by the text of their keys: 1 and '1', or NULL twice, are keys in SQLite."""

    def __init__(self, table: str, key: str) -> None:
        super().__init__(f"two rows of {table} have the key {key!r}")


@dataclass(frozen=True, slots=True)
class Table:
    """One table.

    Attributes:
        name: Its name.
        columns: Its columns.
        key: The columns of its primary key.
        references: Column -> table whose key it holds.
        select: The query for all rows.
        where: The condition that finds a row by its key.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    references: dict[str, str]
    select: str
    where: str

    def key_of(self, row: Mapping[str, Any]) -> str:
        """Return a row's key as text."""
        return key_text([row[column] for column in self.key])


@dataclass(frozen=True, slots=True)
class Image:
    """A task's clean backend: the serialized database, its clock and the records that it holds."""

    data: bytes
    now: str
    state: State


def quoted(name: str) -> str:
    """Return a table's or column's name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


class Schema:
    """A schema that was read once: opens databases of it, and dumps their records.

    Args:
        sql: ``CREATE TABLE`` statements; every table needs a primary key.

    Raises:
        SuiteError: the SQL is wrong, or a table has no primary key.
    """

    def __init__(self, sql: str) -> None:
        self._sql = sql
        connection = self._create()
        try:
            names = connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
                " ORDER BY rowid"
            ).fetchall()
            self.tables = {name: _read_table(connection, name) for (name,) in names if name != COUNTERS}
            for table in self.tables.values():
                table.references.update(_references(connection, table, self.tables))
        finally:
            connection.close()

    def table(self, name: str) -> Table:
        """Return a table.

        Raises:
            SuiteError: no such table.
        """
        if name not in self.tables:
            raise SuiteError(f"The schema has no table {name!r}; it has {', '.join(self.tables)}.")
        return self.tables[name]

    def rules(self, declared: Mapping[str, TableRules]) -> dict[str, TableRules]:
        """Return every table's rules: the declared ones, completed with the keys and references of the schema.

        Raises:
            SuiteError: the rules name a table or a column that does not exist.
        """
        for name, rules in declared.items():
            known = set(self.table(name).columns)
            named = {*rules.natural_key, *rules.free_text, *rules.volatile, *rules.references, *rules.money}
            if named - known:
                raise SuiteError(f"The rules of {name!r} name no column of it: {', '.join(sorted(named - known))}.")
            for target in set(rules.references.values()) - {"*"}:
                self.table(target)
        complete = {}
        for name, table in self.tables.items():
            rules = declared.get(name, TableRules())
            complete[name] = replace(rules, key=table.key, references={**table.references, **rules.references})
        return complete

    def image(self, *worlds: Mapping[str, Any] | None) -> Image:
        """Return the image of a world; later worlds are laid over earlier ones (a row of the same key is replaced).

        Raises:
            SuiteError: rows do not fit the schema, or the world has no clock.
        """
        given = [world for world in worlds if world]
        clocks = [str(world["now"]) for world in given if world.get("now")]
        if not clocks:
            raise SuiteError('The world has no clock: give {"now": "2026-03-02T09:00:00", "tables": {...}}.')
        for world in given:
            if set(world) - {"now", "tables"}:
                raise SuiteError(f'A world holds "now" and "tables", not {", ".join(sorted(set(world)))}.')
        connection = self._create()
        try:
            self._fill(connection, self._laid_over([world.get("tables", {}) for world in given]))
            return Image(connection.serialize(), clocks[-1], self.dump(connection))
        except RepeatedKey as error:
            raise SuiteError(f"The world's rows can't be compared: {error}.") from error
        finally:
            connection.close()

    def restore(self, image: Image) -> sqlite3.Connection:
        """Return a new in-memory database that holds the image; transactions are the caller's."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.deserialize(image.data)
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def dump(self, connection: sqlite3.Connection) -> State:
        """Return all records.

        Raises:
            RepeatedKey: two rows of a table have the same key as text.
        """
        return State({name: _dump_table(connection, table) for name, table in self.tables.items()})

    def _create(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            connection.executescript(self._sql)
            connection.execute(_COUNTER_TABLE)
        except sqlite3.Error as error:
            connection.close()
            raise SuiteError(f"The schema is wrong: {error}") from error
        return connection

    def _laid_over(
        self, layers: Sequence[Mapping[str, Iterable[Mapping[str, Any]]]]
    ) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, dict[object, dict[str, Any]]] = {}
        for layer in layers:
            for name, given in layer.items():
                table, own = self.table(name), dict[object, dict[str, Any]]()
                for row in given:
                    whole_key = all(row.get(column) is not None for column in table.key)
                    key: object = table.key_of(row) if whole_key else object()
                    own[object() if key in own else key] = dict(row)  # twice in one world: the database shall refuse it
                rows[name] = {**rows.get(name, {}), **own}
        return {name: list(by_key.values()) for name, by_key in rows.items()}

    def _fill(self, connection: sqlite3.Connection, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("BEGIN")
        for name, table_rows in rows.items():
            for row in table_rows:
                try:
                    connection.execute(insert_sql(self.tables[name], row), tuple(row.values()))
                except sqlite3.Error as error:
                    raise SuiteError(f"A row of {name!r} does not fit the schema: {error}; row: {row}") from error
        connection.execute("COMMIT")
        orphan = connection.execute("PRAGMA foreign_key_check").fetchone()
        if orphan:
            raise SuiteError(
                f"A row of {orphan[0]!r} (row {orphan[1]}) refers to a row of {orphan[2]!r} that is not there."
            )


def insert_sql(table: Table, columns: Iterable[str]) -> str:
    """Return the statement that inserts a row and gives its key back."""
    names, key = list(columns), ", ".join(map(quoted, table.key))
    if not names:
        return f"INSERT INTO {quoted(table.name)} DEFAULT VALUES RETURNING {key}"  # noqa: S608  identifiers are quoted
    listed, marks = ", ".join(map(quoted, names)), ", ".join("?" * len(names))
    return f"INSERT INTO {quoted(table.name)} ({listed}) VALUES ({marks}) RETURNING {key}"  # noqa: S608  identifiers are quoted


def _read_table(connection: sqlite3.Connection, name: str) -> Table:
    info = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
    key = tuple(row[1] for row in sorted((r for r in info if r[5]), key=lambda r: r[5]))
    if not key:
        raise SuiteError(f"The table {name!r} has no primary key: its rows can't be compared.")
    columns = tuple(row[1] for row in info if row[6] != 1)
    select = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(name)}"  # noqa: S608  identifiers are quoted
    return Table(name, columns, key, {}, select, " AND ".join(f"{quoted(column)} = ?" for column in key))


def _references(connection: sqlite3.Connection, table: Table, tables: Mapping[str, Table]) -> dict[str, str]:
    """Return the columns that hold the whole key of another table, by its foreign keys."""
    links = connection.execute(f"PRAGMA foreign_key_list({quoted(table.name)})").fetchall()
    return {
        column: target
        for _, _, target, column, referred, *_ in links
        if target in tables and tables[target].key == (referred or tables[target].key[0],)
    }


def _dump_table(connection: sqlite3.Connection, table: Table) -> dict[str, dict[str, Any]]:
    columns = table.columns
    rows = [dict(zip(columns, values, strict=True)) for values in connection.execute(table.select)]
    if len(table.key) == 1:
        (key,) = table.key
        by_key = {str(row[key]): row for row in rows}
    else:
        by_key = {table.key_of(row): row for row in rows}
    if len(by_key) != len(rows):
        keys = Counter(table.key_of(row) for row in rows)
        raise RepeatedKey(table.name, keys.most_common(1)[0][0])
    return by_key
