"""The transport is watched while somebody watches, and a provider's faults are seen where they happen."""

import asyncio
import gzip
import json
import sys

import httpx
import httpx2
import openai
import pytest

from tbadapters.core import transport_hooks
from tbadapters.core.errors import AccessFault, ProviderFault
from tbadapters.core.transport import ProviderFaults, TransportHook, observe_transport
from tbadapters.core.transport_hooks import _decoded
from tbadapters.testing import Faults, FixedPolicy, Reply, ScriptedModelServer

TARGETS = [(m.AsyncHTTPTransport, "handle_async_request") for m in (httpx, httpx2)] + [
    (m.HTTPTransport, "handle_request") for m in (httpx, httpx2)
]
HELLO = [{"role": "user", "content": "hi"}]


def found():
    return [owner.__dict__[name] for owner, name in TARGETS]


def client(server, **options):
    return openai.AsyncOpenAI(base_url=server.url, api_key="k", **{"max_retries": 0, **options})


async def ask(model, text="hi", **options):
    return await model.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **options)


def in_order(*kinds):
    return lambda number: kinds[number] if number < len(kinds) else None


class Events(TransportHook):
    def __init__(self):
        self.seen = []

    def request(self, request):
        request.headers["x-mark"] = "here"
        self.seen.append("request")

    def response(self, request, status, headers):
        self.seen.append(status)

    def ended(self, request, status, body):
        self.seen.append(("ended", body))

    def failed(self, request, error):
        self.seen.append(type(error).__name__)


def test_restored_exactly():
    """What was found is put back when the last of several overlapping users is gone, not before."""
    before = found()
    first, second = observe_transport(Events()), observe_transport(Events())
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert all(a is not b for a, b in zip(found(), before, strict=True))
    second.__exit__(None, None, None)
    assert all(a is b for a, b in zip(found(), before, strict=True))


def test_a_patch_on_top_survives(monkeypatch):
    """What someone patched on top of us stays in place, and our wrapper below it falls silent."""
    events, before = Events(), httpx2.HTTPTransport.handle_request
    with observe_transport(events):
        ours = httpx2.HTTPTransport.handle_request

        def theirs(self, request):
            return ours(self, request)

        monkeypatch.setattr(httpx2.HTTPTransport, "handle_request", theirs)
    assert httpx2.HTTPTransport.handle_request is theirs
    with ScriptedModelServer(FixedPolicy(["ok"])) as server:
        assert httpx2.get(f"{server.url}/models").status_code == 200
        assert events.seen == []
        with observe_transport(events):
            httpx2.get(f"{server.url}/models")
        assert events.seen == ["request", 200, ("ended", b"")]
    monkeypatch.undo()
    with observe_transport(events):
        pass
    assert httpx2.HTTPTransport.handle_request is before


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_sync_requests_are_seen(library):
    """A synchronous client's request, status and end of body are told, and a hook may add headers."""
    events = Events()
    with ScriptedModelServer(FixedPolicy(["ok"])) as server, observe_transport(events):
        body = {"model": "m", "messages": HELLO}
        library.post(f"{server.url}/chat/completions", json=body)
        assert server.requests[0].headers["x-mark"] == "here"
    assert events.seen == ["request", 200, ("ended", b"")]


async def test_async_stream_is_seen_to_its_end():
    """A streamed answer is told as ended only when its body was read, one that breaks off as failed."""
    events = Events()
    plan = in_order(None, "cut_stream")
    async with ScriptedModelServer(FixedPolicy(["a long answer " * 20]), faults=plan) as server:
        with observe_transport(events):
            async with client(server) as model:
                stream = await ask(model, stream=True)
                assert events.seen == ["request", 200]
                async for _ in stream:
                    pass
                assert events.seen[2:] == [("ended", b"")]
                with pytest.raises(openai.APIConnectionError):
                    async for _ in await ask(model, stream=True):
                        pass
                assert events.seen[3:] == ["request", 200, "RemoteProtocolError"]


async def test_same_hook_twice_is_told_once():
    """A hook that is installed by many users is told once a request."""
    events = Events()
    async with ScriptedModelServer(FixedPolicy(["ok"])) as server, client(server) as model:
        with observe_transport(events), observe_transport(events):
            await ask(model)
    assert events.seen == ["request", 200, ("ended", b"")]


def test_missing_library_is_no_error(monkeypatch):
    """A library that is not installed is passed over."""
    monkeypatch.setitem(sys.modules, "httpx", None)
    transport_hooks._module.cache_clear()
    before = httpx2.HTTPTransport.handle_request
    with observe_transport(Events()):
        assert httpx2.HTTPTransport.handle_request is not before
    assert httpx2.HTTPTransport.handle_request is before
    transport_hooks._module.cache_clear()


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_compressed_error_bodies_are_read(library):
    """A gzip body is decoded, and a body that is not what it says is given as it is."""
    response = library.Response(429, headers={"content-encoding": "gzip"}, stream=library.ByteStream(b""))
    assert _decoded(response, gzip.compress(b"quota")) == b"quota"
    assert _decoded(response, b"plain") == b"plain"


FAULTS = [
    ("rate_limit", ProviderFault, "rate_limit"),
    ("server_error", ProviderFault, "server_error"),
    ("overloaded", ProviderFault, "server_error"),
    ("request_timeout", ProviderFault, "timeout"),
    ("conflict", ProviderFault, "conflict"),
    ("quota", AccessFault, "insufficient_quota"),
    ("forbidden", AccessFault, "permission"),
    ("cut_stream", ProviderFault, "connection"),
]


@pytest.mark.parametrize(("kind", "fault", "code"), FAULTS)
async def test_provider_fault_is_classified(kind, fault, code):
    """Each fault of the provider is seen with its owner and code, though the agent swallows it."""
    faults = ProviderFaults()
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=in_order(kind)) as server, client(server) as model:
        with faults.observe(), pytest.raises(openai.APIError):
            await ask(model)
    left = faults.unrecovered()
    assert type(left) is fault
    assert left.code == code
    assert left.retry_after == (0.02 if kind == "rate_limit" else None)
    assert faults.seen[0].host == "127.0.0.1"


async def test_context_length_is_the_agents():
    """A context that is too long is not the provider's fault."""
    faults = ProviderFaults()
    plan = in_order("context_length")
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=plan) as server, client(server) as model:
        with faults.observe(), pytest.raises(openai.BadRequestError):
            await ask(model)
    assert faults.seen == ()


async def test_wrong_key_and_model_are_access_faults():
    """A refused key and a missing model stop the run."""
    faults = ProviderFaults()
    async with ScriptedModelServer({"other": FixedPolicy(["ok"])}, api_key="right") as server:
        with faults.observe():
            async with client(server) as model:
                with pytest.raises(openai.AuthenticationError):
                    await ask(model)
            async with client(server).with_options(api_key="right") as model:
                with pytest.raises(openai.NotFoundError):
                    await ask(model, "other question")
    assert [(s.status, s.code, s.access) for s in faults.seen] == [
        (401, "invalid_api_key", True),
        (404, "model_not_found", True),
    ]


async def test_timeout_and_refused_connection():
    """A read timeout and a port where nobody listens are the provider's."""
    faults = ProviderFaults()
    settings = Faults(timeout=1.0, stall_seconds=5)
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=settings) as server:
        with faults.observe():
            async with client(server, timeout=0.2) as model:
                with pytest.raises(openai.APITimeoutError):
                    await ask(model)
            url = server.url
    with faults.observe():
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as model:
            with pytest.raises(openai.APIConnectionError):
                await ask(model)
    assert [seen.code for seen in faults.seen] == ["timeout", "connection"]


async def test_retry_of_the_same_conversation_recovers():
    """A fault is mended by a later success of the same conversation, whichever model, and by no other."""
    faults = ProviderFaults()
    plan = in_order("rate_limit", None, "server_error", None)
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=plan) as server, client(server) as model:
        with faults.observe():
            with pytest.raises(openai.RateLimitError):
                await ask(model)
            await model.chat.completions.create(model="fallback", messages=HELLO)
            assert faults.unrecovered() is None
            with pytest.raises(openai.InternalServerError):
                await ask(model, "sub-agent's question")
            await ask(model, "another")
    assert faults.unrecovered().code == "server_error"


async def test_clients_own_retry_recovers():
    """The openai client's own retries leave no fault behind, and are seen all the same."""
    faults = ProviderFaults()
    plan = in_order("rate_limit", "rate_limit")
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=plan) as server:
        with faults.observe():
            async with client(server, max_retries=2) as model:
                await model.responses.create(model="m", input="hi")
    assert [s.recovered for s in faults.seen] == [True, True]
    assert faults.unrecovered() is None


async def test_faults_belong_to_the_attempt_that_met_them():
    """Of concurrent attempts in one loop only the one whose request failed sees the fault."""

    def policy(turn):
        return Reply(fault="server_error") if turn.messages[-1].text == "3" else "ok"

    async def attempt(model, number):
        faults = ProviderFaults()
        with faults.observe():
            task = asyncio.get_running_loop().create_task(ask(model, str(number)))
            await asyncio.wait({task})
            task.exception()
        return faults.unrecovered()

    async with ScriptedModelServer(policy) as server, client(server) as model, asyncio.TaskGroup() as group:
        tasks = [group.create_task(attempt(model, n)) for n in range(8)]
        await asyncio.wait(tasks)
    assert [t.result() is not None for t in tasks] == [n == 3 for n in range(8)]


async def test_a_stream_belongs_to_the_attempt_that_opened_it():
    """A stream that breaks off is the fault of the attempt that made the request, wherever it is read."""
    faults = ProviderFaults()
    plan = in_order("cut_stream")
    async with (
        ScriptedModelServer(FixedPolicy(["a long answer " * 20]), faults=plan) as server,
        client(server) as model,
    ):
        with faults.observe():
            stream = await ask(model, stream=True)
        with pytest.raises(openai.APIConnectionError):
            async for _ in stream:
                pass
    assert faults.unrecovered().code == "connection"


async def test_refused_access_comes_first():
    """Of several faults that are left, one that another attempt can't help is told."""
    faults = ProviderFaults()
    plan = in_order("quota", "rate_limit")
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=plan) as server, client(server) as model:
        with faults.observe():
            for text in ("one", "two"):
                with pytest.raises(openai.RateLimitError):
                    await ask(model, text)
    assert faults.unrecovered().code == "insufficient_quota"


async def test_other_requests_are_nobodys_fault():
    """A failed request that is no model request is not a provider's fault."""
    faults = ProviderFaults()
    async with ScriptedModelServer(FixedPolicy(["ok"]), api_key="right") as server, httpx2.AsyncClient() as web:
        with faults.observe():
            assert (await web.get(f"{server.url}/models")).status_code == 401
            assert (await web.post(f"{server.url}/responses", json={"model": "m"})).status_code == 401
            assert (await web.post(f"{server.url}/responses", content=b"{")).status_code == 400
    put = httpx2.Request("PUT", "http://localhost/v1/responses", json={"model": "m", "input": "hi"})
    faults.answered(put, 500, {})
    assert faults.seen == ()


async def test_cancelled_request_is_no_fault():
    """A request that the agent itself cancels is not the provider's fault."""
    faults = ProviderFaults()
    settings = Faults(timeout=1.0, stall_seconds=5)
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=settings) as server, client(server) as model:
        with faults.observe(), pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await ask(model)
    assert faults.unrecovered() is None


async def test_open_model_requests_wait():
    """A model request waits from its start to its end; when it is cancelled, the time until then is kept."""
    faults = ProviderFaults()
    settings = Faults(timeout=1.0, stall_seconds=5)
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=settings) as server, client(server) as model:
        with faults.observe():
            asking = asyncio.get_running_loop().create_task(ask(model))
            await asyncio.sleep(0.3)
            assert 0.05 < faults.waiting_seconds() < 1
            asking.cancel()
            await asyncio.wait({asking})
    kept = faults.waiting_seconds()
    assert 0.05 < kept < 1
    await asyncio.sleep(0.01)
    assert faults.waiting_seconds() == kept


async def test_ended_requests_do_not_wait():
    """A request that was answered, with an error or not, and one that asks no model wait for nothing."""
    faults = ProviderFaults()
    plan = in_order("rate_limit", None, "cut_stream")
    async with (
        ScriptedModelServer(FixedPolicy(["a long answer " * 20]), faults=plan) as server,
        client(server) as model,
    ):
        with faults.observe():
            assert faults.waiting_seconds() == 0.0
            with pytest.raises(openai.RateLimitError):
                await ask(model)
            await ask(model)
            with pytest.raises(openai.APIConnectionError):
                async for _ in await ask(model, stream=True):
                    pass
    faults.began(httpx2.Request("GET", "http://localhost/v1/models"))
    assert faults.waiting_seconds() == 0.0


async def test_unread_error_body_counts_by_status():
    """An error whose body nobody reads is classified by its status alone."""
    faults = ProviderFaults()
    async with ScriptedModelServer(FixedPolicy(["ok"]), faults=in_order("quota")) as server:
        with faults.observe():
            async with httpx2.AsyncClient() as web:
                body = json.dumps({"model": "m", "input": "hi"})
                async with web.stream("POST", f"{server.url}/responses", content=body) as response:
                    assert response.status_code == 429
    assert [(s.code, s.access) for s in faults.seen] == [("rate_limit", False)]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "Fri, 01 Jan 1999 00:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(headers, seconds):
    """Retry-After is read in milliseconds, seconds or as a date."""
    from tbadapters.core.provider_errors import retry_after

    assert retry_after(headers) == seconds
