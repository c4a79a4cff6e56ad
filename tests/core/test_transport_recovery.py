"""Which faults of a provider an agent overcame, and which are left."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2
import pytest

from tbadapters.core.errors import AccessFault, ProviderFault
from tbadapters.core.transport import ProviderFaults

TOOLS = [{"type": "function", "function": {"name": "ask_expert"}}]


def chat(*messages, **more):
    said = [{"role": role, "content": text} for role, text in messages]
    return httpx2.Request("POST", "http://localhost/v1/chat/completions", json={"model": "m", "messages": said, **more})


def responses(*messages, **more):
    said = [{"role": role, "content": text} for role, text in messages]
    return httpx2.Request("POST", "http://localhost/v1/responses", json={"model": "n", "input": said, **more})


def happens(faults, request, status=200, body=b""):
    faults.began(request)
    faults.answered(request, status, {})
    faults.ended(request, status, body)


def refused(faults, request, status=429, code=None):
    happens(faults, request, status, json.dumps({"error": {"code": code, "message": "no"}}).encode())


@pytest.mark.parametrize("code", ["rate_limit_exceeded", "insufficient_quota"])
def test_fallback_on_another_api_recovers(code):
    """A fallback to another API, asked the same, overcomes even refused access."""
    faults = ProviderFaults()
    refused(faults, chat(("system", "Be kind."), ("user", "hi")), code=code)
    assert faults.unrecovered() is not None
    happens(faults, responses(("user", "hi"), instructions="Be kind."))
    assert faults.unrecovered() is None


@pytest.mark.parametrize(
    "later",
    [
        chat(("system", "Be kind."), ("user", "two")),
        chat(("user", "two"), tools=TOOLS),
        chat(("system", "Be kind."), ("user", "two"), ("assistant", "Try later."), ("user", "three"), tools=TOOLS),
    ],
    ids=["trimmed", "without instructions", "a later turn"],
)
def test_history_need_not_be_the_same(later):
    """A request with a trimmed history, and one of a later turn of the same conversation, overcome a fault."""
    faults = ProviderFaults()
    history = [("system", "Be kind."), ("user", "one"), ("assistant", "yes"), ("user", "two")]
    refused(faults, chat(*history, tools=TOOLS))
    happens(faults, later)
    assert faults.unrecovered() is None


@pytest.mark.parametrize("instructions", [[("system", "You are an expert.")], []])
def test_caller_does_not_recover_its_sub_agent(instructions):
    """A sub-agent that was asked in the user's very words stays failed though its caller's requests succeed."""
    faults = ProviderFaults()
    caller = [("user", "hi")]
    happens(faults, chat(*caller, tools=TOOLS))
    refused(faults, chat(*instructions, *caller))
    told = [{"role": "tool", "tool_call_id": "c1", "content": "An error occurred."}]
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": []}, *told]
    happens(faults, chat(messages=said, tools=TOOLS))
    happens(faults, chat(("user", "hi"), ("assistant", "Sorry."), ("user", "Well?"), tools=TOOLS))
    assert faults.unrecovered().code == "rate_limit"


def test_request_that_began_before_the_fault_recovers_nothing():
    """Only a request that began after the fault can have overcome it."""
    faults = ProviderFaults()
    slow = chat(("user", "hi"))
    faults.began(slow)
    refused(faults, chat(("user", "hi")))
    faults.answered(slow, 200, {})
    faults.ended(slow, 200, b"")
    assert faults.unrecovered() is not None
    happens(faults, chat(("user", "hi")))
    assert faults.unrecovered() is None


def test_agents_own_mistake_on_the_retry_is_the_agents():
    """A retry that the endpoint refuses as malformed leaves no fault of the provider."""
    faults = ProviderFaults()
    refused(faults, chat(("user", "hi")))
    refused(faults, chat(("user", "hi")), status=400)
    assert faults.unrecovered() is None


def test_swallowed_refusal_is_no_access_fault():
    """Refused access that an agent swallowed is an ordinary fault of the provider: it stops no run."""
    faults = ProviderFaults()
    refused(faults, chat(("user", "hi")), status=401)
    assert type(faults.unrecovered()) is AccessFault
    swallowed = faults.unrecovered(swallowed=True)
    assert type(swallowed) is ProviderFault
    assert swallowed.code == "authentication"


def test_embeddings_are_no_model_requests():
    """A missing embedding model, a memory that is optional, is nobody's fault."""
    faults = ProviderFaults()
    body = {"model": "emb", "input": "hi"}
    refused(faults, httpx2.Request("POST", "http://localhost/v1/embeddings", json=body), 404, "model_not_found")
    assert faults.seen == ()


def answering(body):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.mark.parametrize(
    ("error", "code", "access"),
    [
        ({"code": 429, "message": "slow down"}, "rate_limit", False),
        ({"code": "402"}, "payment_required", True),
        ({"code": "insufficient_quota"}, "insufficient_quota", True),
        ({"type": "server_error"}, "server_error", False),
        ({"code": "content_filter"}, None, None),
        ({"code": 400}, None, None),
        (None, None, None),
    ],
)
def test_error_in_an_answer_with_status_200(error, code, access):
    """An error in the body of an answer with status 200 counts by its code."""
    faults = ProviderFaults()
    server = answering(json.dumps({"error": error, "filler": "x" * 100}).encode())
    try:
        with faults.observe():
            url = f"http://127.0.0.1:{server.server_port}/v1/responses"
            httpx2.post(url, json={"model": "m", "input": "hi"})
    finally:
        server.shutdown()
        server.server_close()
    assert [(seen.code, seen.access) for seen in faults.seen] == ([] if code is None else [(code, access)])


def test_long_answers_are_not_kept():
    """An answer that is too long to be an error is passed on and not kept."""
    faults = ProviderFaults()
    body = json.dumps({"error": {"code": 429}, "filler": "x" * 100_000}).encode()
    server = answering(body)
    try:
        with faults.observe():
            url = f"http://127.0.0.1:{server.server_port}/v1/responses"
            assert httpx2.post(url, json={"model": "m", "input": "hi"}).content == body
    finally:
        server.shutdown()
        server.server_close()
    assert faults.seen == ()


def test_no_credit_is_refused_access():
    """A 402 is refused access: no further request can succeed."""
    faults = ProviderFaults()
    refused(faults, chat(("user", "hi")), status=402)
    assert faults.unrecovered().code == "payment_required"
    assert type(faults.unrecovered()) is AccessFault
