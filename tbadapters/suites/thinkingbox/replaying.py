"""Calls replayed one by one in a fresh session: which of them wrote, and what.

Nothing tells beforehand whether a call of the benchmark's tools writes: some read or write depending on an argument. So a
call writes if rows changed; that is looked up after each call, in the server's process where the probe is there, else
in its effects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from tbadapters.core.errors import Fault
from tbadapters.core.state import Row
from tbadapters.core.suite import Task
from tbadapters.core.tools import Change, ToolResult
from tbadapters.suites.thinkingbox.states import CHANGES, RULES, Shapes, TableShape, at, in_order, shapes_of


class Session(Protocol):
    """One attempt's session with a task's servers, as ``sandboxes/mcp.py`` opens it."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool."""
        ...

    async def effects(self) -> Mapping[str, Any]:
        """Return what each server answers for its effects."""
        ...

    async def probe(self, server: str, name: str, argument: Any = None) -> Any:
        """Run a probe in a server's process."""
        ...

    @property
    def init_results(self) -> Mapping[str, Any]:
        """What each server's init answered."""
        ...


class Sessions(Protocol):
    """What opens sessions."""

    def open(self, task: Task, *, once: bool = False) -> AbstractAsyncContextManager[Session]:
        """Open a session of a task, just initialised; ``once`` where it is not opened again."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that a call changed: None before for a created one, None after for a deleted one."""

    table: str
    key: str
    before: Row | None
    after: Row | None

    def touches(self, path: Sequence[str | int]) -> bool:
        """Say whether it changed the value at a place in the row; an empty path means the row as a whole."""
        whole = self.before is None or self.after is None
        return whole if not path else whole or at(self.before, path) != at(self.after, path)

    def counts(self, shape: TableShape) -> bool:
        """Say whether something changed that the hash counts."""
        if self.before is None or self.after is None:
            return True
        return shape.counted(self.before) != shape.counted(self.after)

    def changes(self) -> tuple[Change, ...]:
        """Return what changed, column by column; one without a column where the row was created or deleted."""
        if self.before is None or self.after is None:
            return (Change(self.table, self.key, None),)
        columns = dict.fromkeys([*self.before, *self.after])
        return tuple(Change(self.table, self.key, c) for c in columns if self.before.get(c) != self.after.get(c))


@dataclass(frozen=True, slots=True)
class Step:
    """A replayed call.

    Attributes:
        result: What the tool answered.
        rows: The rows that it changed.
    """

    result: ToolResult
    rows: tuple[RowChange, ...]

    def changes(self) -> tuple[Change, ...]:
        """Return what changed, column by column."""
        return tuple(change for row in self.rows for change in row.changes())

    def counts(self, shapes: Mapping[str, Shapes]) -> bool:
        """Say whether something changed that the hash counts."""
        named = {
            table_name(server, table, shapes): shape for server in shapes for table, shape in shapes[server].items()
        }
        return any(row.counts(named.get(row.table, TableShape())) for row in self.rows)


class ServerShapes:
    """What counts on each server, asked from the server itself once."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, TableShape] | None] = {}

    async def of(self, sessions: Sessions, task: Task) -> dict[str, Shapes] | None:
        """Return the shapes of a task's servers; None where one of them can't be asked."""
        missing = [server for server in task.world if server not in self._known]
        if missing:
            async with sessions.open(task) as session:
                for server in missing:
                    self._known[server] = await _told(session, server)
        found: dict[str, Shapes] = {}
        for server in task.world:
            shapes = self._known[server]
            if shapes is None:
                return None
            found[server] = shapes
        return found


async def _told(session: Session, server: str) -> dict[str, TableShape] | None:
    """Return the shapes that a server tells; None where it is not forked by us, or keeps its records otherwise."""
    try:
        return shapes_of(await session.probe(server, RULES))
    except Fault:
        return None


async def replayed(session: Session, calls: Sequence[Call], shapes: Mapping[str, Shapes] | None) -> list[Step]:
    """Make calls in a session, and look after each what it changed.

    Args:
        session: A session in which nothing was called yet.
        calls: The calls.
        shapes: The shapes of the task's servers; None where they can't be asked.
    """
    watch = _Watch(session, shapes)
    await watch.start()
    return [Step(await session.call(call.tool, call.arguments), await watch.changed()) for call in calls]


class _Watch:
    """Looks at a session's records again and again."""

    def __init__(self, session: Session, shapes: Mapping[str, Shapes] | None) -> None:
        self._session = session
        self._shapes = shapes
        self._seen: dict[tuple[str, str], dict[str, Row]] = {}

    async def start(self) -> None:
        """Look for the first time."""
        if self._shapes is None:
            self._since(await self._session.effects())
        for server in self._shapes or {}:
            await self._session.probe(server, CHANGES, "start")

    async def changed(self) -> tuple[RowChange, ...]:
        """Return the rows that changed since the last look."""
        if self._shapes is None:
            return self._since(await self._session.effects())
        found = []
        for server, shapes in self._shapes.items():
            for table, before, after in await self._session.probe(server, CHANGES):
                key = shapes.get(table, TableShape()).key_of(before or after)
                place = table_name(server, table, self._shapes)
                found.append(RowChange(place, key, in_order(before), in_order(after)))
        return tuple(found)

    def _since(self, effects: Mapping[str, Any]) -> tuple[RowChange, ...]:
        now = {
            (server, table): {TableShape().key_of(row): in_order(row) for row in rows}
            for server, told in effects.items()
            for table, rows in ((told.get("result_db_state") or {}) if isinstance(told, Mapping) else {}).items()
        }
        found = []
        for (server, table), rows in now.items():
            before = self._seen.get((server, table), {})
            place = table_name(server, table, effects)
            keys = [key for key in {**before, **rows} if before.get(key) != rows.get(key)]
            found += [RowChange(place, key, before.get(key), rows.get(key)) for key in keys]
        self._seen = now
        return tuple(found)


def says_error(text: str) -> bool:
    """Say whether a tool's answer says that the call failed, in the form of the benchmark's servers.

    They answer it as they answer everything, without marking it as an error; an agent reads it as it is.
    """
    if not text.startswith("{"):
        return False
    try:
        answer = json.loads(text)
    except ValueError:
        return False
    return isinstance(answer, dict) and set(answer) == {"error", "tool"}


def table_name(server: str, table: str, servers: Mapping[str, Any]) -> str:
    """Return a table's name in effects: with its server's name where a task has several."""
    return f"{server}.{table}" if len(servers) > 1 else table
