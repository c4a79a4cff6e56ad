"""Golden actions as steps that keep their identity while others are left out, added or moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tbadapters.core.grading import GoldenAction
from tbadapters.core.refs import refs, with_refs


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
        if any(ref.action in found for ref in refs(step.action.arguments)):
            found.add(step.id)
    return found


def referred_to(steps: Sequence[Step]) -> set[int]:
    """Return the ids of the steps that a ``Ref`` points at."""
    return {ref.action for step in steps for ref in refs(step.action.arguments)}


def playable(steps: Sequence[Step]) -> tuple[GoldenAction, ...] | None:
    """Return steps as actions, each ``Ref`` adjusted; None where one would point at a step that is not before it."""
    places: dict[int, int] = {}
    actions = []
    for place, step in enumerate(steps):
        if any(ref.action not in places for ref in refs(step.action.arguments)):
            return None
        arguments = with_refs(step.action.arguments, lambda ref: replace(ref, action=places[ref.action]))
        actions.append(GoldenAction(step.action.tool, arguments))
        places[step.id] = place
    return tuple(actions)
