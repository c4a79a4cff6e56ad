"""What a test function looks at (its ``x``), made of what an attempt left behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tbadapters.core.grading import Evidence
from tbadapters.core.messages import Message
from tbadapters.core.plain import plain
from tbadapters.core.suite import Task
from tbadapters.core.tools import ToolCall

_ROLES = {"agent": "assistant", "user": "user", "system": "system"}


def context(task: Task, evidence: Evidence, effects: Mapping[str, Any], init: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context, by field, as ``function_process.py`` reads it.

    Args:
        task: The task.
        evidence: What the attempt left behind.
        effects: What each server answered for its effects.
        init: What each server's init answered.
    """
    calls = [_call(call) for call in evidence.tool_calls]
    messages = [*_told_before(task), *_told(evidence, calls)]
    texts = [one["text"] for one in messages if one["kind"] == "text" and one["role"] == "assistant" and one["text"]]
    return {
        "response": texts[-1] if texts else "",
        "effects": effects,
        "tool_calls": calls,
        "messages": messages,
        "init_result": init,
    }


def _told_before(task: Task) -> list[dict[str, Any]]:
    policy = [Message(task.instructions, "system")] if task.instructions else []
    return [_text(message) for message in (*policy, *task.history)]


def _told(evidence: Evidence, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages and calls as they followed each other."""
    if not evidence.transcript:
        return [_text(message) for message in evidence.messages]
    told: list[dict[str, Any]] = []
    for entry in evidence.transcript:
        if entry.kind in ("user", "agent"):
            told.append(_text(Message(entry.text, entry.kind)))
        elif entry.kind == "tool_call" and entry.data:
            call = calls[entry.data["index"]]
            told += [{"kind": "call", **call}, {"kind": "response", **call}]
    return told


def _text(message: Message) -> dict[str, Any]:
    return {"kind": "text", "role": _ROLES[message.role], "text": message.text}


def _call(call: ToolCall) -> dict[str, Any]:
    arguments = plain(call.arguments)
    return {"id": f"call_{call.index}", "name": call.name, "arguments": arguments, "content": call.result.text}
