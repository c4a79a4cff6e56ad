"""What a model is asked is told the same whichever API carries it."""

import json

import httpx
import pytest

from tbadapters.core.model_request import asked, is_model_request


def request(path, body, method="POST"):
    return httpx.Request(method, f"http://localhost/v1{path}", content=json.dumps(body).encode())


CHAT = (
    "/chat/completions",
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "Close  my account"}]},
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "close", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "closed"},
        ],
        "tools": [{"type": "function", "function": {"name": "close"}}],
    },
)
RESPONSES = (
    "/responses",
    {
        "model": "m",
        "instructions": "Be kind.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Close my account"}]},
            {"type": "function_call", "call_id": "c1", "name": "close", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "closed"},
        ],
        "tools": [{"type": "function", "name": "close"}],
    },
)
MESSAGES = (
    "/messages",
    {
        "model": "m",
        "system": [{"type": "text", "text": "Be kind."}],
        "messages": [
            {"role": "user", "content": "Close my account"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "close", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "closed"}]},
        ],
        "tools": [{"name": "close", "input_schema": {}}],
    },
)
CONTENTS = (
    "/models/m:generateContent",
    {
        "systemInstruction": {"parts": [{"text": "Be kind."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Close my account"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "close", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "response": {"output": "closed"}}}]},
        ],
        "tools": [{"functionDeclarations": [{"name": "close"}]}],
    },
)


@pytest.mark.parametrize("other", [RESPONSES, MESSAGES, CONTENTS], ids=["responses", "messages", "contents"])
def test_every_api_asks_the_same(other):
    """One conversation has one digest in the four APIs: instructions, tools, what waits, what was said."""
    assert asked(request(*other)) == asked(request(*CHAT))


def test_results_of_other_calls_do_not_wait():
    """The same text as the result of another tool call is something else."""
    path, body = RESPONSES
    items = [*body["input"][:2], {**body["input"][2], "call_id": "c2"}]
    assert asked(request(path, {**body, "input": items})).waiting != asked(request(path, body)).waiting


@pytest.mark.parametrize("path", ["/embeddings", "/moderations", "/models", "/messages/count_tokens", "/rerank"])
def test_other_paths_ask_no_model(path):
    """Embeddings, moderations and their like are no model requests, though their bodies look like one."""
    assert not is_model_request(request(path, {"model": "m", "input": "hi"}))
    assert asked(request(path, {"model": "m", "input": "hi"})) is None


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"model": "m"},
        {"input": 3, "tools": "none", "system": {"a": [1]}},
        {"messages": ["hi", 3, None, {"role": 5, "content": {"x": None}}, {"content": [None, {"call_id": 1}]}]},
        {"prompt": [1, 2], "tools": [1, {"function": 2}, {"functionDeclarations": 3}, {"functionDeclarations": [4]}]},
        {"input": "\ud83d"},
    ],
)
def test_odd_bodies_are_no_error(body):
    """Whatever an agent's own code posts, looking at it raises nothing: it would reach the agent's client."""
    asked(request("/responses", body))
