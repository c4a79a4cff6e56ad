"""OpenAI's responses on the wire: requests read, answers written, whole or as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from tbadapters.core.context import TrialRef
from tbadapters.core.messages import Usage
from tbadapters.testing.answers import Answer, WrittenCall, pieces, read_call, read_text
from tbadapters.testing.turns import ModelTurn, OfferedTool, Role, TurnMessage

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}


def read_turn(
    body: Mapping[str, Any], trial: TrialRef | None, previous: Sequence[Mapping[str, Any]] = ()
) -> tuple[ModelTurn, list[Mapping[str, Any]]]:
    """Return the turn that a request's body asks for, and the items of its conversation.

    Args:
        body: The request's body.
        trial: The trial that asks.
        previous: The conversation's items that the server keeps (``previous_response_id``).
    """
    given = body["input"]
    items = [*previous, *([{"role": "user", "content": given}] if isinstance(given, str) else given)]
    system = [TurnMessage("system", body["instructions"])] if body.get("instructions") else []
    turn = ModelTurn(
        model=body["model"],
        messages=(*system, *_merge(_read_items(items))),
        tools=tuple(_read_tool(tool) for tool in body.get("tools") or () if tool.get("type") == "function"),
        trial=trial,
        parallel=body.get("parallel_tool_calls") is not False,
        wire="responses",
        stream=bool(body.get("stream")),
        body=body,
    )
    return turn, items


def _read_tool(tool: Mapping[str, Any]) -> OfferedTool:
    return OfferedTool(tool["name"], tool.get("description") or "", tool.get("parameters") or {})


def _read_items(items: Iterable[Mapping[str, Any]]) -> Iterator[TurnMessage]:
    for item in items:
        match item.get("type", "message"):
            case "message":
                yield TurnMessage(_ROLES[item["role"]], read_text(item["content"]))
            case "function_call":
                yield TurnMessage("agent", "", (read_call(item["name"], item["arguments"], item["call_id"]),))
            case "function_call_output":
                yield TurnMessage("tool", read_text(item["output"]), (), item["call_id"])


def _merge(messages: Iterable[TurnMessage]) -> list[TurnMessage]:
    """Join what the model said in one answer: its message and its calls are items of their own on this wire."""
    merged: list[TurnMessage] = []
    for message in messages:
        last = merged[-1] if merged else None
        if last and last.role == message.role == "agent":
            merged[-1] = TurnMessage("agent", last.text + message.text, last.calls + message.calls)
        else:
            merged.append(message)
    return merged


def write_answer(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer as one JSON body."""
    return {
        **_head(answer, body),
        "status": "incomplete" if answer.filtered else "completed",
        "incomplete_details": {"reason": "content_filter"} if answer.filtered else None,
        "output": write_output(answer),
        "usage": write_usage(answer.usage),
    }


def write_output(answer: Answer) -> list[dict[str, Any]]:
    """Return the answer's items: its message, then its calls."""
    items: list[dict[str, Any]] = []
    if answer.refusal is not None:
        items.append(_message(answer, [{"type": "refusal", "refusal": answer.refusal}]))
    elif answer.text is not None:
        items.append(_message(answer, [_text_part(answer.text)]))
    return items + [_call(call) for call in answer.calls]


def write_stream(answer: Answer, body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the answer as server-sent events."""
    numbers = count()
    pending = {**_head(answer, body), "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    last = "response.incomplete" if answer.filtered else "response.completed"

    def event(kind: str, **data: Any) -> str:
        payload = {"type": kind, "sequence_number": next(numbers), **data}
        return f"event: {kind}\ndata: {json.dumps(payload, separators=(',', ':'))}\n\n"

    yield event("response.created", response=pending)
    yield event("response.in_progress", response=pending)
    for place, item in enumerate(write_output(answer)):
        changes = _message_events(item) if item["type"] == "message" else _call_events(item)
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        start = {**item, **empty, "status": "in_progress"}
        yield event("response.output_item.added", output_index=place, item=start)
        for kind, data in changes:
            yield event(kind, output_index=place, item_id=item["id"], **data)
        yield event("response.output_item.done", output_index=place, item=item)
    yield event(last, response=write_answer(answer, body))


def _message_events(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    (part,) = item["content"]
    name, field = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    extra: dict[str, Any] = {} if name == "refusal" else {"logprobs": []}
    yield "response.content_part.added", {"content_index": 0, "part": {**part, field: ""}}
    for piece in pieces(part[field]):
        yield f"response.{name}.delta", {"content_index": 0, "delta": piece, **extra}
    yield f"response.{name}.done", {"content_index": 0, field: part[field], **extra}
    yield "response.content_part.done", {"content_index": 0, "part": part}


def _call_events(item: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for piece in pieces(item["arguments"]):
        yield "response.function_call_arguments.delta", {"delta": piece}
    yield "response.function_call_arguments.done", {"name": item["name"], "arguments": item["arguments"]}


def _head(answer: Answer, body: Mapping[str, Any]) -> dict[str, Any]:
    echoed = {
        name: body.get(name)
        for name in ("instructions", "metadata", "previous_response_id", "temperature", "top_p", "max_output_tokens")
    }
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "model": answer.model,
        "error": None,
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        **echoed,
    }


def _message(answer: Answer, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"msg_{answer.id}",
        "role": "assistant",
        "status": "incomplete" if answer.filtered else "completed",
        "content": content,
    }


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call(call: WrittenCall) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def write_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens as responses tell them."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_input_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
