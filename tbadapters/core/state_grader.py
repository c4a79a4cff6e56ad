"""The grader of state: a task's golden actions say what is right, the records say what was done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tbadapters.core.errors import SuiteError
from tbadapters.core.facts import said
from tbadapters.core.golden import OpenSandbox, replay_golden
from tbadapters.core.grading import EndState, Evidence, Verdict
from tbadapters.core.matching import PartRow
from tbadapters.core.state import Difference, Effect, State, TableRules, differences
from tbadapters.core.tools import ToolCall

if TYPE_CHECKING:
    from tbadapters.core.suite import Task


@dataclass(frozen=True, slots=True)
class ExpectedState:
    """One allowed end state, worked out: its records, and the golden calls that made them."""

    name: str
    state: State
    calls: tuple[ToolCall, ...]


class StateGrader:
    """Grades by the records that an attempt left, and by the required facts that the agent said.

    The expected end states are worked out once, when first needed: golden actions are executed through the same tools on
    the same clean backend, then declared rows are laid over. Working them out twice at once would give the same.

    Args:
        task: The task.
        open_sandbox: Opens a clean sandbox of it, as ``Backend.open`` does.
        rules: How each table is compared.
    """

    def __init__(self, task: Task, open_sandbox: OpenSandbox, rules: Mapping[str, TableRules]) -> None:
        self._task = task
        self._open = open_sandbox
        self._rules = rules
        self._expected: tuple[ExpectedState, ...] | None = None

    async def expected(self) -> tuple[ExpectedState, ...]:
        """Return the allowed end states.

        Raises:
            SuiteError: the task has none, or a golden action errors.
        """
        if self._expected is None:
            ends = self._task.expectation.end_states
            if not ends:
                raise SuiteError(f"{self._task.id} allows no end state.")
            self._expected = tuple([await self._worked_out(end) for end in ends])
        return self._expected

    async def grade(self, evidence: Evidence) -> Verdict:
        """Return the verdict; see ``core.grading.Grader``.

        Raises:
            SuiteError: a golden action errors: nobody is graded by this task.
        """
        candidates = [(end, self._differences(evidence, end)) for end in await self.expected()]
        end, found = min(candidates, key=lambda candidate: len(candidate[1]))
        effects = tuple(_attributed(difference, evidence.tool_calls, end.calls) for difference in found)
        unsaid = [f for f in self._task.expectation.required_facts if not said(f, evidence.messages)]
        reasons = [sentence_of(effect) for effect in effects]
        reasons += [f"The agent did not say: {fact.name} ({' or '.join(fact.any_of)})." for fact in unsaid]
        passed = not reasons
        return Verdict(passed, 1.0 if passed else 0.0, effects, tuple(reasons), end.name)

    def _differences(self, evidence: Evidence, end: ExpectedState) -> list[Difference]:
        return differences(evidence.initial, evidence.final, end.state, self._rules)

    async def _worked_out(self, end: EndState) -> ExpectedState:
        done = await replay_golden(self._open, self._task, end.actions)
        return ExpectedState(end.name, laid_over(done.final, end.rows), done.calls)


def laid_over(state: State, rows: Mapping[str, Mapping[str, Mapping[str, Any] | None]]) -> State:
    """Return a state with declared rows laid over it (None as a row: it must not exist).

    Of a row that is not in the state only the declared columns are known.
    """
    tables = {name: dict(table) for name, table in state.tables.items()}
    for name, declared in rows.items():
        table = tables.setdefault(name, {})
        for key, columns in declared.items():
            if columns is None:
                table.pop(key, None)
            else:
                table[key] = {**table[key], **columns} if key in table else PartRow(columns)
    return State(tables)


def _attributed(difference: Difference, calls: Sequence[ToolCall], golden: Sequence[ToolCall]) -> Effect:
    """Return the effect with the tool call that did it, and the golden action whose effect is missing or wrong."""
    effect = difference.effect
    if effect.kind != "missing":
        effect = replace(effect, caused_by=_last_touching(calls, effect.table, effect.key, effect.column))
    if effect.kind != "unexpected":
        effect = replace(effect, golden=_last_touching(golden, effect.table, difference.expected_key, effect.column))
    return effect


def _last_touching(calls: Iterable[ToolCall], table: str, key: str, column: str | None) -> int | None:
    """Return the index of the last call that changed this field, or created or deleted its row."""
    index = None
    for call in calls:
        for change in call.result.changes or ():
            if (change.table, change.key) == (table, key) and change.column in (column, None):
                index = call.index
    return index


def sentence_of(effect: Effect) -> str:
    """Return an effect in words."""
    place = f"{effect.table} {effect.key}"
    if effect.column is None:
        if effect.kind == "missing":
            return f"{place} should have been {'created' if effect.initial is None else 'deleted'}."
        return f"{place} should not have been {'created' if effect.initial is None else 'deleted'}."
    field = f"{place} {effect.column}"
    if effect.kind == "missing":
        return f"{field} is still {effect.final!r}; it should have become {effect.expected!r}."
    if effect.kind == "unexpected":
        return f"{field} was changed from {effect.initial!r} to {effect.final!r}; it should have stayed."
    return f"{field} is {effect.final!r}; it should be {effect.expected!r}."
