"""The backend of the built-in suites: a real database in memory, a clean copy for every attempt.

An author writes a schema, tools marked ``@reads`` or ``@writes``, worlds of rows and rules of comparison;
``sqlite_suite`` makes a suite of them. Plain ``sqlite3`` is called on the event loop: the databases are in memory, and
a thread for each sandbox would cost more than its queries.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tbadapters.core.errors import SandboxFault, SuiteError, ToolError, boundary
from tbadapters.core.grading import EndState, Grader, Outcome
from tbadapters.core.state import State, TableRules, changes
from tbadapters.core.state_grader import StateGrader
from tbadapters.core.suite import Suite, Task
from tbadapters.core.tools import Change, Tool, ToolResult
from tbadapters.sandboxes.database_tools import DatabaseTool, reads, writes
from tbadapters.sandboxes.records import Records
from tbadapters.sandboxes.schema import Image, RepeatedKey, Schema

__all__ = ["DatabaseTool", "Records", "SqliteBackend", "SqliteSandbox", "reads", "sqlite_suite", "writes"]

World = Mapping[str, Any]


class SqliteSandbox:
    """One attempt's database, open. A call is executed in one go, in a transaction of its own."""

    def __init__(self, schema: Schema, tools: Mapping[str, DatabaseTool[..., Any]], image: Image) -> None:
        self._schema = schema
        self._tools = tools
        self._connection = schema.restore(image)
        self._records = Records(self._connection, schema, image.now)
        self._state = image.state

    @property
    def tools(self) -> Sequence[Tool]:
        """The suite's tools, unbound."""
        return [tool.tool for tool in self._tools.values()]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Execute a tool in one transaction; see ``core.sandbox.Sandbox``.

        Raises:
            SandboxFault: the tool raised something that is no answer to the agent.
        """
        if name not in self._tools:
            return _error(f"There is no tool {name!r}.")
        with boundary(SandboxFault):
            try:
                return self._transact(self._tools[name], arguments)
            except ToolError as error:
                return _error(str(error))
            except (sqlite3.IntegrityError, RepeatedKey) as error:
                return _error(f"The records do not allow it: {error}.")
            except (OverflowError, UnicodeEncodeError, sqlite3.DataError) as error:  # the agent's value is at fault
                return _error(f"A value is too large or can't be stored: {error}.")

    async def state(self) -> State:
        """Return all records as they are now."""
        return self._state

    def close(self) -> None:
        """Close the database; nothing of it is kept."""
        self._connection.close()

    @staticmethod
    def _wrote(tool: DatabaseTool[..., Any], rows: int) -> bool:
        if rows and not tool.tool.writes:
            raise SandboxFault(f"The tool {tool.tool.name!r} is marked as reading, but it wrote.")
        return bool(rows)

    def _transact(self, tool: DatabaseTool[..., Any], arguments: Mapping[str, Any]) -> ToolResult:
        connection, before = self._connection, self._state
        touched = connection.total_changes
        values = tool.validated(arguments)
        connection.execute("BEGIN")
        try:
            data = tool.run(self._records, values)
            text = data if isinstance(data, str) else _as_json(data)
            wrote = self._wrote(tool, connection.total_changes - touched)
            after = self._schema.dump(connection) if wrote else before
            changed = changes(before, after)
            _refuse_infinite(after, changed)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self._state = after
        return ToolResult(text, data, changes=changed)


class SqliteBackend:
    """Opens a clean database for each attempt; a task's image and grader are made once."""

    def __init__(
        self,
        *,
        schema: str,
        tools: Sequence[DatabaseTool[..., Any]],
        rules: Mapping[str, TableRules] | None = None,
        base_world: World | None = None,
    ) -> None:
        self._schema = Schema(schema)
        self._tools = {tool.tool.name: tool for tool in tools}
        if len(self._tools) != len(tools):
            raise SuiteError("Two tools have the same name.")
        self.rules: Mapping[str, TableRules] = self._schema.rules(rules or {})
        self._base_world = base_world
        self._images: dict[str, tuple[Task, Image]] = {}
        self._graders: dict[str, tuple[Task, StateGrader]] = {}

    @asynccontextmanager
    async def open(self, task: Task) -> AsyncIterator[SqliteSandbox]:
        """Open a sandbox for one attempt.

        Raises:
            SuiteError: the task's world does not fit the schema.
        """
        sandbox = SqliteSandbox(self._schema, self._tools, self.image(task))
        try:
            yield sandbox
        finally:
            sandbox.close()

    def grader(self, task: Task) -> Grader:
        """Return the grader of a task."""
        known = self._graders.get(task.id)
        if known is None or known[0] is not task:
            known = (task, StateGrader(_as_stored(task), self.open, self.rules))
            self._graders[task.id] = known
        return known[1]

    def image(self, task: Task) -> Image:
        """Return the clean backend of a task, made once."""
        known = self._images.get(task.id)
        if known is None or known[0].world is not task.world:
            try:
                known = (task, self._schema.image(self._base_world, task.world))
            except SuiteError as error:
                raise SuiteError(f"{task.id}: {error}") from error
            self._images[task.id] = known
        return known[1]


def sqlite_suite(
    *,
    name: str,
    schema: str,
    policy: str,
    tools: Sequence[DatabaseTool[..., Any]],
    tasks: Sequence[Task],
    rules: Mapping[str, TableRules],
    base_world: World | None = None,
    seed: int = 0,
    version: str = "1",
    reseed: Callable[[int], Suite] | None = None,
    rule: Callable[[Task], Outcome] | None = None,
) -> Suite:
    """Return a suite whose backend is a SQLite database.

    Args:
        name: The suite's name.
        schema: ``CREATE TABLE`` statements with keys, checks and foreign keys.
        policy: What the agent is told: rules that decide every task.
        tools: Functions marked ``@reads`` or ``@writes``.
        tasks: The tasks; each ``world`` is ``{"now": ISO text, "tables": {table: [row, ...]}}``.
        rules: How the rows of each table are compared; keys and foreign keys are read from the schema.
        base_world: A world common to all tasks; a task's own is laid over it.
        seed: The suite seed that the tasks were built from.
        version: Changes when tasks, tools or grading change.
        reseed: Builds the same suite from another seed.
        rule: The independent derivation of a task's outcome: ``rule_of(workflows)`` of ``suites/build.py``.

    Raises:
        SuiteError: schema, tools, rules, task ids or topics are wrong.
    """
    _refuse_repeated(name, tasks)
    _refuse_unknown_topics(tasks)
    unmarked = [getattr(tool, "__name__", repr(tool)) for tool in tools if not isinstance(tool, DatabaseTool)]
    if unmarked:
        raise SuiteError(f"Mark the tools of {name!r} with @reads or @writes: {', '.join(unmarked)}.")
    backend = SqliteBackend(schema=schema, tools=tools, rules=rules, base_world=base_world)
    agents_tools = tuple(tool.tool for tool in tools)
    made = Suite(name, tuple(tasks), policy, agents_tools, backend, seed=seed, version=version)
    return replace(made, reseed=reseed, rule=rule)


def _refuse_repeated(name: str, tasks: Sequence[Task]) -> None:
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            raise SuiteError(f"The suite {name!r} has several tasks with the id {task.id!r}.")
        seen.add(task.id)


def _refuse_unknown_topics(tasks: Sequence[Task]) -> None:
    for task in tasks:
        topics = [fact.topic for fact in task.user.facts]
        if unknown := [topic for topic in task.needs_asking if topic not in topics]:
            raise SuiteError(
                f"The task {task.id!r} needs asking for {unknown[0]!r}, and its user has no fact of that topic; "
                f"it has {', '.join(map(repr, topics)) or 'none'}."
            )


def _as_json(data: Any) -> str:
    """Return a tool's data as text.

    Raises:
        ToolError: a number of it is infinite, as a sum of huge amounts is: no JSON, and nothing that a user can be told.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    try:
        json.dumps(data, allow_nan=False)
    except ValueError:
        raise ToolError("A number of the result is too large.") from None
    return text


def _refuse_infinite(state: State, changed: Iterable[Change]) -> None:
    """Refuse a call that leaves an infinite number in the records, however it came to be.

    Raises:
        ToolError: it does.
    """
    for change in changed:
        row = state.tables[change.table].get(change.key, {})
        for column in row if change.column is None else (change.column,):
            value = row[column]
            if isinstance(value, float) and not math.isfinite(value):
                raise ToolError(f"A number is too large: {change.table} {change.key} {column} would be {value}.")


def _error(text: str) -> ToolResult:
    return ToolResult(text, is_error=True)


def _as_stored(task: Task) -> Task:
    """Return the task with booleans in declared rows as SQLite stores them, 0 and 1."""
    ends = tuple(replace(end, rows=_rows_as_stored(end)) for end in task.expectation.end_states)
    return replace(task, expectation=replace(task.expectation, end_states=ends))


def _rows_as_stored(end: EndState) -> dict[str, dict[str, Mapping[str, Any] | None]]:
    return {
        table: {
            key: row and {column: int(value) if isinstance(value, bool) else value for column, value in row.items()}
            for key, row in rows.items()
        }
        for table, rows in end.rows.items()
    }
