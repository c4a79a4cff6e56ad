"""The records of a backend, and what differs between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Scalar = str | int | float | bool | None
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
        references: Column -> table whose key it holds; rewritten when that table's created rows are matched.
        money: Columns compared as decimals.
    """

    natural_key: tuple[str, ...] = ()
    free_text: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()
    references: Mapping[str, str] = field(default_factory=dict)
    money: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """Tables of rows by key: ``tables[table][key][column]``.

    A key is the primary key's text; the parts of a composite key are joined by ``|``.
    """

    tables: Mapping[str, Mapping[str, Row]]


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
