"""A scripted model's answer, ready to be written in either wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tbadapters.core.messages import Usage
from tbadapters.testing.turns import Call, FaultKind, Reply

REFUSAL = "I'm sorry, but I can't help with that."


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A tool call as it goes over the wire: its arguments are a JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says in answer to one request.

    Attributes:
        id: A word that is unique on the server, from which the ids of messages and calls are made.
        model: The model's name.
        created: Unix time, seconds.
        text: The text, or None.
        refusal: The refusal, or None.
        calls: The tool calls.
        filtered: Whether a content filter cut the answer.
        usage: The tokens.
    """

    id: str
    model: str
    created: int
    text: str | None
    refusal: str | None
    calls: tuple[WrittenCall, ...]
    filtered: bool
    usage: Usage

    @property
    def finish_reason(self) -> Literal["stop", "tool_calls", "content_filter"]:
        """Why the model stopped, in the words of chat completions."""
        if self.filtered:
            return "content_filter"
        return "tool_calls" if self.calls else "stop"


def faulted(reply: Reply, fault: FaultKind | None) -> Reply:
    """Return what is left of a reply that the model refuses or that a content filter cuts."""
    if fault == "refusal":
        return Reply(refusal=REFUSAL)
    if fault == "content_filter":
        return Reply(text="")
    return reply


def write_calls(calls: tuple[Call, ...], answer_id: str, *, malformed: bool) -> tuple[WrittenCall, ...]:
    """Return calls with their arguments as text; ``malformed`` leaves out the first one's closing brace."""
    written = []
    for place, call in enumerate(calls):
        arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
        if malformed and place == 0:
            arguments = arguments[:-1]
        written.append(WrittenCall(call.id or f"call_{answer_id}_{place}", call.name, arguments))
    return tuple(written)


def read_call(name: str, arguments: object, call_id: str) -> Call:
    """Return a call that was read from a conversation; arguments that are no JSON object make it ``malformed``."""
    try:
        data = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return Call(name, {}, call_id, malformed=True)
    return Call(name, data, call_id)


def read_text(content: Any) -> str:
    """Return the text of a message's content: a string, or a list of parts of which the texts and refusals are joined."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(map(_part_text, content))
    return json.dumps(content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part.get("text") or part.get("refusal") or "")


def pieces(text: str, size: int = 24) -> Iterator[str]:
    """Cut a text into the deltas of a stream."""
    for start in range(0, len(text), size):
        yield text[start : start + size]
