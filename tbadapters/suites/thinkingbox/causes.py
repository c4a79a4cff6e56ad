"""Why a trial failed: which call is behind each effect, found by replaying the trial's calls and the golden ones.

Only failed trials are replayed. The verdict does not depend on it: where a replay fails, or goes otherwise than the trial
did, the effects are without a cause.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from tbadapters.core.errors import Fault
from tbadapters.core.logs import get_logger
from tbadapters.core.state import Difference, Effect
from tbadapters.core.suite import Task
from tbadapters.core.tools import Change, ToolCall
from tbadapters.suites.thinkingbox.replaying import Call, RowChange, ServerShapes, Sessions, Step, replayed
from tbadapters.suites.thinkingbox.states import Comparison, at, compare_effects

log = get_logger(__name__)

_SECONDS = 20.0
"""Deadline of one replay."""


@dataclass(frozen=True, slots=True)
class Explained:
    """How a failed trial's records differ, and by which calls.

    Attributes:
        effects: The effects, with their calls where these are known.
        changes: What each of the trial's calls changed; nothing where it could not be replayed.
    """

    effects: tuple[Effect, ...]
    changes: Mapping[int, tuple[Change, ...]]


@dataclass(frozen=True, slots=True)
class _Replay:
    """Replayed calls, with their indices among the trial's; one that was delivered twice is there twice."""

    indices: Sequence[int]
    steps: Sequence[Step]

    def last_touching(self, table: str, key: str, path: Sequence[str | int]) -> tuple[int, RowChange] | None:
        """Return the last call that changed the value at a place of a row, and how it changed the row."""
        found = None
        for index, step in zip(self.indices, self.steps, strict=True):
            for row in step.rows:
                if (row.table, row.key) == (table, key) and row.touches(path):
                    found = index, row
        return found

    @property
    def changes(self) -> dict[int, tuple[Change, ...]]:
        """What each call changed."""
        found: dict[int, tuple[Change, ...]] = {}
        for index, step in zip(self.indices, self.steps, strict=True):
            found[index] = tuple(dict.fromkeys((*found.get(index, ()), *step.changes())))
        return found


class Causes:
    """Finds the causes of one task's failed trials.

    Args:
        task: The task.
        sessions: Opens fresh sessions.
        golden: The task's golden calls.
        shapes: What counts on each server.
    """

    def __init__(self, task: Task, sessions: Sessions, golden: Sequence[Call], shapes: ServerShapes) -> None:
        self._task = task
        self._sessions = sessions
        self._golden_calls = golden
        self._shapes = shapes
        self._golden: _Replay | None = None

    async def of(self, calls: Sequence[ToolCall], comparison: Comparison) -> Explained:
        """Return the effects of a trial with the calls behind them."""
        made = _reached(calls)
        done = await self._replay([Call(call.name, call.arguments) for call in made])
        return await self._explained(comparison, None if done is None else _replay_of(made, done[0]))

    async def of_calls(self, calls: Sequence[ToolCall]) -> Explained | None:
        """Return the effects of a trial of which only the calls are known, by what these leave when they are replayed."""
        made = _reached(calls)
        done = await self._replay([Call(call.name, call.arguments) for call in made], look=True)
        if done is None:
            return None
        shapes = await self._shapes.of(self._sessions, self._task)
        return await self._explained(compare_effects(done[1], shapes or {}), _replay_of(made, done[0]))

    async def _explained(self, comparison: Comparison, done: _Replay | None) -> Explained:
        golden = await self._golden_replay() if comparison.found else None
        effects = tuple(_attributed(one, comparison, done, golden) for one in comparison.found)
        return Explained(effects, done.changes if done else {})

    async def _golden_replay(self) -> _Replay | None:
        if self._golden is None:
            done = await self._replay(self._golden_calls)
            self._golden = None if done is None else _Replay(range(len(done[0])), done[0])
        return self._golden

    async def _replay(
        self, calls: Sequence[Call], *, look: bool = False
    ) -> tuple[list[Step], Mapping[str, Any]] | None:
        """Replay calls in a fresh session, and look at the effects then; None where that fails, which the log says."""
        if not calls and not look:
            return [], {}
        try:
            with anyio.fail_after(_SECONDS):
                shapes = await self._shapes.of(self._sessions, self._task)
                async with self._sessions.open(self._task) as session:
                    steps = await replayed(session, calls, shapes)
                    return steps, await session.effects() if look else {}
        except (Fault, TimeoutError) as error:
            log.warning("causes_unknown", task=self._task.id, error=str(error))
            return None


def _reached(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls that reached the sandbox, as often as they were executed."""
    return [call for call in calls if call.result.changes is None for _ in range(call.executions)]


def _replay_of(made: Sequence[ToolCall], steps: Sequence[Step]) -> _Replay:
    return _Replay([call.index for call in made], steps)


def _attributed(difference: Difference, comparison: Comparison, done: _Replay | None, golden: _Replay | None) -> Effect:
    """Return the effect with the call that did it, and the golden call whose effect is missing or wrong."""
    effect = difference.effect
    path = _path(effect, comparison)
    if done and effect.kind != "missing":
        cause = done.last_touching(effect.table, effect.key, path)
        # Only where the replay left what the trial left: a call may have gone otherwise the second time.
        if cause and _leaves(cause[1], path, effect.final):
            effect = replace(effect, caused_by=cause[0])
    if golden and effect.kind != "unexpected":
        right = golden.last_touching(effect.table, difference.expected_key, path)
        effect = replace(effect, golden=right[0] if right else None)
    return effect


def _path(effect: Effect, comparison: Comparison) -> tuple[str | int, ...]:
    """Return where in its row an effect lies; nowhere in particular for a whole row."""
    if effect.column is None:
        return ()
    return comparison.paths.get((effect.table, effect.key, effect.column), (effect.column,))


def _leaves(change: RowChange, path: Sequence[str | int], final: Any) -> bool:
    if not path:
        return (change.after is None) == (final is None)
    return bool(at(change.after, path) == final)
