"""How many tokens a scripted model counts: a deterministic rule of thumb, four characters a token.

The count depends on the conversation alone, never on the order in which requests arrive, so that repeated and resumed
runs cost the same. Ids of calls and messages are not counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from tbadapters.core.messages import Usage
from tbadapters.testing.turns import Call, ModelTurn, Reply, TurnMessage

PER_MESSAGE = 4
REASONING_PER_REPLY = 12
REASONING_PER_CALL = 8


def count_text(text: str) -> int:
    """Return the tokens of a text: a fourth of its characters, rounded up."""
    return (len(text) + 3) // 4


def count_usage(turn: ModelTurn, reply: Reply) -> Usage:
    """Return the tokens of one request.

    Cached is what the model was shown before: in a conversation that goes on, the tools and everything before its
    last answer. Reasoning is a fixed amount a reply and a call, and part of the output.
    """
    tools = sum(count_text(t.name + t.description + _json(t.parameters)) for t in turn.tools)
    sizes = [_count_message(message) for message in turn.messages]
    answered = [i for i, message in enumerate(turn.messages) if message.role == "agent"]
    cached = tools + sum(sizes[: answered[-1]]) if answered else 0
    calls = reply.calls
    reasoning = REASONING_PER_REPLY + REASONING_PER_CALL * len(calls)
    visible = count_text(reply.text or "") + count_text(reply.refusal or "") + _count_calls(calls)
    return Usage(tools + sum(sizes), cached, reasoning + visible, reasoning)


def _count_message(message: TurnMessage) -> int:
    return PER_MESSAGE + count_text(message.text) + _count_calls(message.calls)


def _count_calls(calls: Iterable[Call]) -> int:
    return sum(count_text(call.name + _json(call.arguments)) for call in calls)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, default=str)
