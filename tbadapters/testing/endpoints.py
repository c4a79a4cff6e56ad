"""The endpoints of a scripted model server: what is asked, checked, answered and logged."""

from __future__ import annotations

import hmac
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from tbadapters.testing import wire_chat, wire_responses
from tbadapters.testing.answers import Answer, faulted, write_calls
from tbadapters.testing.bodies import Body
from tbadapters.testing.faults import HTTP_ERRORS, FaultPlan, Faults, HttpError
from tbadapters.testing.server_log import Exchange, ServerLog
from tbadapters.testing.token_counts import count_usage
from tbadapters.testing.trial_header import read_trial
from tbadapters.testing.turns import FaultKind, ModelTurn, PolicyLike, Reply

Wire = Literal["chat", "responses"]
Items = list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Gate:
    """Who is let in: the key that is asked for (None: any), the models that are missing."""

    api_key: str | None = None
    missing_models: frozenset[str] = frozenset()

    def refuses(self, headers: Mapping[str, str], model: str, known: Mapping[str, object] | None) -> HttpError | None:
        """Return the error that a request is refused with, or None."""
        given = headers.get("authorization", "").removeprefix("Bearer ").encode()
        if self.api_key is not None and not hmac.compare_digest(given, self.api_key.encode()):
            return HTTP_ERRORS["key"]
        if model in self.missing_models or (known is not None and model not in known):
            return replace(HTTP_ERRORS["model"], message=f"The model '{model}' does not exist.")
        return None


class BadRequest(Exception):
    """Raised when a request's body is not what the wire format asks for."""


class Endpoints:
    """Answers requests as the policies and the faults say, and writes the log."""

    def __init__(
        self,
        policy: PolicyLike | Mapping[str, PolicyLike],
        log: ServerLog,
        faults: Faults | FaultPlan,
        gate: Gate,
        *,
        keep_bodies: bool,
    ) -> None:
        self._models = policy if isinstance(policy, Mapping) else None
        self._policy = policy
        self._log = log
        self._settings = faults if isinstance(faults, Faults) else Faults()
        self._plan: FaultPlan = faults.fault_for if isinstance(faults, Faults) else faults
        self._gate = gate
        self._keep_bodies = keep_bodies
        self._received = 0
        self._conversations: dict[str, Items] = {}
        self._items: dict[str, Mapping[str, Any]] = {}
        self.policy_errors: list[Exception] = []

    def app(self) -> Starlette:
        """Return the ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/chat/completions", _Endpoint(self, "chat"), methods=["POST"]),
                Route("/v1/responses", _Endpoint(self, "responses"), methods=["POST"]),
                Route("/v1/models", self._list_models),
            ]
        )

    async def _list_models(self, request: Request) -> Body:
        error = self._gate.refuses(request.headers, "", None)
        if error:
            return Body.json(error.body, error.status)
        names = [*self._models] if self._models is not None else ["scripted"]
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "tbadapters"} for name in names]
        return Body.json({"object": "list", "data": data})

    def serve(self, wire: Wire, headers: Mapping[str, str], raw: bytes) -> Body:
        """Return the answer to one request."""
        number, self._received = self._received, self._received + 1
        exchange = Exchange(number, _path(wire), "", read_trial(headers), 400, headers=_kept(headers))
        try:
            body = _read_body(raw)
            exchange = replace(exchange, model=str(body["model"]), raw=raw if self._keep_bodies else b"")
            error = self._gate.refuses(headers, exchange.model, self._models)
            if error:
                return self._error(exchange, error)
            turn, items = self._read_turn(wire, body, exchange)
        except BadRequest as wrong:
            return self._error(exchange, HttpError(400, str(wrong), "invalid_request_error"))
        exchange = replace(exchange, turn=turn if self._keep_bodies else None)
        fault = self._plan(number)
        if fault in HTTP_ERRORS:
            return self._error(exchange, HTTP_ERRORS[fault], fault)
        reply = self._ask(turn)
        if reply is None:
            failed = HttpError(400, "The policy of the scripted model failed.", "invalid_request_error", "policy_error")
            return self._error(exchange, failed)
        return self._answer(replace(exchange, reply=reply), turn, items, fault or reply.fault)

    def _read_turn(self, wire: Wire, body: Mapping[str, Any], exchange: Exchange) -> tuple[ModelTurn, Items]:
        try:
            if wire == "chat":
                return wire_chat.read_turn(body, exchange.trial), []
            return wire_responses.read_turn(self._expand(body), exchange.trial, self._previous(body))
        except (KeyError, TypeError, AttributeError) as wrong:
            raise BadRequest(f"The request can't be read: {type(wrong).__name__} {wrong}.") from wrong

    def _previous(self, body: Mapping[str, Any]) -> Items:
        previous = body.get("previous_response_id")
        if previous is None:
            return []
        if previous not in self._conversations:
            raise BadRequest(f"Previous response with id '{previous}' not found.")
        return self._conversations[previous]

    def _expand(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Replace references to items that the server keeps."""
        given = body["input"]
        if isinstance(given, str):
            return body
        return {**body, "input": [self._items.get(i.get("id") or "", i) if _refers(i) else i for i in given]}

    def _ask(self, turn: ModelTurn) -> Reply | None:
        policy = self._models[turn.model] if self._models is not None else self._policy
        try:
            reply = policy.respond(turn) if hasattr(policy, "respond") else policy(turn)  # type: ignore[operator]
        except Exception as error:  # noqa: BLE001 - kept, and raised when the server is left
            self.policy_errors.append(error)
            return None
        return Reply(text=reply) if isinstance(reply, str) else reply

    def _answer(self, exchange: Exchange, turn: ModelTurn, items: Items, fault: FaultKind | None) -> Body:
        reply = exchange.reply or Reply()
        if fault in HTTP_ERRORS:
            return self._error(exchange, HTTP_ERRORS[fault], fault)
        if fault == "malformed_json" and not reply.calls:
            fault = None
        answer = write_answer(exchange.number, turn, faulted(reply, fault), fault)
        broken = fault in ("cut_stream", "timeout")
        told = not broken and (turn.wire == "responses" or wire_chat.wants_usage(turn.body))
        usage = None if broken else answer.usage
        self._log.add(replace(exchange, status=200, fault=fault, usage=usage, usage_sent=told))
        if turn.wire == "responses":
            self._keep(answer, items)
        stall = self._settings.stall_seconds if fault == "timeout" else None
        return Body(_frames(turn, answer), stream=turn.stream, cut=broken, stall=stall)

    def _keep(self, answer: Answer, items: Items) -> None:
        output = wire_responses.write_output(answer)
        self._items.update((item["id"], item) for item in output)
        self._conversations[f"resp_{answer.id}"] = [*items, *output]

    def _error(self, exchange: Exchange, error: HttpError, fault: FaultKind | None = None) -> Body:
        self._log.add(replace(exchange, status=error.status, fault=fault))
        headers: list[tuple[str, str]] = []
        if error is HTTP_ERRORS["rate_limit"]:
            wait = self._settings.retry_after
            headers = [("retry-after", f"{wait:g}"), ("retry-after-ms", f"{wait * 1000:g}")]
        return Body.json(error.body, error.status, headers)


class _Endpoint:
    """One endpoint as an ASGI application: starlette hands over the request as it is."""

    def __init__(self, endpoints: Endpoints, wire: Wire) -> None:
        self._endpoints = endpoints
        self._wire = wire

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer = self._endpoints.serve(self._wire, request.headers, await request.body())
        await answer(scope, receive, send)


def write_answer(number: int, turn: ModelTurn, reply: Reply, fault: FaultKind | None) -> Answer:
    """Return the answer that a reply becomes."""
    answer_id = f"{number:06d}"
    return Answer(
        id=answer_id,
        model=turn.model,
        created=int(time.time()),
        text=reply.text,
        refusal=reply.refusal,
        calls=write_calls(reply.calls, answer_id, malformed=fault == "malformed_json"),
        filtered=fault == "content_filter",
        usage=count_usage(turn, reply),
    )


def _frames(turn: ModelTurn, answer: Answer) -> list[bytes]:
    if turn.wire == "chat":
        if not turn.stream:
            return [json.dumps(wire_chat.write_answer(answer)).encode()]
        frames = wire_chat.write_stream(answer, include_usage=wire_chat.wants_usage(turn.body))
    else:
        if not turn.stream:
            return [json.dumps(wire_responses.write_answer(answer, turn.body)).encode()]
        frames = wire_responses.write_stream(answer, turn.body)
    return [frame.encode() for frame in frames]


def _read_body(raw: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(raw)
    except ValueError as wrong:
        raise BadRequest("The body is no JSON.") from wrong
    if not isinstance(body, dict) or "model" not in body:
        raise BadRequest("You must provide a model parameter.")
    return body


def _path(wire: Wire) -> str:
    return "/v1/chat/completions" if wire == "chat" else "/v1/responses"


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() != "authorization"}


def _refers(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "item_reference"
