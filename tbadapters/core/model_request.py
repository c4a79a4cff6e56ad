"""What a model request on the wire asks, whichever API it speaks: by its path and body, never by who made it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PATHS = (
    "/chat/completions",
    "/completions",
    "/responses",
    "/messages",
    "/chat",
    "/generate",
    ":generateContent",
    ":streamGenerateContent",
    ":rawPredict",
    ":streamRawPredict",
)
_SAID = ("messages", "input", "contents", "prompt")
_INSTRUCTIONS = ("instructions", "system", "systemInstruction", "system_instruction")
_CALL_IDS = ("tool_call_id", "call_id", "tool_use_id")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model is asked, by digests that are the same in every API.

    Attributes:
        instructions: Of the system's texts.
        tools: The names of the tools offered.
        waiting: Of each text of the user and each tool result that waits for an answer: those after the model's last
            message; of the whole conversation where none does.
        texts: Of all texts of the user and all tool results.
    """

    instructions: str
    tools: frozenset[str]
    waiting: frozenset[str]
    texts: frozenset[str]

    def asks_again(self, other: Asked) -> bool:
        """Whether it asks what ``other`` asked: the same waits for an answer, under the same instructions or tools.

        The model, the API and what is left of the history may differ.
        """
        akin = self.instructions == other.instructions or (bool(self.tools) and self.tools == other.tools)
        return akin and self.waiting == other.waiting

    def goes_on_from(self, other: Asked) -> bool:
        """Whether it goes on from ``other``: same instructions and tools, and it holds what waited there.

        A caller's request is none that goes on from its sub-agent's: though both may hold the user's very words, their
        instructions or tools differ.
        """
        return (self.instructions, self.tools) == (other.instructions, other.tools) and other.waiting <= self.texts


def is_model_request(request: Any) -> bool:
    """Whether a request asks a model for an answer; embeddings, moderations and lists of models do not."""
    return request.method == "POST" and str(request.url.path).rstrip("/").endswith(_PATHS)


def asked(request: Any) -> Asked | None:
    """Return what a model is asked, or None if the request is no model request or its body can't be read again."""
    if not is_model_request(request):
        return None
    try:
        body = json.loads(request.content)
    except (ValueError, RuntimeError):  # no JSON; or a body that is streamed
        return None
    said = [body[name] for name in _SAID if body.get(name) is not None] if isinstance(body, dict) else []
    if not said:
        return None
    instructions = [_text(body[name]) for name in _INSTRUCTIONS if body.get(name)]
    texts: list[str] = []
    waiting = 0  # where the texts that wait for an answer begin
    for item in said[0] if isinstance(said[0], list) else said[:1]:
        speaker = _speaker(item)
        if speaker == "system":
            instructions.append(_text(item))
        elif speaker == "model":
            waiting = len(texts)
        else:
            texts += _digests(item)
    left = frozenset(texts[waiting:]) or frozenset({_digest(json.dumps(said[0], sort_keys=True))})
    return Asked(_digest("\n".join(instructions)), frozenset(_tools(body)), left, frozenset(texts))


def _speaker(item: Any) -> str:
    if not isinstance(item, dict):
        return "user"
    role, kind = item.get("role"), str(item.get("type"))
    if role in ("system", "developer"):
        return "system"
    if role in ("assistant", "model") or kind in ("reasoning", "item_reference") or kind.endswith("_call"):
        return "model"
    return "user"


def _digests(item: Any) -> list[str]:
    """Return a digest of each tool result and of the remaining text of one message."""
    content = item.get("content", item.get("parts")) if isinstance(item, dict) else None
    parts = content if isinstance(content, list) else []
    results = [part for part in parts if _call_id(part) is not None]
    if not results:
        return [_digest(f"{_call_id(item) or ''}:{_text(item)}")]
    rest = _text([part for part in parts if _call_id(part) is None])
    return [_digest(f"{_call_id(part)}:{_text(part)}") for part in results] + ([_digest(f":{rest}")] if rest else [])


def _call_id(item: Any) -> str | None:
    """Return the id of the tool call whose result this is; a call's results are told apart by it, not by their text."""
    if not isinstance(item, dict):
        return None
    if isinstance(answer := item.get("functionResponse"), dict):
        return str(answer.get("id") or answer.get("name"))
    return next((str(item[name]) for name in _CALL_IDS if item.get(name)), None)


def _text(value: Any) -> str:
    """Return the text of a message, however its API nests it; of what is no text its JSON."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return " ".join(filter(None, map(_text, value)))
    if isinstance(value, dict):
        for name in ("text", "content", "output", "parts", "functionResponse", "response"):
            if isinstance(value.get(name), str | list | dict):
                return _text(value[name])
    return json.dumps(value, sort_keys=True)


def _tools(body: dict[str, Any]) -> Iterator[str]:
    """Yield the names of the tools that a model is offered; what is built differently from all APIs has none."""
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            declared = tool.get("functionDeclarations")
            for one in declared if isinstance(declared, list) else [tool.get("function", tool)]:
                if isinstance(one, dict):
                    yield str(one.get("name") or one.get("type"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
