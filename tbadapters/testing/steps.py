"""Golden actions as steps that keep their identity while others are left out, added or moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tbadapters.core.grading import GoldenAction, Ref


@dataclass(frozen=True, slots=True)
class Step:
    """An action and its place among the golden actions, which ``Ref``s to it go by."""

    id: int
    action: GoldenAction

    def with_argument(self, name: str, value: Any) -> Step:
        """Return the step with another value of an argument."""
        return replace(self, action=replace(self.action, arguments={**self.action.arguments, name: value}))


def steps_of(actions: Sequence[GoldenAction]) -> tuple[Step, ...]:
    """Return actions as steps."""
    return tuple(Step(place, action) for place, action in enumerate(actions))


def dependents(steps: Sequence[Step], gone: set[int]) -> set[int]:
    """Return ``gone`` and the ids of all steps that can't be played without one of it, in any number of hops."""
    found = set(gone)
    for step in steps:  # a Ref points backwards, so one pass in order is enough
        if any(ref.action in found for ref in _refs(step.action.arguments)):
            found.add(step.id)
    return found


def referred_to(steps: Sequence[Step]) -> set[int]:
    """Return the ids of the steps that a ``Ref`` points at."""
    return {ref.action for step in steps for ref in _refs(step.action.arguments)}


def playable(steps: Sequence[Step]) -> tuple[GoldenAction, ...] | None:
    """Return steps as actions, each ``Ref`` adjusted; None where one would point at a step that is not before it."""
    places: dict[int, int] = {}
    actions = []
    for place, step in enumerate(steps):
        if any(ref.action not in places for ref in _refs(step.action.arguments)):
            return None
        arguments = {name: _adjusted(value, places) for name, value in step.action.arguments.items()}
        actions.append(GoldenAction(step.action.tool, arguments))
        places[step.id] = place
    return tuple(actions)


def _refs(value: Any) -> Iterator[Ref]:
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _refs(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _refs(item)


def _adjusted(value: Any, places: Mapping[int, int]) -> Any:
    if isinstance(value, Ref):
        return replace(value, action=places[value.action])
    if isinstance(value, Mapping):
        return {key: _adjusted(item, places) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_adjusted(item, places) for item in value]
    return value
