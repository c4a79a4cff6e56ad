"""What the arguments of a golden action are for: choosing a record, giving a value, or putting something into words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

from tbadapters.core.golden import Replay
from tbadapters.core.keys import key_names
from tbadapters.core.state import State, TableRules
from tbadapters.core.suite import Task
from tbadapters.core.tools import Change, Tool, ToolCall
from tbadapters.core.values import canonical
from tbadapters.testing.variants import choices, holders

Use = Literal["value", "selector", "own_words"]
_SHORT = 4


def known_text(task: Task, policy: str, initial: State) -> str:
    """Return all text that an agent can read in a task: records, policy and what the user says; case folded."""
    records = [str(v) for rows in initial.tables.values() for row in rows.values() for v in row.values()]
    user = [task.opening, *(fact.answer for fact in task.user.facts), *(message.text for message in task.history)]
    return "\n".join([task.instructions or policy, *user, *records]).casefold()


def use_of(
    call: ToolCall, argument: str, *, tool: Tool, golden: Replay, rules: Mapping[str, TableRules], known: str
) -> Use:
    """Return what an argument of a golden call is for.

    ``own_words``: text that the agent has to word itself. It ends in free text only, and is no single word that could be
    got right (a date, an id); or it has several words and can be read nowhere (``known``), so that no agent could be
    right about its letters. ``selector``: it names a record or field that the call changes, or a natural key of a row
    that it creates. ``value``: anything else.
    """
    value = call.arguments[argument]
    listed = bool(choices(tool.parameters.get("properties", {}).get(argument, {})))
    if isinstance(value, str) and not listed and _is_own_words(value, call, golden, rules, known):
        return "own_words"
    selects = any(_selects(value, change, golden, rules, listed=listed) for change in call.result.changes or ())
    return "selector" if selects else "value"


def _is_own_words(value: str, call: ToolCall, golden: Replay, rules: Mapping[str, TableRules], known: str) -> bool:
    landed = set(_landed(value, call, golden))
    several_words, readable = " " in value.strip(), value.casefold() in known
    if landed and all(column in rules.get(table, TableRules()).free_text for table, column in landed):
        return several_words or not (readable or any(letter.isdigit() for letter in value))
    return several_words and not readable


def _landed(value: str, call: ToolCall, golden: Replay) -> Iterator[tuple[str, str]]:
    """Yield the (table, column) pairs that the call wrote the text into."""
    for change in call.result.changes or ():
        row = golden.final.tables[change.table].get(change.key, {})
        for column in row if change.column is None else (change.column,):
            field = row.get(column)
            if field == value or (isinstance(field, str) and len(value) >= _SHORT and value in field):
                yield change.table, column


def _selects(value: Any, change: Change, golden: Replay, rules: Mapping[str, TableRules], *, listed: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    before = golden.initial.tables[change.table].get(change.key)
    if before is None:
        row = golden.final.tables[change.table].get(change.key, {})
        natural = rules.get(change.table, TableRules()).natural_key
        if not natural:
            return key_names(change.key, value)
        return any(canonical(value) == canonical(row.get(column)) for column in natural)
    if key_names(change.key, value) or value == change.column:
        return True
    return not listed and isinstance(value, str) and _names_row(value, change, golden)


def _names_row(value: str, change: Change, golden: Replay) -> bool:
    """Return whether the text is a field that the call left alone, and by which its row alone can be found."""
    before, after = golden.initial.tables[change.table], golden.final.tables[change.table]
    row = before[change.key]
    for column, field in row.items():
        kept = after.get(change.key, {}).get(column) == field
        if field == value and kept and sum(other.get(column) == value for other in before.values()) == 1:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Template:
    """A call that worked in some task of a suite, to be tried on other records.

    Attributes:
        tool: The tool.
        arguments: The arguments as they were.
        tables: Argument -> table whose key it held.
    """

    tool: str
    arguments: Mapping[str, Any]
    tables: Mapping[str, str]

    def laid_on(self, state: State, rng: Random) -> dict[str, Any] | None:
        """Return the arguments with keys of other records, related to each other where they can be; None if none fit."""
        arguments, anchor = dict(self.arguments), None
        for name, table in self.tables.items():
            rows = state.tables.get(table, {})
            keys = sorted(_related(state, anchor, table) if anchor else rows) or sorted(rows)
            if not keys:
                return None
            key = rng.choice(keys)
            anchor = anchor or (table, key)
            arguments[name] = int(key) if isinstance(arguments[name], int) else key
        return arguments


def templates(calls: Iterable[tuple[Replay, ToolCall]], *, by_values: bool) -> list[Template]:
    """Return executed calls as templates.

    Args:
        calls: The calls, each with the replay that it is from.
        by_values: Whether calls that differ in values that are no keys are different templates.
    """
    found: dict[str, Template] = {}
    for done, call in calls:
        tables = {
            name: held[0]
            for name, value in call.arguments.items()
            if (held := holders(value, done.initial) or holders(value, done.final))
        }
        rest = {name: value for name, value in call.arguments.items() if name not in tables}
        shape = json.dumps([call.name, rest if by_values else sorted(rest), tables], sort_keys=True, default=str)
        found.setdefault(shape, Template(call.name, call.arguments, tables))
    return list(found.values())


def _related(state: State, anchor: tuple[str, str], table: str) -> Iterator[str]:
    """Yield the keys of a table's rows that refer to the anchor, are referred to by it, or are it."""
    anchor_table, anchor_key = anchor
    links = {str(value) for value in state.tables[anchor_table][anchor_key].values() if isinstance(value, str)}
    for key, row in state.tables.get(table, {}).items():
        if (table == anchor_table and key != anchor_key) or key in links or anchor_key in map(str, row.values()):
            yield key
