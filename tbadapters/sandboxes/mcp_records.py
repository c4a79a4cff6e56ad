"""Records in what MCP servers report of them: each list of objects that have an ``id`` is a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tbadapters.core.errors import SuiteError
from tbadapters.core.state import State

Rows = Sequence[Mapping[str, Any]]


def tables_of(effects: Mapping[str, Any]) -> State:
    """Return the rows in what servers report; whatever is in no such list is left out.

    Args:
        effects: Server -> what it reports. A table is named by its server, where there are several, and its name there.
    """
    tables: dict[str, dict[str, Mapping[str, Any]]] = {}
    for server, reported in effects.items():
        for name, rows in _tables_in(reported):
            tables[f"{server}.{name}" if len(effects) > 1 else name] = {str(row["id"]): row for row in rows}
    return State(tables, effects)


def tables_to_grade(effects: Mapping[str, Any]) -> State:
    """Return the rows in what servers report, where nothing else is graded.

    Raises:
        SuiteError: a server reports something that has no table: all states would be equal, and every trial would pass.
    """
    for server, reported in effects.items():
        if reported and not any(_tables_in(reported)):
            raise SuiteError(
                f"The effects of the server {server!r} hold no list of objects with an id: say by state_of= how its "
                "records are read."
            )
    return tables_of(effects)


def _tables_in(reported: Any) -> Iterator[tuple[str, Rows]]:
    for name, rows in reported.items() if isinstance(reported, Mapping) else ():
        if isinstance(rows, list) and all(isinstance(row, Mapping) and "id" in row for row in rows):
            yield name, rows
