"""What a scripted model says and does in one task: the questions, the steps, the closing claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tbadapters.core.grading import GoldenAction, Ref
from tbadapters.core.refs import followed, refs, with_refs
from tbadapters.core.suite import Task, UserFact
from tbadapters.core.tools import Tool
from tbadapters.core.wording import fold, spans
from tbadapters.testing.outcomes import Flaw
from tbadapters.testing.position import Done

UNKNOWN = "unknown"
_CLAIMS = {
    "refusal": "Unfortunately your request can't be approved. I have recorded it.",
    "escalation": "I have escalated this to the responsible team.",
}
_CLAIM = "I have completed your request."


@dataclass(frozen=True, slots=True)
class Injected:
    """What was made wrong in a trial.

    Attributes:
        flaw: The flaw that is played; None: the trial is played right.
        drawn: The flaw that was drawn; another one where the task has no place for it.
        golden: Index of the golden action that is altered or left out; None for an extra call.
        step: Index of the call that does wrong among the script's steps: the altered or the extra one.
        tool: Its tool.
        argument: The altered argument, a path into it included (``address.city``).
        right: Its right value.
        wrong: What was put in its place.
    """

    flaw: Flaw | None
    drawn: Flaw | None = None
    golden: int | None = None
    step: int | None = None
    tool: str | None = None
    argument: str | None = None
    right: Any = None
    wrong: Any = None


@dataclass(frozen=True, slots=True)
class Script:
    """What a scripted model does in one trial.

    Attributes:
        questions: What it asks the user first, one at a time.
        steps: The tool calls, in order; a ``Ref`` takes a value out of an earlier step's result.
        final: The closing claim, with the facts that the user must be told.
        loops: Whether it repeats its only step for ever.
        injected: What was made wrong.
    """

    questions: tuple[str, ...]
    steps: tuple[GoldenAction, ...]
    final: str
    loops: bool = False
    injected: Injected = Injected(None)

    def step(self, number: int) -> GoldenAction | None:
        """Return the step after ``number`` calls, or None when all are done."""
        if self.loops:
            return self.steps[0]
        return self.steps[number] if number < len(self.steps) else None

    def arguments(self, step: GoldenAction, done: Sequence[Done]) -> dict[str, Any]:
        """Return a step's arguments, each ``Ref`` replaced by what the conversation's results say."""
        results = [d.value for d in done]
        found: dict[str, Any] = with_refs(step.arguments, lambda ref: _pointed_at(ref, results))
        return found


def refers_to(step: GoldenAction, places: Iterable[int]) -> bool:
    """Whether a step takes a value out of the result of one of these steps."""
    return not {ref.action for ref in refs(step.arguments)}.isdisjoint(places)


def golden_script(task: Task) -> Script:
    """Return the script that plays a task right, to the first of its end states."""
    end = task.expectation.end_states[0]
    return Script(questions(task), end.actions, final_text(task))


def questions(task: Task) -> tuple[str, ...]:
    """Return one question for each fact that only the user can give."""
    facts = {fact.topic: fact for fact in task.user.facts}
    return tuple(_question(topic, facts.get(topic)) for topic in task.needs_asking)


def _question(topic: str, fact: UserFact | None) -> str:
    text = f"Could you tell me {topic}"
    phrases = fact.asked_by if fact else ()
    understood = any(any(spans(fold(text), fold(phrase))) for phrase in phrases)
    return f"{text}?" if understood or not phrases else f"{text}: {phrases[0]}?"


def final_text(task: Task, *, facts: bool = True) -> str:
    """Return the closing claim: the facts that the user must be told, then what became of the request."""
    claim = next((text for tag, text in _CLAIMS.items() if tag in task.tags), _CLAIM)
    told = [f"For your information: {fact.any_of[0]}." for fact in task.expectation.required_facts if facts]
    return " ".join([*told, claim])


def reading_step(task: Task, tools: Sequence[Tool]) -> GoldenAction | None:
    """Return a reading call that works in a task at once, or None: a golden one, or one that takes the same values."""
    actions = [action for end in task.expectation.end_states for action in end.actions]
    reading = {tool.name: tool for tool in tools if not tool.writes and not tool.ends_turn}
    for action in actions:
        if action.tool in reading and not list(refs(action.arguments)):
            return action
    known = _literals(actions)
    for tool in reading.values():
        required = tool.parameters.get("required", ())
        if all(name in known for name in required):
            return GoldenAction(tool.name, {name: known[name] for name in required})
    return None


def _literals(actions: Sequence[GoldenAction]) -> dict[str, Any]:
    return {
        name: value for action in reversed(actions) for name, value in action.arguments.items() if not list(refs(value))
    }


def _pointed_at(ref: Ref, results: Sequence[Any]) -> Any:
    """Return what a ``Ref`` points at; after a failed call it points nowhere, and the model makes something up."""
    if ref.action >= len(results):
        return UNKNOWN
    try:
        return followed(results[ref.action], ref.path)
    except LookupError:
        return UNKNOWN
