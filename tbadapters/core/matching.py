"""Which created row of one state is which created row of another.

Ids of created rows are counters: they depend on the order of creation and say nothing. A created row is known by its
natural key (which record it is about); where several rows share one, they are paired so that as few fields as possible
differ. Keys of created rows that other rows refer to are rewritten along the pairs, table after table, so that a created
row may refer to another created row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tbadapters.core.assignment import assign
from tbadapters.core.values import canonical

if TYPE_CHECKING:
    from tbadapters.core.state import Row, State, TableRules

_AROUND, _ROUND = 1e-3, 1e-5
"""Weights of differing surroundings: they decide between pairings in which equally many fields differ."""

ANYTHING = ("anything",)
"""What a field reads as that is not compared in its row."""

Pairs = dict[str, dict[str, str]]
"""table -> key of a created row in the final state -> key of the same row in the expected state."""


class PartRow(dict[str, Any]):
    """A row of an expected state of which only these columns are known; whatever the others hold is right."""


def compared(rules: TableRules, columns: Iterable[str], *, created: bool) -> list[str]:
    """Return those of a table's columns that are compared.

    Args:
        rules: The table's rules.
        columns: Its columns.
        created: Whether the rows were created and are matched by natural key: then counters in the key don't count.
    """
    skipped = rules.free_text | rules.volatile
    if created and rules.natural_key:
        skipped |= set(rules.key) - set(rules.natural_key) - set(rules.references)
    return [column for column in columns if column not in skipped]


def unlike(one: Hashable, other: Hashable) -> bool:
    """Return whether two values that ``View.read`` gave differ."""
    return one != other and ANYTHING not in (one, other)


@dataclass(frozen=True, slots=True)
class View:
    """One state, read with the keys of its created rows replaced by names that hold in the other state, too.

    Attributes:
        rules: How each table is compared.
        created: table -> key -> row, the rows that the initial state did not have.
        names: table -> key of a created row -> its name; a reference to a row without one reads as unknown.
    """

    rules: Mapping[str, TableRules]
    created: Mapping[str, Mapping[str, Row]]
    names: Mapping[str, Mapping[str, Hashable]] = field(default_factory=dict)

    def read(self, table: str, row: Row, column: str) -> Hashable:
        """Return a field's value in a form that can be compared, ``ANYTHING`` where nothing is known of it."""
        rules = self.rules[table]
        if isinstance(row, PartRow) and column not in row:
            return ANYTHING
        value = row.get(column)
        target = rules.references.get(column)
        if target is not None and value is not None:
            for name in self.created if target == "*" else (target,):
                if str(value) in self.created.get(name, {}):
                    return ("created", name, self.names.get(name, {}).get(str(value)))
        return canonical(value, money=column in rules.money)


def created_rows(initial: State, state: State) -> dict[str, dict[str, Row]]:
    """Return the rows of ``state`` that ``initial`` did not have, by table and key."""
    found = {}
    for table, rows in state.tables.items():
        before = initial.tables.get(table, {})
        found[table] = {key: row for key, row in rows.items() if key not in before}
    return found


def match_created(initial: State, final: State, expected: State, rules: Mapping[str, TableRules]) -> Pairs:
    """Return which created row of the final state is which of the expected state.

    Args:
        initial: The state that both came from.
        final: What an attempt left.
        expected: What was right.
        rules: How each table of both is compared.
    """
    left, right = created_rows(initial, final), created_rows(initial, expected)
    pairs: Pairs = {}
    shapes = _shapes(left, rules), _shapes(right, rules)
    tables = _in_order([t for t in {**left, **right} if left.get(t) and right.get(t)], rules)
    for _ in range(len(tables) + 1):  # tables that refer to each other in a circle: until nothing changes
        before = {table: dict(found) for table, found in pairs.items()}
        for table in tables:
            pairs[table] = _match_table(table, View(rules, left, pairs), View(rules, right, own_names(pairs)), shapes)
        if pairs == before or _acyclic(tables, rules):
            break
    return pairs


def own_names(pairs: Pairs) -> dict[str, dict[str, str]]:
    """Return the names that the expected state's created rows go by: their own keys, where they are paired."""
    return {table: {key: key for key in found.values()} for table, found in pairs.items()}


def _targets(table: str, rules: Mapping[str, TableRules], tables: Iterable[str]) -> set[str]:
    named = set(rules[table].references.values())
    return {other for other in tables if other in named or "*" in named}


def _in_order(tables: list[str], rules: Mapping[str, TableRules]) -> list[str]:
    """Return the tables so that each comes after those that it refers to, as far as there is no circle."""
    ordered: list[str] = []
    waiting = sorted(tables)
    while waiting:
        ready = [t for t in waiting if not _targets(t, rules, waiting) - {t}] or waiting[:1]
        ordered += ready
        waiting = [t for t in waiting if t not in ready]
    return ordered


def _acyclic(ordered: list[str], rules: Mapping[str, TableRules]) -> bool:
    return not any(_targets(table, rules, ordered[place:]) for place, table in enumerate(ordered))


def _match_table(
    table: str, left: View, right: View, shapes: tuple[Mapping[Node, Shape], Mapping[Node, Shape]]
) -> dict[str, str]:
    rules = left.rules[table]
    if not rules.natural_key:
        return {key: key for key in left.created[table] if key in right.created[table]}
    groups: dict[Hashable, tuple[list[str], list[str]]] = {}
    for side, view in enumerate((left, right)):
        for key, row in view.created[table].items():
            natural = tuple(view.read(table, row, column) for column in rules.natural_key)
            groups.setdefault(natural, ([], []))[side].append(key)
    columns = compared(rules, _columns(left.created[table], right.created[table]), created=True)
    pairs: dict[str, str] = {}
    for sides in groups.values():
        finals, expecteds = (
            [
                _Candidate(tuple(view.read(table, view.created[table][k], c) for c in columns), shape[table, k])
                for k in keys
            ]
            for view, shape, keys in zip((left, right), shapes, sides, strict=True)
        )
        pairs.update((sides[0][i], sides[1][j]) for i, j in _assign(finals, expecteds))
    return pairs


def _columns(*tables: Mapping[str, Row]) -> list[str]:
    return list(dict.fromkeys(column for rows in tables for row in rows.values() for column in row))


def _assign(finals: list[_Candidate], expecteds: list[_Candidate]) -> list[tuple[int, int]]:
    """Return the pairing in which the fewest fields differ.

    Equal rows are paired first: the distance is a metric, so a best pairing contains them.
    """
    pairs: list[tuple[int, int]] = []
    free = dict(enumerate(expecteds))
    rest = []
    for i, final in enumerate(finals):
        same = next((j for j, expected in free.items() if expected == final), None)
        if same is None:
            rest.append(i)
        else:
            pairs.append((i, same))
            del free[same]
    open_ends = list(free)
    best = assign([[finals[i].distance(expecteds[j]) for j in open_ends] for i in rest])
    pairs += [(rest[i], open_ends[j]) for i, j in best]
    return pairs


Node = tuple[str, str]
"""A created row: its table and its key."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a created row looks like together with the created rows around it, whatever their ids.

    Attributes:
        links: How often it refers to other rows and they refer to it, by column.
        around: The same, with what these rows hold.
        rounds: The same seen ever further: colours refined along references, after Weisfeiler and Leman (1968).
    """

    links: Counter[Hashable]
    around: Counter[Hashable]
    rounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A created row that may be paired: its compared fields, and its shape to break ties between like rows."""

    fields: tuple[Hashable, ...]
    shape: Shape

    def distance(self, other: _Candidate) -> float:
        """Return the number of differing fields, and a fraction for differing surroundings."""
        fields = sum(unlike(a, b) for a, b in zip(self.fields, other.fields, strict=True))
        rounds = sum(bool(a != b) for a, b in zip_longest(self.shape.rounds, other.shape.rounds))
        links = _unlike(self.shape.links, other.shape.links)
        around = _unlike(self.shape.around, other.shape.around)
        return fields + _AROUND * (links + around) + _ROUND * rounds


def _unlike(one: Counter[Hashable], two: Counter[Hashable]) -> int:
    return (one - two).total() + (two - one).total()


def _shapes(created: Mapping[str, Mapping[str, Row]], rules: Mapping[str, TableRules]) -> dict[Node, Shape]:
    """Return the shape of each created row of a state.

    Two rows may be alike in all their own fields and differ only in the rows that refer to them (two tickets, each with
    its own notes).
    """
    view = View(rules, created)
    nodes = [(table, key) for table, rows in created.items() for key in rows]
    columns = {table: compared(rules[table], _columns(rows), created=True) for table, rows in created.items()}
    own = {(t, k): hash((t, tuple(view.read(t, created[t][k], c) for c in columns[t]))) for t, k in nodes}
    links = [(node, column, to) for node in nodes for column, to in _links(view, *node)]
    linked, around = _around(links, dict.fromkeys(nodes, 0), nodes), _around(links, own, nodes)
    colours = own
    rounds: dict[Node, tuple[int, ...]] = {node: (own[node],) for node in nodes}
    for _ in range(len(created) if links else 0):
        seen = _around(links, colours, nodes)
        colours = {node: hash((colours[node], frozenset(seen[node].items()))) for node in nodes}
        rounds = {node: (*rounds[node], colours[node]) for node in nodes}
    return {node: Shape(linked[node], around[node], rounds[node]) for node in nodes}


def _around(
    links: Iterable[tuple[Node, str, Node]], colours: Mapping[Node, int], nodes: Iterable[Node]
) -> dict[Node, Counter[Hashable]]:
    found: dict[Node, Counter[Hashable]] = {node: Counter() for node in nodes}
    for node, column, to in links:
        found[node]["to", column, colours[to]] += 1
        found[to]["from", column, node[0], colours[node]] += 1
    return found


def _links(view: View, table: str, key: str) -> Iterable[tuple[str, tuple[str, str]]]:
    row = view.created[table][key]
    for column, target in view.rules[table].references.items():
        value = row.get(column)
        for name in view.created if target == "*" else (target,):
            if value is not None and str(value) in view.created.get(name, {}):
                yield column, (name, str(value))
