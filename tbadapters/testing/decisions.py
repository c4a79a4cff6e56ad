"""Whether two derivations of a task's outcome agree: its golden actions, and its workflow's own rule."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from tbadapters.core.grading import Outcome
from tbadapters.core.state import Row, State, TableRules
from tbadapters.core.values import canonical


def disagreement(outcome: Outcome, initial: State, expected: State, rules: Mapping[str, TableRules]) -> str | None:
    """Return one sentence about where an outcome and an expected end state differ, or None where they agree.

    Both must name the same graded fields of the records that were there, and the same created rows.

    Args:
        outcome: What the rule decided.
        initial: The clean backend.
        expected: What the golden actions made of it.
        rules: How each table is compared.
    """
    for table, rows in expected.tables.items():
        table_rules = rules.get(table, TableRules())
        before = initial.tables.get(table, {})
        for key, row in before.items():
            fault = _kept_row(
                f"{table} {key}", row, rows.get(key), outcome.rows.get(table, {}).get(key, {}), table_rules
            )
            if fault:
                return fault
        unknown = [key for key in outcome.rows.get(table, {}) if key not in before]
        if unknown:
            return f"the rule changes {table} {unknown[0]}, which does not exist"
        created = {key: row for key, row in rows.items() if key not in before}
        fault = _created_rows(table, created, [c for t, c in outcome.created if t == table], table_rules)
        if fault:
            return fault
    named = {*outcome.rows, *(table for table, _ in outcome.created)}
    absent = sorted(named - set(expected.tables))
    return f"the rule names a table {absent[0]!r} that does not exist" if absent else None


def _kept_row(
    place: str, before: Row, after: Row | None, decided: Mapping[str, Any] | None, rules: TableRules
) -> str | None:
    """Return where a row that was there before differs from what the rule decides for it."""
    if after is None or decided is None:
        if after is None and decided is None:
            return None
        return f"{place}: the rule {'keeps' if after is None else 'deletes'} it, the golden actions do not"
    for column in after:
        if column in rules.free_text | rules.volatile:
            continue
        is_right = decided.get(column, before.get(column))
        if _read(is_right, column, rules) != _read(after[column], column, rules):
            return f"{place} {column}: the rule says {is_right!r}, the golden actions lead to {after[column]!r}"
    unknown = [column for column in decided if column not in after]
    return f"{place}: the rule names a column {unknown[0]!r} that does not exist" if unknown else None


def _created_rows(
    table: str, created: Mapping[str, Row], decided: list[Mapping[str, Any]], rules: TableRules
) -> str | None:
    """Return which created row only one of the two derivations knows."""
    free = dict(created)
    for columns in sorted(decided, key=len, reverse=True):  # the most definite first
        fitting = next((key for key, row in free.items() if _fits(row, columns, rules)), None)
        if fitting is None:
            return (
                f"{table}: the rule creates {dict(columns)}, the golden actions create {list(map(dict, free.values()))}"
            )
        del free[fitting]
    return f"{table}: only the golden actions create {dict(next(iter(free.values())))}" if free else None


def _fits(row: Row, columns: Mapping[str, Any], rules: TableRules) -> bool:
    return all(
        column in row and _read(row[column], column, rules) == _read(value, column, rules)
        for column, value in columns.items()
    )


def _read(value: Any, column: str, rules: TableRules) -> Hashable:
    """Return a value in a form that can be compared; a database may keep true and false as 1 and 0."""
    return canonical(int(value) if isinstance(value, bool) else value, money=column in rules.money)
