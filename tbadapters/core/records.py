"""The record of one attempt: everything that is kept of it, as JSON-like data in the run folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tbadapters.core.cost import Prices, cost_nothing, cost_of
from tbadapters.core.errors import describe
from tbadapters.core.grading import Verdict
from tbadapters.core.judge import Judgement
from tbadapters.core.messages import Entry, Message, ModelRequest, Usage
from tbadapters.core.plain import plain
from tbadapters.core.redaction import redacted_data
from tbadapters.core.state import Effect
from tbadapters.core.tools import Change, ToolCall, ToolResult

CLEAN_ENDS = frozenset({"settled", "agent_ended", "end_turn_tool"})


@dataclass(frozen=True, slots=True)
class FaultRecord:
    """A fault as data: its owner (see ``errors.OWNERS``), its code and one line about it."""

    owner: str
    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """Return the fault as JSON-like data."""
        return {"owner": self.owner, "code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class Spent:
    """What the simulated user or the judge spent in an attempt, apart from the agent.

    Attributes:
        requests: Its model requests.
        cost: US dollars; None where a price is unknown, 0.0 where no model was asked.
    """

    requests: tuple[ModelRequest, ...] = ()
    cost: float | None = 0.0

    @classmethod
    def of(cls, requests: Iterable[ModelRequest], prices: Prices) -> Spent:
        """Return what these requests come to."""
        known = tuple(requests)
        return cls(known, 0.0 if cost_nothing(known) else cost_of(known, prices))

    @property
    def usage(self) -> Usage:
        """Tokens of all requests together."""
        return sum((r.usage for r in self.requests if r.usage), Usage())

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-like data; ``from_dict`` reads it."""
        return {"requests": [r.to_dict() for r in self.requests], "cost": self.cost}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | None) -> Spent:
        """Return what ``to_dict`` wrote; nothing where the record is older than such spending."""
        return cls(tuple(map(_request, data["requests"])), data["cost"]) if data else cls()


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt at a trial.

    Attributes:
        task: The task's id.
        index: The trial's index, from 0.
        attempt: The attempt's number, from 0; more than one only after an infrastructure fault.
        end_reason: ``settled`` (the user was satisfied or told no), ``agent_ended``, ``end_turn_tool`` (the agent called
            one), ``user_gave_up``, ``max_user_replies``, the name of a limit (``seconds``, ``tool_calls``, ...),
            ``agent_error``, or ``fault``.
        verdict: The grader's, or None where the attempt ended in an infrastructure fault.
        fault: What ended it, or None.
        transcript: What happened, in order.
        tool_calls: The executed tool calls.
        requests: The agent's model requests.
        cost: US dollars of the agent's requests, or None where a price is unknown.
        user: What the simulated user spent.
        judge: What the judge spent.
        seconds: Wall time of the phases (``setup``, ``agent``, ``grading``) and the ``total``; where requests were
            held back at the pace of their endpoint, for how long (``held``, part of ``agent``).
        abandoned: Whether the agent did not end when it was cancelled.
        tasks_left: Tasks that the agent left running; they were cancelled when the attempt was over.
        threads_left: Threads of the agent's sync code that still worked when the attempt was over.
        provider_faults: Faults of model endpoints by code, those that the agent overcame among them.
        client_retries: Model requests by which the agent's own clients asked again what had failed.
    """

    task: str
    index: int
    attempt: int
    end_reason: str
    verdict: Verdict | None
    fault: FaultRecord | None = None
    transcript: tuple[Entry, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    requests: tuple[ModelRequest, ...] = ()
    cost: float | None = None
    user: Spent = Spent()
    judge: Spent = Spent()
    seconds: Mapping[str, float] = field(default_factory=dict)
    abandoned: bool = False
    tasks_left: int = 0
    threads_left: int = 0
    provider_faults: Mapping[str, int] = field(default_factory=dict)
    client_retries: int = 0

    @property
    def passed(self) -> bool | None:
        """True, False, or None without a verdict."""
        return self.verdict.passed if self.verdict else None

    @property
    def usage(self) -> Usage:
        """Tokens of all the agent's model requests together."""
        return sum((r.usage for r in self.requests if r.usage), Usage())

    @property
    def spent(self) -> float:
        """US dollars of agent, simulated user and judge, as far as prices are known."""
        return sum(cost or 0.0 for cost in (self.cost, self.user.cost, self.judge.cost))

    @property
    def unpriced_models(self) -> tuple[str, ...]:
        """The models of agent, simulated user or judge, where they took tokens whose price is not known in whole."""
        parts = (Spent(self.requests, self.cost), self.user, self.judge)
        unknown = [part for part in parts if part.cost is None and part.usage.total_tokens]
        return tuple(sorted({request.model for part in unknown for request in part.requests}))

    @property
    def judgements(self) -> tuple[Judgement, ...]:
        """What the judge decided, in order."""
        return tuple(Judgement.from_dict(e.data) for e in self.transcript if e.kind == "judgement" and e.data)

    @property
    def usage_by_actor(self) -> dict[str, Usage]:
        """Tokens by sub-agent; the agent itself is named ``agent``."""
        totals: dict[str, Usage] = {}
        for request in self.requests:
            actor = request.actor or "agent"
            totals[actor] = totals.get(actor, Usage()) + (request.usage or Usage())
        return totals

    @property
    def messages(self) -> tuple[Message, ...]:
        """What user and agent said to each other."""
        return tuple(Message(e.text, e.kind) for e in self.transcript if e.kind in ("user", "agent", "system"))

    @property
    def looked_clean(self) -> bool:
        """Ended by itself, called at least one writing tool, last tool call no error (the published signature)."""
        return (
            self.end_reason in CLEAN_ENDS
            and any(call.wrote for call in self.tool_calls)
            and not self.tool_calls[-1].result.is_error
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON-like data; ``from_dict`` reads it."""
        return {
            "task": self.task,
            "index": self.index,
            "attempt": self.attempt,
            "end_reason": self.end_reason,
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "fault": self.fault.to_dict() if self.fault else None,
            "transcript": [e.to_dict() for e in self.transcript],
            "tool_calls": [c.to_dict() for c in self.tool_calls],
            "requests": [r.to_dict() for r in self.requests],
            "cost": self.cost,
            "user": self.user.to_dict(),
            "judge": self.judge.to_dict(),
            "seconds": {name: round(value, 6) for name, value in self.seconds.items()},
            "abandoned": self.abandoned,
            "tasks_left": self.tasks_left,
            "threads_left": self.threads_left,
            "provider_faults": dict(self.provider_faults),
            "client_retries": self.client_retries,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AttemptRecord:
        """Return the record that ``to_dict`` wrote."""
        return cls(
            task=data["task"],
            index=data["index"],
            attempt=data["attempt"],
            end_reason=data["end_reason"],
            verdict=_verdict(data["verdict"]) if data["verdict"] else None,
            fault=FaultRecord(**data["fault"]) if data["fault"] else None,
            transcript=tuple(Entry(e["kind"], e["text"], e.get("data")) for e in data["transcript"]),
            tool_calls=tuple(_tool_call(c) for c in data["tool_calls"]),
            requests=tuple(_request(r) for r in data["requests"]),
            cost=data["cost"],
            user=Spent.from_dict(data.get("user")),
            judge=Spent.from_dict(data.get("judge")),
            seconds=data["seconds"],
            abandoned=data["abandoned"],
            tasks_left=data.get("tasks_left", 0),
            threads_left=data.get("threads_left", 0),
            provider_faults=data.get("provider_faults", {}),
            client_retries=data.get("client_retries", 0),
        )


def repriced(record: AttemptRecord, prices: Prices) -> AttemptRecord:
    """Return the record with what its model requests cost at other prices."""
    user, judge = (Spent.of(part.requests, prices) for part in (record.user, record.judge))
    return replace(record, cost=cost_of(record.requests, prices), user=user, judge=judge)


def recordable(record: AttemptRecord) -> AttemptRecord:
    """Return the record as it is read back from JSON, whatever its parts hold; the data of tool results is left out.

    Keys and passwords are redacted; the ids and words by which a record is found and counted are left as they are.

    A record that can't be made into JSON (a grader's verdict is something else than a ``Verdict``) is replaced by one
    with a fault of the harness: one attempt is without verdict, and the run goes on.
    """
    try:
        data: dict[str, Any] = plain(record.to_dict())
        kept = {name: data[name] for name in ("task", "index", "attempt", "end_reason")}
        return AttemptRecord.from_dict(redacted_data(data) | kept)
    except Exception as error:  # noqa: BLE001  (whatever is in there)
        fault = FaultRecord("harness", "unrecordable", f"The attempt can't be recorded: {plain(describe(error))}.")
        return AttemptRecord(
            record.task, record.index, record.attempt, "fault", None, fault, seconds=record.seconds, cost=record.cost
        )


def _verdict(data: Mapping[str, Any]) -> Verdict:
    effects = tuple(Effect(**e) for e in data["effects"])
    return Verdict(data["passed"], data["reward"], effects, tuple(data["reasons"]), data["end_state"])


def _tool_call(data: Mapping[str, Any]) -> ToolCall:
    changes = None if data["changes"] is None else tuple(Change(*c) for c in data["changes"])
    result = ToolResult(data["result"], None, data["is_error"], changes, data.get("injected_fault"))
    return ToolCall(data["index"], data["name"], data["arguments"], result, data["actor"], data["seconds"])


def _request(data: Mapping[str, Any]) -> ModelRequest:
    usage = Usage.from_dict(data["usage"]) if data["usage"] else None
    return ModelRequest(data["model"], usage, data["actor"], data["fault"])
