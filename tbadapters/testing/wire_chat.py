"""OpenAI's chat completions on the wire: requests read, answers written, whole or as a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tbadapters.core.context import TrialRef
from tbadapters.core.messages import Usage
from tbadapters.testing.answers import Answer, WrittenCall, pieces, read_call, read_text
from tbadapters.testing.turns import ModelTurn, OfferedTool, Role, TurnMessage

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "agent",
    "tool": "tool",
    "function": "tool",
}


def read_turn(body: Mapping[str, Any], trial: TrialRef | None) -> ModelTurn:
    """Return the turn that a request's body asks for."""
    tools = tuple(_read_tool(tool["function"]) for tool in body.get("tools") or () if tool.get("type") == "function")
    return ModelTurn(
        model=body["model"],
        messages=tuple(_read_message(message) for message in body["messages"]),
        tools=tools,
        trial=trial,
        parallel=body.get("parallel_tool_calls") is not False,
        wire="chat",
        stream=bool(body.get("stream")),
        body=body,
    )


def _read_tool(function: Mapping[str, Any]) -> OfferedTool:
    return OfferedTool(function["name"], function.get("description") or "", function.get("parameters") or {})


def _read_message(message: Mapping[str, Any]) -> TurnMessage:
    calls = tuple(
        read_call(call["function"]["name"], call["function"]["arguments"], call["id"])
        for call in message.get("tool_calls") or ()
    )
    text = read_text(message.get("content")) or read_text(message.get("refusal"))
    return TurnMessage(_ROLES[message["role"]], text, calls, message.get("tool_call_id") or "")


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Whether an answer to this request tells its tokens: a stream does only when it is asked to."""
    return not body.get("stream") or bool((body.get("stream_options") or {}).get("include_usage"))


def write_answer(answer: Answer) -> dict[str, Any]:
    """Return the answer as one JSON body."""
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.text,
        "refusal": answer.refusal,
        "annotations": [],
    }
    if answer.calls:
        message["tool_calls"] = [_call(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish_reason}
    return {**_head(answer, "chat.completion"), "choices": [choice], "usage": write_usage(answer.usage)}


def write_stream(answer: Answer, *, include_usage: bool) -> Iterator[str]:
    """Yield the answer as server-sent events, the last one ``[DONE]``."""
    head = _head(answer, "chat.completion.chunk")
    if include_usage:
        head["usage"] = None
    for delta in _deltas(answer):
        yield _event({**head, "choices": [_choice(delta, None)]})
    yield _event({**head, "choices": [_choice({}, answer.finish_reason)]})
    if include_usage:
        yield _event({**head, "choices": [], "usage": write_usage(answer.usage)})
    yield "data: [DONE]\n\n"


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": None if answer.calls or answer.refusal else "", "refusal": None}
    for piece in pieces(answer.text or ""):
        yield {"content": piece}
    for piece in pieces(answer.refusal or ""):
        yield {"refusal": piece}
    for place, call in enumerate(answer.calls):
        start = {"index": place, **_call(call)}
        start["function"] = {"name": call.name, "arguments": ""}
        yield {"tool_calls": [start]}
        for piece in pieces(call.arguments):
            yield {"tool_calls": [{"index": place, "function": {"arguments": piece}}]}


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": kind,
        "created": answer.created,
        "model": answer.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _choice(delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _call(call: WrittenCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def write_usage(usage: Usage) -> dict[str, Any]:
    """Return the tokens as chat completions tell them."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n"
