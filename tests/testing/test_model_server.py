"""The scripted model server speaks as OpenAI's does, to the real clients."""

import asyncio
import json
import threading
import time

import httpx2
import openai
import pytest

from tbadapters.core.context import TrialRef, running
from tbadapters.core.messages import Usage
from tbadapters.core.transport import TransportHook, observe_transport
from tbadapters.testing import Call, Faults, FixedPolicy, ModelTurn, Reply, ScriptedModelServer
from tbadapters.testing.trial_header import TRIAL_HEADER

LOOK = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
CHAT_TOOLS = [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": LOOK}}]
RESPONSES_TOOLS = [{"type": "function", "name": "look", "description": "Looks.", "parameters": LOOK, "strict": False}]
HELLO = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
TWO_CALLS = Reply(text="Looking.", tool_calls=[("look", {"id": "é-1"}), Call("look", {"id": "2"})])
ANSWER = "All done: " + "the card is frozen. " * 5


def client(server, **options):
    return openai.AsyncOpenAI(base_url=server.url, api_key="k", **{"max_retries": 0, **options})


async def chat(model, messages=HELLO, *, stream=False, **options):
    """Ask by chat completions; return (message, finish reason, usage)."""
    if not stream:
        done = await model.chat.completions.create(model="m", messages=messages, tools=CHAT_TOOLS, **options)
        return done.choices[0].message, done.choices[0].finish_reason, done.usage
    include = {"include_usage": True}
    async with model.chat.completions.stream(
        model="m", messages=messages, tools=CHAT_TOOLS, stream_options=include, **options
    ) as events:
        done = await events.get_final_completion()
    return done.choices[0].message, done.choices[0].finish_reason, done.usage


async def respond(model, given="hi", *, stream=False, **options):
    """Ask by responses; return the response."""
    options = {"model": "m", "input": given, "tools": RESPONSES_TOOLS, "instructions": "Be kind.", **options}
    if not stream:
        return await model.responses.create(**options)
    async with model.responses.stream(**options) as events:
        return await events.get_final_response()


@pytest.mark.parametrize("stream", [False, True])
async def test_chat_completions(stream):
    """Text, parallel calls with their arguments, and tokens come over chat completions, streamed or not."""
    async with ScriptedModelServer(FixedPolicy([TWO_CALLS, ANSWER])) as server, client(server) as model:
        message, reason, usage = await chat(model, stream=stream)
        assert (message.content, reason) == ("Looking.", "tool_calls")
        assert [json.loads(c.function.arguments) for c in message.tool_calls] == [{"id": "é-1"}, {"id": "2"}]
        results = [{"role": "tool", "tool_call_id": c.id, "content": "{}"} for c in message.tool_calls]
        again = [*HELLO, message.model_dump(exclude_none=True, exclude={"parsed"}), *results]
        final, reason, later = await chat(model, again, stream=stream)
    assert (final.content, reason, final.tool_calls) == (ANSWER, "stop", None)
    assert (usage.prompt_tokens_details.cached_tokens, later.prompt_tokens_details.cached_tokens) == (
        0,
        usage.prompt_tokens,
    )
    assert usage.completion_tokens_details.reasoning_tokens == 28
    assert server.totals == Usage(
        usage.prompt_tokens + later.prompt_tokens,
        usage.prompt_tokens,
        usage.completion_tokens + later.completion_tokens,
        40,
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_responses(stream):
    """The same come over responses, streamed or not."""
    async with ScriptedModelServer(FixedPolicy([TWO_CALLS, ANSWER])) as server, client(server) as model:
        first = await respond(model, stream=stream)
        calls = [item for item in first.output if item.type == "function_call"]
        assert first.output_text == "Looking."
        assert [json.loads(c.arguments) for c in calls] == [{"id": "é-1"}, {"id": "2"}]
        results = [{"type": "function_call_output", "call_id": c.call_id, "output": "{}"} for c in calls]
        output = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
        for item in output:
            for part in item.get("content", []):
                part.pop("parsed", None)
        second = await respond(model, [{"role": "user", "content": "hi"}, *output, *results], stream=stream)
    assert second.output_text == ANSWER
    assert second.usage.input_tokens_details.cached_tokens == first.usage.input_tokens
    assert first.usage.output_tokens_details.reasoning_tokens == 28
    assert server.totals.total_tokens == first.usage.total_tokens + second.usage.total_tokens


async def test_events_of_a_stream_agree():
    """The events of a streamed response are numbered, and what each part ends with is what its deltas spelled."""
    reply = Reply(text=ANSWER, tool_calls=[("look", {"id": "a long id that takes several deltas"})])
    async with ScriptedModelServer(FixedPolicy([reply])) as server, client(server) as model:
        stream = await model.responses.create(model="m", input="hi", tools=RESPONSES_TOOLS, stream=True)
        events = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    for name, field, item in (("output_text", "text", 0), ("function_call_arguments", "arguments", 1)):
        spelled = [e.delta for e in events if e.type == f"response.{name}.delta"]
        (done,) = [e for e in events if e.type == f"response.{name}.done"]
        assert len(spelled) > 1
        assert "".join(spelled) == getattr(done, field)
        assert done.item_id == events[-1].response.output[item].id
    assert [e.part.text for e in events if e.type == "response.content_part.done"] == [ANSWER]


async def test_both_wires_count_alike():
    """The same conversation costs the same tokens on either wire and either way of answering."""
    async with ScriptedModelServer(FixedPolicy([TWO_CALLS])) as server, client(server) as model:
        for stream in (False, True):
            await chat(model, stream=stream)
            await respond(model, stream=stream)
    assert len({exchange.usage for exchange in server.requests}) == 1


async def test_policy_sees_one_form():
    """A policy is shown the same messages, tools and settings whichever wire they came by."""
    turns = []

    def policy(turn: ModelTurn):
        turns.append(turn)
        return TWO_CALLS if turn.replies == 0 else "ok"

    async with ScriptedModelServer(policy) as server, client(server) as model:
        message, _, _ = await chat(model, parallel_tool_calls=False)
        results = [{"role": "tool", "tool_call_id": c.id, "content": f"r{c.id}"} for c in message.tool_calls]
        await chat(model, [*HELLO, message.model_dump(exclude_none=True), *results], parallel_tool_calls=False)
        first = await respond(model, [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}])
        calls = [item for item in first.output if item.type == "function_call"]
        results = [{"type": "function_call_output", "call_id": c.call_id, "output": f"r{c.call_id}"} for c in calls]
        output = [item.model_dump(exclude_none=True) for item in first.output]
        await respond(model, [{"role": "user", "content": "hi"}, *output, *results])

    def plain(turn):
        roles = [
            (m.role, m.text if m.role != "tool" else "", [(c.name, c.arguments) for c in m.calls])
            for m in turn.messages
        ]
        return roles, turn.tools, turn.model

    assert plain(turns[1]) == plain(turns[3])
    assert [m.text for m in turns[3].messages if m.role == "tool"] == [
        f"r{c.id}" for m in turns[3].messages for c in m.calls
    ]
    assert [turn.parallel for turn in turns] == [False, False, True, True]
    assert turns[0].tools[0].parameters == LOOK


async def test_previous_response_and_item_references():
    """A conversation that the server keeps goes on by ``previous_response_id``, and items by reference."""
    async with ScriptedModelServer(FixedPolicy([TWO_CALLS, ANSWER])) as server, client(server) as model:
        first = await respond(model)
        calls = [item for item in first.output if item.type == "function_call"]
        results = [{"type": "function_call_output", "call_id": c.call_id, "output": "{}"} for c in calls]
        kept = await respond(model, results, previous_response_id=first.id)
        references = [{"type": "item_reference", "id": item.id} for item in first.output]
        referred = await respond(model, [{"role": "user", "content": "hi"}, *references, *results])
        with pytest.raises(openai.BadRequestError, match="not found"):
            await respond(model, previous_response_id="resp_none")
    assert kept.output_text == referred.output_text == ANSWER
    assert kept.usage == referred.usage


async def test_stream_tells_usage_only_when_asked():
    """A stream of chat completions tells its tokens only with ``include_usage``, and the log says so."""
    async with ScriptedModelServer(FixedPolicy([ANSWER])) as server, client(server) as model:
        chunks = [c async for c in await model.chat.completions.create(model="m", messages=HELLO, stream=True)]
    assert all(chunk.usage is None for chunk in chunks)
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == ANSWER
    assert server.requests[0].usage.output_tokens > 0
    assert not server.requests[0].usage_sent
    assert server.totals == Usage()


@pytest.mark.parametrize("stream", [False, True])
async def test_refusal(stream):
    """A refusal is told in the field, or content part, that is meant for it."""
    async with ScriptedModelServer(FixedPolicy([Reply(refusal="No.")])) as server, client(server) as model:
        message, reason, _ = await chat(model, stream=stream)
        response = await respond(model, stream=stream)
    assert (message.refusal, message.content, reason) == ("No.", None, "stop")
    assert response.output[0].content[0].type == "refusal"
    assert response.output[0].content[0].refusal == "No."


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("rate_limit", openai.RateLimitError),
        ("quota", openai.RateLimitError),
        ("server_error", openai.InternalServerError),
        ("overloaded", openai.InternalServerError),
        ("request_timeout", openai.APIStatusError),
        ("conflict", openai.ConflictError),
        ("forbidden", openai.PermissionDeniedError),
        ("context_length", openai.BadRequestError),
        ("cut_stream", openai.APIConnectionError),
    ],
)
@pytest.mark.parametrize("ask", [chat, respond])
@pytest.mark.parametrize("stream", [False, True])
async def test_faults_reach_the_client(kind, error, ask, stream):
    """Each fault of the provider is what the client makes of the real one, and nothing is counted for it."""
    plan = [kind, None].__getitem__
    async with ScriptedModelServer(FixedPolicy([ANSWER]), faults=plan) as server, client(server) as model:
        with pytest.raises(error) as caught:
            await ask(model, stream=stream)
        await ask(model, stream=stream)
    failed, fine = server.requests
    assert (failed.fault, failed.usage, fine.fault) == (kind, None, None)
    if kind == "rate_limit":
        assert caught.value.response.headers["retry-after"] == "0.02"
    if kind in ("quota", "context_length"):
        assert caught.value.code == {"quota": "insufficient_quota"}.get(kind, "context_length_exceeded")


async def test_timeout_keeps_silent():
    """A timeout answers nothing until the client gives up, and does not hold the server's end up."""
    settings = Faults(timeout=1.0, stall_seconds=60)
    began = time.perf_counter()
    async with (
        ScriptedModelServer(FixedPolicy([ANSWER]), faults=settings) as server,
        client(server, timeout=0.2) as model,
    ):
        with pytest.raises(openai.APITimeoutError):
            await chat(model)
    assert time.perf_counter() - began < 10


async def test_malformed_arguments_are_no_json():
    """Malformed JSON spoils a tool call's arguments, and nothing where there is no call."""
    settings = Faults(malformed_json=1.0)
    async with (
        ScriptedModelServer(FixedPolicy([TWO_CALLS, ANSWER]), faults=settings) as server,
        client(server) as model,
    ):
        message, _, _ = await chat(model)
        with pytest.raises(ValueError, match="delimiter"):
            json.loads(message.tool_calls[0].function.arguments)
        results = [{"role": "tool", "tool_call_id": c.id, "content": "{}"} for c in message.tool_calls]
        final, _, _ = await chat(model, [*HELLO, message.model_dump(exclude_none=True), *results])
    assert final.content == ANSWER
    first, second = server.requests
    assert (first.fault, second.fault) == ("malformed_json", None)
    assert [c.malformed for m in second.turn.messages for c in m.calls] == [True, False]


async def test_refusal_and_filter_as_faults():
    """A policy's answer can be replaced by a refusal or cut by a content filter."""
    plan = ["refusal", "content_filter", "content_filter"].__getitem__
    async with ScriptedModelServer(FixedPolicy([ANSWER]), faults=plan) as server, client(server) as model:
        refused, _, _ = await chat(model)
        _, reason, _ = await chat(model)
        response = await respond(model)
    assert refused.refusal
    assert not refused.content
    assert reason == "content_filter"
    assert (response.status, response.incomplete_details.reason) == ("incomplete", "content_filter")


async def test_policy_can_fail_one_conversation():
    """A policy that returns a fault fails the requests that it chooses, and no other."""

    def policy(turn):
        return Reply(fault="server_error") if turn.messages[-1].text == "bad" else "ok"

    async with ScriptedModelServer(policy) as server, client(server) as model:
        with pytest.raises(openai.InternalServerError):
            await chat(model, [{"role": "user", "content": "bad"}])
        assert (await chat(model))[0].content == "ok"


def test_fault_draws_are_seeded_and_as_frequent_as_asked():
    """The fault of a request depends on seed and number alone, and comes as often as its probability says."""
    settings = Faults(rate_limit=0.1, server_error=0.05, seed=1)
    drawn = [settings.fault_for(n) for n in range(4000)]
    assert drawn == [Faults(rate_limit=0.1, server_error=0.05, seed=1).fault_for(n) for n in range(4000)]
    assert drawn != [Faults(rate_limit=0.1, server_error=0.05, seed=2).fault_for(n) for n in range(4000)]
    assert set(drawn) == {None, "rate_limit", "server_error"}
    assert 0.08 < drawn.count("rate_limit") / 4000 < 0.12
    assert 0.035 < drawn.count("server_error") / 4000 < 0.065
    with pytest.raises(ValueError, match="at most 1 together"):
        Faults(rate_limit=0.7, quota=0.7)


async def test_keys_and_models():
    """A wrong key is 401, an unknown or missing model 404, and the models are listed."""
    policies = {"a": FixedPolicy(["from a"]), "b": FixedPolicy(["from b"])}
    async with ScriptedModelServer(policies, api_key="right", missing_models=["b"]) as server:
        async with client(server) as model:
            with pytest.raises(openai.AuthenticationError):
                await model.responses.create(model="a", input="hi")
            with pytest.raises(openai.AuthenticationError):
                await model.models.list()
        async with client(server).with_options(api_key="right") as model:
            assert (await model.responses.create(model="a", input="hi")).output_text == "from a"
            for name in ("b", "c"):
                with pytest.raises(openai.NotFoundError) as caught:
                    await model.responses.create(model=name, input="hi")
                assert caught.value.code == "model_not_found"
            assert [m.id async for m in model.models.list()] == ["a", "b"]


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"messages": []}', b'{"model": "m"}', b'{"model": "m", "messages": [{}]}']
)
async def test_bad_requests_are_400(content):
    """A body that is no request of the wire format is a bad request, not a failure of the server."""
    async with ScriptedModelServer(FixedPolicy(["ok"])) as server, httpx2.AsyncClient() as web:
        answer = await web.post(f"{server.url}/chat/completions", content=content)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"
        assert (await web.post(f"{server.url}/responses", content=content)).status_code == 400


def test_failing_policy_is_loud():
    """A policy that raises gives the client a bad request, and its error is raised when the server is left."""

    def policy(turn):
        raise KeyError("no such step")

    with (
        pytest.raises(RuntimeError, match="policy") as caught,
        ScriptedModelServer(policy) as server,
        openai.OpenAI(base_url=server.url, api_key="k") as model,
        pytest.raises(openai.BadRequestError),
    ):
        model.responses.create(model="m", input="hi")
    assert isinstance(caught.value.__cause__, KeyError)


class Attempt:
    def __init__(self, task, index):
        self.trial = TrialRef(task, index, seed=5)


async def test_requests_belong_to_the_running_trial():
    """Requests are attributed to the trial in whose context they are made, on either wire, and counted by it."""
    async with ScriptedModelServer(FixedPolicy([ANSWER])) as server, client(server) as model:
        await chat(model)
        for index in (0, 1, 1):
            token = running.set(Attempt("desk/tâche", index))
            await chat(model)
            await respond(model, stream=True)
            running.reset(token)
    trials = [exchange.trial for exchange in server.requests]
    assert trials[0] is None
    assert trials[1] == TrialRef("desk/tâche", 0, 5)
    by_trial = server.usage_by_trial()
    assert by_trial["desk/tâche", 1].total_tokens == 2 * by_trial["desk/tâche", 0].total_tokens
    assert server.requests[1].turn.trial == trials[1]


async def test_header_goes_to_its_own_server_only():
    """The trial's header is added to requests to the server that runs, not to others, and to none after it."""
    token = running.set(Attempt("t", 0))
    seen = []
    spy = TransportHook()
    spy.request = lambda request: seen.append(TRIAL_HEADER in request.headers)
    try:
        async with ScriptedModelServer(FixedPolicy(["ok"])) as one, client(one) as model:
            with observe_transport(spy):
                await chat(model)
                with pytest.raises(openai.APIConnectionError):
                    await chat(model.with_options(base_url="http://127.0.0.1:9/v1"))
    finally:
        running.reset(token)
    assert seen == [True, False]


async def test_everything_is_put_back():
    """After its block the port is closed, the transport is as it was and there is no URL."""
    before = httpx2.HTTPTransport.handle_request
    async with ScriptedModelServer(FixedPolicy(["ok"])) as server:
        url = server.url
        assert httpx2.HTTPTransport.handle_request is not before
    assert httpx2.HTTPTransport.handle_request is before
    async with httpx2.AsyncClient() as web:
        with pytest.raises(httpx2.ConnectError):
            await web.get(f"{url}/models")
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.url


def test_left_before_it_was_started():
    """A server that is left at once ends cleanly, in a running loop too."""

    async def enter_and_leave():
        for _ in range(5):
            with ScriptedModelServer(FixedPolicy(["ok"])):
                pass

    asyncio.run(enter_and_leave())
    for thread in threading.enumerate():
        if thread.name == "scripted-model-server":
            thread.join(5)
            assert not thread.is_alive()


async def test_answers_while_the_caller_blocks_its_loop(unblocked_loop):
    """A synchronous client that blocks the event loop is answered all the same."""
    for function in unblocked_loop.functions.values():
        function.can_block_in("core/transport_hooks.py", {"handle_request", "__iter__"})
    with ScriptedModelServer(FixedPolicy(["ok"])) as server, openai.OpenAI(base_url=server.url, api_key="k") as model:
        assert model.responses.create(model="m", input="hi").output_text == "ok"


async def test_bodies_need_not_be_kept():
    """A long run keeps no bodies, and its figures all the same."""
    async with ScriptedModelServer(FixedPolicy(["ok"]), keep_bodies=False) as server, client(server) as model:
        await chat(model)
    (exchange,) = server.requests
    assert (exchange.raw, exchange.turn, exchange.model) == (b"", None, "m")
    assert server.totals.total_tokens > 0


async def test_log_keeps_no_key():
    """What was sent is kept as it was, but for the key."""
    async with ScriptedModelServer(FixedPolicy(["ok"])) as server, client(server) as model:
        await chat(model)
    (exchange,) = server.requests
    assert exchange.body["messages"] == HELLO
    assert "authorization" not in exchange.headers


async def test_requests_are_quick():
    """A request takes a few milliseconds: no delay of the network's is left on."""
    async with ScriptedModelServer(FixedPolicy(["ok"])) as server, client(server) as model:
        await chat(model)
        began = time.perf_counter()
        for _ in range(20):
            await chat(model)
    assert (time.perf_counter() - began) / 20 < 0.035
