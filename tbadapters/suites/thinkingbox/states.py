"""What a trial changed, compared by key with what its golden calls change: our own look at the records.

The servers answer for their effects with three states (initial, result, golden) and two hashes. The hash says whether
result and golden are the same and nothing else; the difference that the servers list beside it goes by position. Here
rows are compared by key and fields by name, restricted to the fields that the hash counts (``server_probes.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tbadapters.core.keys import key_text
from tbadapters.core.state import Difference, Row, State, differences

SERVER_PROBES = Path(__file__).with_name("server_probes.py")
"""The preparation file that every server of the benchmark is given."""
RULES, CHANGES = "thinkingbox_rules", "thinkingbox_changes"
STATES = ("initial_db_state", "result_db_state", "golden_db_state")
HASHES = ("result_db_hash", "golden_db_hash")

Place = tuple[str, str, str | None]
"""Table, key in the final state, column."""


@dataclass(frozen=True, slots=True)
class TableShape:
    """What counts in the rows of a table.

    Attributes:
        left_out: Fields that the hash leaves out.
        fields: The fields that count where further ones do not; None: all.
        key: The fields that make a row's key.
    """

    left_out: frozenset[str] = frozenset()
    fields: frozenset[str] | None = None
    key: tuple[str, ...] = ("id",)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> TableShape:
        """Return the shape that a server told of one table."""
        fields = data["fields"]
        return cls(frozenset(data["left_out"]), None if fields is None else frozenset(fields), tuple(data["key"]))

    def key_of(self, row: Row) -> str:
        """Return a row's key as text."""
        return key_text([row.get(name) for name in self.key])

    def counted(self, row: Row) -> dict[str, Any]:
        """Return what counts of a row, the order of plain lists left out."""
        return {
            name: in_order(value)
            for name, value in row.items()
            if name not in self.left_out and (self.fields is None or name in self.fields)
        }


Shapes = Mapping[str, TableShape]


def shapes_of(told: Mapping[str, Any]) -> dict[str, TableShape]:
    """Return the shapes that a server told, by table."""
    return {table: TableShape.of(data) for table, data in told.items()}


def in_order(value: Any) -> Any:
    """Return a value with its lists of plain values sorted, at any depth: their order means nothing."""
    if isinstance(value, Mapping):
        return {name: in_order(item) for name, item in value.items()}
    if isinstance(value, list):
        if all(isinstance(item, str | int | float) for item in value):
            return sorted(value, key=lambda item: (isinstance(item, str), item))
        return [in_order(item) for item in value]
    return value


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the result of a trial differs from the golden one, on all servers together.

    Attributes:
        found: The differences, by key and field.
        paths: Where in a row's field a difference lies, for those that lie inside of a field.
        hash_equal: What the servers' own hashes say; None where a server has none.
        compared: Whether every server told the three states.
    """

    found: tuple[Difference, ...]
    paths: Mapping[Place, tuple[str | int, ...]]
    hash_equal: bool | None
    compared: bool

    @property
    def agrees(self) -> bool:
        """Whether we and the hash say the same; true where there is nothing to compare."""
        return not self.compared or self.hash_equal is None or self.hash_equal == (not self.found)


def compare_effects(effects: Mapping[str, Any], shapes: Mapping[str, Shapes]) -> Comparison:
    """Return how result and golden state differ.

    Args:
        effects: What each server answered for its effects.
        shapes: What counts on each server; all fields of a table that is not named.
    """
    found: list[Difference] = []
    paths: dict[Place, tuple[str | int, ...]] = {}
    equal: list[bool | None] = []
    compared = bool(effects)
    for server, told in effects.items():
        states = [told.get(name) for name in STATES] if isinstance(told, Mapping) else [None]
        if not all(isinstance(state, Mapping) for state in states):
            compared = False
            continue
        hashes = [told.get(name) for name in HASHES]
        equal.append(None if None in hashes else hashes[0] == hashes[1])
        rows = _Unequal(shapes.get(server, {}), f"{server}." if len(effects) > 1 else "")
        rows.read(*states)
        found += differences(State(rows.initial), State(rows.final), State(rows.expected))
        paths |= rows.paths
    hash_equal = None if None in equal or not equal else all(equal)
    return Comparison(tuple(found), paths, hash_equal, compared)


@dataclass(slots=True)
class _Unequal:
    """The rows of one server in which result and golden state differ, in the three states.

    A field that holds fields is spread into one column each (``address.city``, ``lines[0].price``), as far as the
    three rows have the same structure.
    """

    shapes: Shapes
    prefix: str
    initial: dict[str, dict[str, Row]] = field(default_factory=dict)
    final: dict[str, dict[str, Row]] = field(default_factory=dict)
    expected: dict[str, dict[str, Row]] = field(default_factory=dict)
    paths: dict[Place, tuple[str | int, ...]] = field(default_factory=dict)

    def read(self, initial: Mapping[str, Any], final: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        """Take in three states, each table -> list of rows."""
        for table in dict.fromkeys([*final, *expected]):
            if final.get(table) != expected.get(table):
                shape = self.shapes.get(table, TableShape())
                states = [by_key(state.get(table) or [], shape) for state in (initial, final, expected)]
                for key in dict.fromkeys([*states[1], *states[2]]):
                    rows = [state.get(key) for state in states]
                    if rows[1] != rows[2]:
                        self._row(f"{self.prefix}{table}", key, rows, shape)

    def _row(self, table: str, key: str, states: Sequence[Row | None], shape: TableShape) -> None:
        rows = [None if row is None else shape.counted(row) for row in states]
        if rows[1] == rows[2]:
            return
        spread: list[dict[str, Any] | None] = [None if row is None else {} for row in rows]
        given = [row for row in rows if row is not None]
        for column in dict.fromkeys(name for row in given for name in row):
            for path, values in _spread((column,), [row.get(column) for row in given]):
                name = column_text(path)
                for row_columns, value in zip([one for one in spread if one is not None], values, strict=True):
                    row_columns[name] = value
                if len(path) > 1:
                    self.paths[table, key, name] = path
        for state, columns in zip((self.initial, self.final, self.expected), spread, strict=True):
            if columns is not None:
                state.setdefault(table, {})[key] = columns


def by_key(rows: Sequence[Row], shape: TableShape) -> dict[str, Row]:
    """Return the rows of a table by key; a key that is there twice gets a number."""
    found: dict[str, Row] = {}
    for row in rows:
        key = shape.key_of(row)
        number = 1
        while key in found:
            number += 1
            key = f"{shape.key_of(row)} (#{number})"
        found[key] = row
    return found


def column_text(path: Sequence[str | int]) -> str:
    """Return the place of a value in a row as text."""
    first, *rest = path
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)


def _spread(path: tuple[str | int, ...], values: Sequence[Any]) -> list[tuple[tuple[str | int, ...], Sequence[Any]]]:
    """Return the values at a place, one by one where all of them have the same parts."""
    first = values[0]
    parts: list[str | int] = []
    if isinstance(first, Mapping) and all(isinstance(v, Mapping) and set(v) == set(first) for v in values):
        parts = list(first)
    elif isinstance(first, list) and any(isinstance(item, Mapping) for item in first):
        parts = list(range(len(first))) if all(isinstance(v, list) and len(v) == len(first) for v in values) else []
    if not parts:
        return [(path, values)]
    return [found for part in parts for found in _spread((*path, part), [value[part] for value in values])]


def at(row: Row | None, path: Sequence[str | int]) -> Any:
    """Return the value at a place in a row; None where there is none."""
    value: Any = row
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value
