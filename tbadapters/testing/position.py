"""How far a conversation has come: read from its messages alone, so that a policy keeps no state.

A sub-agent that is called as a tool starts a conversation of its own. The brief that it is given and the report that
it gives back carry what was asked and done, as lines that ``read_position`` understands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from tbadapters.testing.turns import ModelTurn, TurnMessage

BRIEF = "Please handle this customer's request."
DONE = "Done so far:"
NEXT = "Next step:"
_DONE_LINE = re.compile(r"^- (\w+): (.*)$", re.MULTILINE)
_NEXT_LINE = re.compile(rf"^{NEXT} (\w+)", re.MULTILINE)
_CALL_ID = re.compile(r"call_(\d+)x\d+_\d+")


@dataclass(frozen=True, slots=True)
class Done:
    """A suite's tool call that was made, and what came of it."""

    tool: str
    result: str = ""

    @property
    def value(self) -> Any:
        """The result as data, or as it is where it is no JSON."""
        try:
            return json.loads(self.result)
        except ValueError:
            return self.result


@dataclass(frozen=True, slots=True)
class Position:
    """How far a conversation has come.

    Attributes:
        done: The suite's tool calls that were made, those before this conversation (in a brief) first.
        calls_made: All calls that the model made in this conversation.
        delegations: Names of other tools (transfers, specialists) called since the last call of the suite's.
        report: What the last specialist answered.
        briefed: Whether this is a specialist's conversation.
        trial_index: The index of the trial, where the ids of earlier calls tell it.
        texts: The texts of all messages.
    """

    done: tuple[Done, ...]
    calls_made: int = 0
    delegations: tuple[str, ...] = ()
    report: str | None = None
    briefed: bool = False
    trial_index: int | None = None
    texts: tuple[str, ...] = field(default=(), repr=False)

    def said(self, text: str) -> bool:
        """Whether a text occurs in the conversation."""
        return any(text in other for other in self.texts)


def read_position(turn: ModelTurn, suite_tools: AbstractSet[str]) -> Position:
    """Return how far the conversation of a turn has come."""
    results = {message.call_id: message.text for message in turn.messages if message.role == "tool"}
    told = _told(turn.messages, results, suite_tools)
    done: list[Done] = []
    delegations: list[str] = []
    made, index, report = 0, None, None
    for message in turn.messages:
        for call in message.calls:
            made += 1
            known = _CALL_ID.fullmatch(call.id)
            index = int(known[1]) if known else index
            if call.malformed:
                continue
            if call.name in suite_tools:
                done.append(Done(call.name, results.get(call.id, "")))
                delegations.clear()
            else:
                delegations.append(call.name)
                report = results.get(call.id, report)
    texts = tuple(message.text for message in turn.messages)
    briefed = any(BRIEF in message.text for message in turn.messages if message.role in ("user", "system"))
    return Position((*told, *done), made, tuple(delegations), report, briefed, index, texts)


def _told(
    messages: Sequence[TurnMessage], results: Mapping[str, str], suite_tools: AbstractSet[str]
) -> tuple[Done, ...]:
    """Return what a brief or the latest report says was done: the longest list, for each report repeats the brief."""
    own = {call.id for message in messages for call in message.calls if call.name in suite_tools}
    texts = [message.text for message in messages if message.role == "user"]
    texts += [text for call_id, text in results.items() if call_id not in own]
    return max((read_done(text) for text in texts if DONE in text), key=len, default=())


def read_done(text: str) -> tuple[Done, ...]:
    """Return the calls that a brief or a report lists."""
    return tuple(Done(*match.groups()) for match in _DONE_LINE.finditer(text.partition(DONE)[2]))


def write_done(done: Iterable[Done]) -> str:
    """Return calls as the lines that ``read_done`` reads."""
    return "\n".join([DONE, *(f"- {d.tool}: {' '.join(d.result.split())}" for d in done)])


def next_step(report: str | None) -> str | None:
    """Return the tool that a specialist's report says is needed next, or None if all is done."""
    found = _NEXT_LINE.search(report or "")
    return found[1] if found else None


def write_brief(opening: str, answers: Iterable[tuple[str, str]], done: Sequence[Done]) -> str:
    """Return what a specialist is told: the request, what was asked and answered, what was done."""
    lines = [BRIEF, f"Customer: {opening}"]
    for question, answer in answers:
        lines += [f"Asked: {question}", f"Answer: {answer}"]
    return "\n".join([*lines, write_done(done)] if done else lines)


def write_report(done: Sequence[Done], tool: str | None) -> str:
    """Return what a specialist answers: what was done, and which tool is needed next that it does not have."""
    return "\n".join([write_done(done), f"{NEXT} {tool}" if tool else "All steps are done."])


def answers_to(messages: Sequence[TurnMessage], questions: Sequence[str]) -> list[tuple[str, str]]:
    """Return each question that was asked with the user's next message."""
    found = []
    for question in questions:
        asked = next((i for i, m in enumerate(messages) if m.role == "agent" and question in m.text), None)
        if asked is not None:
            reply = next((m.text for m in messages[asked + 1 :] if m.role == "user"), "")
            found.append((question, reply))
    return found
