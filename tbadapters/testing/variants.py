"""Other valid values for an argument: what an agent could have given instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from tbadapters.core.state import Row, State
from tbadapters.core.values import canonical

_IDS_TRIED = 12
_DAYS = (1, -1, 7)


def variants(value: Any, schema: Mapping[str, Any], state: State, rng: Random) -> Iterator[tuple[str, Any]]:
    """Yield other values for an argument, the likeliest to be accepted first; the tools have the last word.

    Args:
        value: The argument's value.
        schema: Its JSON schema.
        state: The task's initial records: where ids and values of the same kind are found.
        rng: Decides the order.

    Yields:
        (path inside the argument, ``""`` for the argument itself; the whole argument with that part changed).
    """
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        for name, item in value.items():
            for path, other in variants(item, properties.get(name, {}), state, rng):
                yield f".{name}{path}", {**value, name: other}
    elif isinstance(value, list):
        yield from _list_variants(value, schema, state, rng)
    else:
        seen = {canonical(value)}
        for other in _scalar_variants(value, schema, state, rng):
            if canonical(other) not in seen:
                seen.add(canonical(other))
                yield "", other


def choices(schema: Mapping[str, Any]) -> list[Any]:
    """Return the values that a schema enumerates, also inside ``anyOf``; empty where it does not."""
    if "const" in schema:
        return [schema["const"]]
    inner = [item for part in schema.get("anyOf", []) for item in choices(part)]
    return [*schema.get("enum", []), *inner]


def holders(value: Any, state: State) -> list[str]:
    """Return the tables that have a row of this key."""
    return [table for table, rows in state.tables.items() if str(value) in rows] if _may_be_key(value) else []


def _may_be_key(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _list_variants(
    value: Sequence[Any], schema: Mapping[str, Any], state: State, rng: Random
) -> Iterator[tuple[str, Any]]:
    for place, item in enumerate(value):
        for path, other in variants(item, schema.get("items", {}), state, rng):
            if other not in value:
                yield f"[{place}]{path}", [*value[:place], other, *value[place + 1 :]]
    if len(value) > 1:
        yield "", list(value[:-1])


def _scalar_variants(value: Any, schema: Mapping[str, Any], state: State, rng: Random) -> Iterator[Any]:
    listed = choices(schema)
    if listed:
        yield from rng.sample(listed, len(listed))
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from _ids(value, state, rng)
        yield from _numbers(value)
    elif isinstance(value, str):
        ids = list(_ids(value, state, rng))
        yield from ids or _texts(value, state, rng)


def _ids(value: str | float, state: State, rng: Random) -> Iterator[str | int]:
    for table in holders(value, state):
        keys: list[str] = sorted(key for key in state.tables[table] if key != str(value))
        for key in rng.sample(keys, min(_IDS_TRIED, len(keys))):
            yield int(key) if isinstance(value, int) else key


def _numbers(value: float) -> Iterator[float]:
    yield from (value + 1, value - 1, value + 10, value - 10, value * 2)
    if value % 2 == 0:
        yield value // 2
    if isinstance(value, float):
        yield from (round(value + 0.01, 2), round(value - 0.01, 2), round(value / 2, 2))


def _texts(value: str, state: State, rng: Random) -> Iterator[str]:
    yield from _moments(value)
    known = sorted({other for column in _columns_with(value, state) for other in column})
    yield from rng.sample(known, min(_IDS_TRIED, len(known)))
    digits = [match.start() for match in re.finditer(r"\d", value)]
    for place in reversed(digits):
        yield f"{value[:place]}{(int(value[place]) + 1) % 10}{value[place + 1 :]}"
    yield f"{value} II"
    yield f"{value}x"


def _moments(value: str) -> Iterator[str]:
    for days in _DAYS:
        with suppress(ValueError, OverflowError):
            if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
                yield (date.fromisoformat(value) + timedelta(days=days)).isoformat()
            elif re.match(r"\d{4}-\d{2}-\d{2}T", value):
                yield (datetime.fromisoformat(value) + timedelta(days=days)).isoformat()


def _columns_with(value: str, state: State) -> Iterator[set[str]]:
    """Yield the texts of each column that holds ``value``."""
    for rows in state.tables.values():
        columns: dict[str, set[str]] = {}
        for row in rows.values():
            for column, other in _row_texts(row):
                columns.setdefault(column, set()).add(other)
        yield from (texts for texts in columns.values() if value in texts)


def _row_texts(row: Row) -> Iterator[tuple[str, str]]:
    return ((column, value) for column, value in row.items() if isinstance(value, str))
