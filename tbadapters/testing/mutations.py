"""Golden actions, spoilt in ways in which an agent could spoil them: for checking graders, and for playing flaws.

Each mutation was executed: a spoilt action that the tools answer with an error is none. What can't be done any more
without a spoilt action is left out, as a failed call leaves nothing behind.

    mutator = Mutator(suite)
    for mutation in await mutator.altered(task): ...
    without_waiting(mutator.dropped(task))      # the same from sync code, for suites on SQLite
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal, TypeVar

from tbadapters.core.errors import UsageError
from tbadapters.core.golden import Replay
from tbadapters.core.grading import GoldenAction, Verdict
from tbadapters.core.refs import refs
from tbadapters.core.state import EffectKind, TableRules
from tbadapters.core.suite import Suite, Task
from tbadapters.core.values import canonical
from tbadapters.testing.arguments import Template, templates, use_of
from tbadapters.testing.playing import ALL, Golden, Played, Player
from tbadapters.testing.steps import Step, dependents, playable
from tbadapters.testing.variants import variants

Flaw = Literal["dropped", "altered", "extra", "reordered", "reworded"]
Kind = Literal["value", "selector"]
Result = TypeVar("Result")
_EXTRAS_TRIED = 120
_VARIANTS_TRIED = 40
_TOGETHER_TRIED = 20
_OTHER_WORDS = "Put in other words: done as the policy says, see the conversation."


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way of spoiling a task's golden actions (or, reordered and reworded, of doing the same differently).

    Attributes:
        task: The task's id.
        flaw: What was done to them.
        actions: The actions to play instead, ``Ref``s adjusted; the tools accept all that write.
        tool: The tool of the action that was spoilt, left out, added or moved.
        golden_index: That action's place among the golden actions; None for an extra action.
        index: Its place in ``actions``; None for a dropped action.
        effects: Classes of the effects by which the end state differs from the golden one.
        verdict: What the task's grader says, every required fact being said.
        argument: The altered argument (with the path inside it, ``items[0].quantity``), or several that go together.
        kind: Whether the argument gives a value or selects a record.
        before: The argument's value in the golden action; for several, a mapping.
        after: Its value in ``actions``.
    """

    task: str
    flaw: Flaw
    actions: tuple[GoldenAction, ...]
    tool: str
    golden_index: int | None
    index: int | None
    effects: frozenset[EffectKind]
    verdict: Verdict
    argument: str | None = None
    kind: Kind | None = None
    before: Any = None
    after: Any = None


class Mutator:
    """Mutations of a suite's tasks, the same for the same seed.

    Args:
        suite: The suite.
        seed: Decides which values and records are tried first.

    Attributes:
        rules: How the suite's backend compares each table, where it says so.
        unaltered: (task's id, end state) -> graded arguments for which ``altered`` found no other valid value.
    """

    def __init__(self, suite: Suite, *, seed: int = 0) -> None:
        self._suite = suite
        self._seed = seed
        self._tools = {tool.name: tool for tool in suite.every_tool}
        self.rules: Mapping[str, TableRules] = getattr(suite.backend, "rules", {})
        self.unaltered: dict[tuple[str, int], list[str]] = {}
        self._player = Player(suite)
        self._templates: dict[bool, list[Template]] = {}

    async def golden(self, task: Task, *, end_state: int = 0) -> Golden:
        """Return one end state of a task, executed once.

        Raises:
            SuiteError: a golden action errors.
        """
        return await self._player.golden(task, end_state=end_state)

    async def dropped(self, task: Task, *, end_state: int = 0) -> list[Mutation]:
        """Return the golden actions without each writing one in turn."""
        golden = await self.golden(task, end_state=end_state)
        found = []
        for place in golden.writing:
            gone = dependents(golden.steps, {place})
            played = await self._player.play(golden, [step for step in golden.steps if step.id not in gone])
            if played:
                found.append(_mutation(golden, "dropped", played, golden.done.calls[place].name, place))
        return found

    async def altered(self, task: Task, *, end_state: int = 0, per_argument: int = 1) -> list[Mutation]:
        """Return the golden actions with each graded argument of each writing one changed to other valid values.

        Args:
            task: The task.
            end_state: Which of its end states.
            per_argument: How many other values of an argument at most. Only values count that the tool accepts, by
                which it still changes something, and that do not lead to another allowed end state. Selectors that
                can't be changed alone (a customer and its card) are changed together.
        """
        golden = await self.golden(task, end_state=end_state)
        rng = self._rng(task, end_state, "altered")
        found: list[Mutation] = []
        left: list[str] = []
        for place in golden.writing:
            uses = {argument: self._use(golden, place, argument) for argument in golden.done.calls[place].arguments}
            alone = [
                mutation
                for argument, use in uses.items()
                for mutation in await self._altered_argument(
                    golden, place, argument, use=use, per_argument=per_argument, rng=rng
                )
            ]
            changed = {(mutation.argument or "").split("[")[0].split(".")[0] for mutation in alone}
            stuck = [argument for argument, use in uses.items() if use != "own_words" and argument not in changed]
            together = await self._altered_together(golden, place, [a for a in stuck if uses[a] == "selector"], rng)
            found += alone + together
            freed = {argument for mutation in together for argument in mutation.after}
            left += [f"action {place}, {argument}" for argument in stuck if argument not in freed]
        self.unaltered[task.id, end_state] = left
        return found

    async def extra(self, task: Task, *, end_state: int = 0, count: int = 1) -> list[Mutation]:
        """Return the golden actions followed by one more valid writing action on an unrelated record.

        The actions are those of the suite's golden actions, tried on other records of the task's world.
        """
        golden = await self.golden(task, end_state=end_state)
        rng = self._rng(task, end_state, "extra")
        pool = await self.templates(writing=True)
        touched = {(change.table, change.key) for call in golden.done.calls for change in call.result.changes or ()}
        found: list[Mutation] = []
        for _ in range(_EXTRAS_TRIED if pool else 0):
            template = rng.choice(pool)
            arguments = template.laid_on(golden.done.initial, rng)
            if arguments is None:
                continue
            step = Step(len(golden.steps), GoldenAction(template.tool, arguments))
            played = await self._player.play(golden, [*golden.steps, step], keep=step.id)
            if played and _unrelated(played, touched, known=any(m.actions[-1] == step.action for m in found)):
                found.append(_mutation(golden, "extra", played, template.tool, None, index=len(played.steps) - 1))
            if len(found) == count:
                break
        return found

    async def reordered(self, task: Task, *, end_state: int = 0) -> list[Mutation]:
        """Return the golden actions with a writing one moved before the one that precedes it, where the two commute.

        They commute if the tools accept both orders and both leave the same rows, ids and references aside.
        """
        golden = await self.golden(task, end_state=end_state)
        found = []
        for first, second in zip(golden.writing, golden.writing[1:], strict=False):
            steps = list(golden.steps)
            steps.insert(first, steps.pop(second))
            played = await self._player.play(golden, steps, keep=ALL)
            if played and _same_rows(golden.done, played.done, self.rules):
                found.append(
                    _mutation(golden, "reordered", played, golden.done.calls[second].name, second, index=first)
                )
        return found

    async def reworded(self, task: Task, *, end_state: int = 0) -> list[Mutation]:
        """Return the golden actions with the text that an agent words itself put in other words, if there is any."""
        golden = await self.golden(task, end_state=end_state)
        steps, touched = list(golden.steps), []
        for place in golden.writing:
            for argument in golden.done.calls[place].arguments:
                if self._use(golden, place, argument) == "own_words":
                    steps[place] = steps[place].with_argument(argument, _OTHER_WORDS)
                    touched.append(place)
        if not touched:
            return []
        played = await self._player.play(golden, steps, keep=ALL)
        name = golden.done.calls[touched[0]].name
        return [_mutation(golden, "reworded", played, name, touched[0], index=touched[0])] if played else []

    async def _altered_argument(
        self, golden: Golden, place: int, argument: str, *, use: str, per_argument: int, rng: Random
    ) -> list[Mutation]:
        call = golden.done.calls[place]
        if use == "own_words":
            return []
        schema = self._tools[call.name].parameters.get("properties", {}).get(argument, {})
        found: list[Mutation] = []
        made = any(
            refs(golden.steps[place].action.arguments[argument])
        )  # of a created record only the final state knows
        state = golden.done.final if made else golden.done.initial
        tries = variants(call.arguments[argument], schema, state, rng)
        for _, (path, other) in zip(range(_VARIANTS_TRIED), tries, strict=False):
            steps = list(golden.steps)
            steps[place] = steps[place].with_argument(argument, other)
            played = await self._player.play(golden, steps, keep=place)
            if played and _counts(golden, played, place, argument, use):
                kind: Kind = "selector" if use == "selector" else "value"
                mutation = _mutation(golden, "altered", played, call.name, place, index=_place_of(played, place))
                before, after = call.arguments[argument], played.calls[place].arguments[argument]
                found.append(replace(mutation, argument=argument + path, kind=kind, before=before, after=after))
            if len(found) == per_argument:
                break
        return found

    async def _altered_together(
        self, golden: Golden, place: int, selectors: Sequence[str], rng: Random
    ) -> list[Mutation]:
        """Return the action with all keys that it takes changed to those of another record, where one is accepted."""
        call = golden.done.calls[place]
        (template,) = templates([(golden.done, call)], by_values=True)
        if not set(selectors) & set(template.tables):
            return []
        for _ in range(_TOGETHER_TRIED):
            arguments = template.laid_on(golden.done.initial, rng) or call.arguments
            after = {name: value for name, value in arguments.items() if value != call.arguments[name]}
            if not after.keys() & set(selectors):
                continue
            steps = list(golden.steps)
            for name, value in after.items():
                steps[place] = steps[place].with_argument(name, value)
            played = await self._player.play(golden, steps, keep=place)
            if played and all(_counts(golden, played, place, name, "selector") for name in after):
                before = {name: call.arguments[name] for name in after}
                mutation = _mutation(golden, "altered", played, call.name, place, index=_place_of(played, place))
                return [replace(mutation, argument=", ".join(after), kind="selector", before=before, after=after)]
        return []

    async def templates(self, *, writing: bool) -> list[Template]:
        """Return the writing (or else the reading) calls of the suite's golden actions, to be tried on other records."""
        if writing not in self._templates:
            goldens = [await self.golden(task) for task in self._suite.tasks if task.expectation.end_states]
            tools = {tool.name for tool in self._suite.every_tool if tool.writes is False}
            calls = [
                (golden.done, call)
                for golden in goldens
                for call in golden.done.calls
                if (call.wrote if writing else call.name in tools)
            ]
            self._templates[writing] = templates(calls, by_values=writing)
        return self._templates[writing]

    def _use(self, golden: Golden, place: int, argument: str) -> str:
        call = golden.done.calls[place]
        tool = self._tools[call.name]
        return use_of(call, argument, tool=tool, golden=golden.done, rules=self.rules, known=golden.known)

    def _rng(self, task: Task, end_state: int, flaw: str) -> Random:
        return Random(f"{self._seed}/{task.id}/{end_state}/{flaw}")  # noqa: S311  reproducible, not secret


def without_waiting(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a coroutine that never waits, from sync code; suites on SQLite never do.

    Raises:
        UsageError: it waits for something; await it instead.
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    coroutine.close()
    raise UsageError("This suite's backend waits for something: await its mutations instead.")


def _mutation(
    golden: Golden, flaw: Flaw, played: Played, tool: str, golden_index: int | None, *, index: int | None = None
) -> Mutation:
    actions = playable(played.steps) or ()
    return Mutation(golden.task.id, flaw, actions, tool, golden_index, index, played.classes, played.verdict)


def _place_of(played: Played, step_id: int) -> int:
    return next(place for place, step in enumerate(played.steps) if step.id == step_id)


def _counts(golden: Golden, played: Played, place: int, argument: str, use: str) -> bool:
    """Return whether an altered argument is a mistake of its own kind, and not no mistake or another one.

    It is none where nothing is changed any more, where another allowed end state is reached, where another golden action
    chooses the very record, and where a field is only left at the value that it had.
    """
    call = played.calls[place]
    if not call.wrote or (played.verdict.passed and played.verdict.end_state != golden.name):
        return False
    after = canonical(call.arguments[argument])
    if use == "selector":
        others = (c for c in golden.done.calls if c.wrote and c.name == call.name and c.index != place)
        return all(canonical(other.arguments.get(argument)) != after for other in others)
    return not any(e.kind == "missing" and canonical(e.initial) == after for e in played.effects)


def _unrelated(played: Played, touched: set[tuple[str, str]], *, known: bool) -> bool:
    """Return whether the last call changed something, but no record that the golden actions touch."""
    last = played.done.calls[-1]
    before = {name: rows.keys() for name, rows in played.done.initial.tables.items()}
    kept = {(c.table, c.key) for c in last.result.changes or () if c.key in before[c.table]}
    return last.wrote and not known and not kept & touched


def _same_rows(one: Replay, other: Replay, rules: Mapping[str, TableRules]) -> bool:
    """Return whether two final states hold the same rows, whatever their ids and references."""
    return all(
        _bag(one, name, rules.get(name, TableRules())) == _bag(other, name, rules.get(name, TableRules()))
        for name in one.final.tables
    )


def _bag(done: Replay, table: str, rules: TableRules) -> Counter[Hashable]:
    skipped = {*rules.key, *rules.references, *rules.free_text, *rules.volatile}
    return Counter(
        frozenset((c, canonical(v, money=c in rules.money)) for c, v in row.items() if c not in skipped)
        for row in done.final.tables[table].values()
    )
