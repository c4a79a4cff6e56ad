"""What reports and records keep of a task: its id, its tags, and its golden actions as lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tbadapters.core.grading import Ref
from tbadapters.core.suite import Task


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """What a report needs to know of a task.

    Attributes:
        id: The task's id.
        tags: For figures by tag.
        end_states: Name of each allowed end state -> its golden actions, each as one line.
    """

    id: str
    tags: tuple[str, ...] = ()
    end_states: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task) -> TaskInfo:
        """Return the info of a suite's task."""
        ends = task.expectation.end_states
        states = {end.name: tuple(call_line(a.tool, a.arguments) for a in end.actions) for end in ends}
        return cls(task.id, task.tags, states)

    def golden(self, end_state: str | None, action: int | None) -> str | None:
        """Return one golden action as a line, or None where it is not known."""
        actions = self.end_states.get(end_state or "", ())
        return actions[action] if action is not None and 0 <= action < len(actions) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the info as JSON-like data; ``from_dict`` reads it."""
        states = {name: list(actions) for name, actions in self.end_states.items()}
        return {"id": self.id, "tags": list(self.tags), "end_states": states}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TaskInfo:
        """Return the info that ``to_dict`` wrote."""
        states = {name: tuple(actions) for name, actions in data.get("end_states", {}).items()}
        return cls(data["id"], tuple(data.get("tags", ())), states)


def call_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as one line: ``transfer(amount=25, to="ACC-2")``; references name the action they read."""
    shown: Iterable[str] = (f"{name}={_argument(value)}" for name, value in arguments.items())
    return f"{tool}({', '.join(shown)})"


def _argument(value: Any) -> str:
    if isinstance(value, Ref):
        return f"<{value.path} of action {value.action}>"
    return json.dumps(value, ensure_ascii=False, default=str)
