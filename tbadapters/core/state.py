"""The records of a backend, and what differs between two of them.

How a field of a record that was there before counts (i: initial, f: final, e: expected):

    f is e                     nothing
    f is not e, e is i         unexpected     it should have stayed as it was
    f is not e, f is i         missing        it should have changed
    all three differ           wrong_value    it was right to change it, to another value

Created rows are matched first (``matching.py``); a matched one can hold wrong values, an unmatched one is missing or
unexpected as a whole. Whoever acts on another record than the right one thus leaves a missing and an unexpected effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tbadapters.core.matching import View, compared, created_rows, match_created, own_names, unlike
from tbadapters.core.tools import Change

Row = Mapping[str, Any]
EffectKind = Literal["wrong_value", "missing", "unexpected"]


@dataclass(frozen=True, slots=True)
class TableRules:
    """How the rows of one table are compared.

    Attributes:
        natural_key: Columns by which created rows of two states are matched, since their ids are counters. They
            name which record is meant (the customer, the account), not a value that may be wrong. Empty: by key.
        free_text: Columns that are written in the agent's own words: not compared.
        volatile: Columns that no one can be right about (timestamps, counters): not compared.
        references: Column -> table whose key it holds (``*``: any table's); rewritten when that table's created rows
            are matched.
        money: Columns compared as decimals.
        key: Columns of the primary key. In created rows that are matched by natural key they are counters and are not
            compared, unless they are references or part of the natural key.
    """

    natural_key: tuple[str, ...] = ()
    free_text: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()
    references: Mapping[str, str] = field(default_factory=dict)
    money: frozenset[str] = frozenset()
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """Tables of rows by key: ``tables[table][key][column]``.

    A key is the primary key's text; the parts of a composite key are joined by ``|`` (``core/keys.py``).

    Attributes:
        tables: The rows.
        raw: What they were read from, where the backend reports more than rows; for the suite's own grader.
    """

    tables: Mapping[str, Mapping[str, Row]]
    raw: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Effect:
    """One way in which a final state differs from the expected one. The classes may overlap in a trial.

    Attributes:
        kind: ``wrong_value`` (the right record, another value), ``missing`` (an expected change did not happen) or
            ``unexpected`` (something was changed, created or deleted that should not have been).
        table: The table.
        key: The row's key in the final state (in the expected state for a missing row).
        column: The column, or None for a whole row.
        initial: Value (or whole row) before the attempt, None where there was none.
        final: Value (or whole row) after it.
        expected: Value (or whole row) that was right.
        caused_by: Index of the tool call that did it, or None.
        golden: Index of the golden action whose effect is missing or wrong, or None.
    """

    kind: EffectKind
    table: str
    key: str
    column: str | None = None
    initial: Any = None
    final: Any = None
    expected: Any = None
    caused_by: int | None = None
    golden: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the effect as JSON-like data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def compare(
    initial: State, final: State, expected: State, rules: Mapping[str, TableRules] | None = None
) -> tuple[Effect, ...]:
    """Return how a final state differs from the expected one, given the state that both came from.

    Args:
        initial: The clean backend.
        final: What an attempt left.
        expected: What is right.
        rules: table -> how it is compared; a table without rules is compared by key, all columns.
    """
    return tuple(difference.effect for difference in differences(initial, final, expected, rules))


def changes(before: State, after: State) -> tuple[Change, ...]:
    """Return the fields that differ between a backend's records at two times; a row that came or went is one change."""
    found: list[Change] = []
    for name in dict.fromkeys([*before.tables, *after.tables]):
        old_rows, rows = before.tables.get(name, {}), after.tables.get(name, {})
        if rows == old_rows:
            continue
        for key in dict.fromkeys([*old_rows, *rows]):
            old, new = old_rows.get(key), rows.get(key)
            if old is None or new is None:
                found.append(Change(name, key, None))
            else:
                columns = dict.fromkeys([*old, *new])
                found += [Change(name, key, column) for column in columns if new.get(column) != old.get(column)]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Difference:
    """An effect, and the key by which the expected state knows the row."""

    effect: Effect
    expected_key: str


def differences(
    initial: State, final: State, expected: State, rules: Mapping[str, TableRules] | None = None
) -> list[Difference]:
    """Return what ``compare`` returns, with the rows' keys in the expected state."""
    tables = list(dict.fromkeys([*initial.tables, *expected.tables, *final.tables]))
    complete = {table: (rules or {}).get(table, TableRules()) for table in tables}
    pairs = match_created(initial, final, expected, complete)
    left = View(complete, created_rows(initial, final), pairs)
    right = View(complete, created_rows(initial, expected), own_names(pairs))
    return [d for table in tables for d in _table_differences(_Table(table, initial, final, expected, left, right))]


@dataclass(frozen=True, slots=True)
class _Table:
    """One table in the three states."""

    name: str
    initial: State
    final: State
    expected: State
    left: View
    right: View

    def rows(self, state: State) -> Mapping[str, Row]:
        return state.tables.get(self.name, {})

    def differing(self, final: Row, expected: Row, *, created: bool) -> Iterator[str]:
        """Yield the columns in which a row of the final and of the expected state differ."""
        for column in compared(self.left.rules[self.name], dict.fromkeys([*expected, *final]), created=created):
            if unlike(self.left.read(self.name, final, column), self.right.read(self.name, expected, column)):
                yield column


def _table_differences(table: _Table) -> Iterator[Difference]:
    finals, expecteds = table.rows(table.final), table.rows(table.expected)
    for key, before in table.rows(table.initial).items():
        for effect in _kept_row(table, key, before, finals.get(key), expecteds.get(key)):
            yield Difference(effect, key)
    pairs = table.left.names.get(table.name, {})
    matched = {str(expected_key) for expected_key in pairs.values()}
    for key, row in table.left.created.get(table.name, {}).items():
        if key not in pairs:
            yield Difference(Effect("unexpected", table.name, key, final=row), key)
            continue
        right_key = str(pairs[key])
        right = expecteds[right_key]
        for column in table.differing(row, right, created=True):
            effect = Effect("wrong_value", table.name, key, column, None, row.get(column), right.get(column))
            yield Difference(effect, right_key)
    for key, row in table.right.created.get(table.name, {}).items():
        if key not in matched:
            yield Difference(Effect("missing", table.name, key, expected=row), key)


def _kept_row(table: _Table, key: str, before: Row, final: Row | None, expected: Row | None) -> Iterator[Effect]:
    """Yield the effects on a row that was there before."""
    if expected is None:
        if final is not None:
            yield Effect("missing", table.name, key, None, before, final, None)
        return
    if final is None:
        yield Effect("unexpected", table.name, key, None, before, None, expected)
        for column in table.differing(before, expected, created=False):
            yield Effect("missing", table.name, key, column, before.get(column), None, expected.get(column))
        return
    if final == before == expected:
        return
    for column in table.differing(final, expected, created=False):
        changed = column in table.differing(final, before, created=False)
        should = column in table.differing(before, expected, created=False)
        kind: EffectKind = "wrong_value" if changed and should else "unexpected" if changed else "missing"
        yield Effect(kind, table.name, key, column, before.get(column), final.get(column), expected.get(column))
