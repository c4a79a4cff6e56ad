"""Interrupts of a graph as approval requests, and the answers as what the graph wants to be resumed with.

Four forms are known: our own tools' (``needs_approval``), LangChain's human-in-the-loop middleware, the older
``HumanInterrupt``, and any other value, which is resumed with True or False. A static ``interrupt_before`` gives no
interrupt at all: the graph just stops before a node.

Imports LangGraph at the top: ``langgraph.py`` imports this module only when a graph is at hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command, Interrupt, StateSnapshot

from tbadapters.adapters.langgraph_tools import APPROVAL
from tbadapters.core.agent import ApprovalRequest

DENIED = "The user did not agree to this call."


@dataclass
class PendingApprovals:
    """The approvals of one user turn.

    Attributes:
        interrupts: The interrupts that wait.
        decisions: All decisions of the turn so far on our own tools' calls.
    """

    interrupts: tuple[Interrupt, ...] = ()
    decisions: dict[str, bool] = field(default_factory=dict)

    def requests(self) -> tuple[ApprovalRequest, ...]:
        """Return what waits as approval requests."""
        return tuple(request for waiting in self.interrupts for request in _requests(waiting))

    def resumed(self, decisions: Mapping[str, bool]) -> Command[Any]:
        """Return the command that resumes the graph with the user's decisions, by the requests' ids."""
        self.decisions |= {
            waiting.value[APPROVAL]: decisions[waiting.value[APPROVAL]]
            for waiting in self.interrupts
            if _form(waiting.value) == APPROVAL
        }
        answers = {waiting.id: self._answer(waiting, decisions) for waiting in self.interrupts}
        self.interrupts = ()
        return Command(resume=answers)

    def _answer(self, waiting: Interrupt, decisions: Mapping[str, bool]) -> Any:
        form = _form(waiting.value)
        agreed = [decisions[request.id] for request in _requests(waiting)]
        if form == APPROVAL:
            return dict(self.decisions)
        if form == "middleware":
            return {
                "decisions": [{"type": "approve"} if yes else {"type": "reject", "message": DENIED} for yes in agreed]
            }
        if form == "human_interrupt":
            return [{"type": "accept", "args": None} if yes else {"type": "response", "args": DENIED} for yes in agreed]
        return agreed[0]


def _form(value: Any) -> str:
    if isinstance(value, Mapping):
        if APPROVAL in value:
            return APPROVAL
        if isinstance(value.get("action_requests"), list):
            return "middleware"
    if isinstance(value, list) and value and all(isinstance(v, Mapping) and "action_request" in v for v in value):
        return "human_interrupt"
    return "any"


def _requests(waiting: Interrupt) -> list[ApprovalRequest]:
    value, form = waiting.value, _form(waiting.value)
    if form == APPROVAL:
        return [ApprovalRequest(value[APPROVAL], value["tool"], value["arguments"])]
    if form == "middleware":
        actions = [(action["name"], action.get("args") or {}) for action in value["action_requests"]]
    elif form == "human_interrupt":
        actions = [(v["action_request"]["action"], v["action_request"].get("args") or {}) for v in value]
    else:
        actions = [("interrupt", dict(value) if isinstance(value, Mapping) else {"value": value})]
    return [ApprovalRequest(f"{waiting.id}:{n}", name, arguments) for n, (name, arguments) in enumerate(actions)]


def stopped_before(snapshot: StateSnapshot) -> tuple[ApprovalRequest, ...]:
    """Return what a statically interrupted graph is about to do: the pending tool calls, else the nodes themselves."""
    if not snapshot.next:
        return ()
    calls = _pending_calls(snapshot)
    if calls:
        return tuple(ApprovalRequest(str(call["id"]), call["name"], call["args"]) for call in calls)
    return tuple(ApprovalRequest(f"node:{node}", node, {}) for node in snapshot.next)


def denied(snapshot: StateSnapshot) -> list[ToolMessage]:
    """Return the answers that stand for tool calls which the user did not agree to."""
    return [
        ToolMessage(DENIED, tool_call_id=str(call["id"]), name=call["name"], status="error")
        for call in _pending_calls(snapshot)
    ]


def _pending_calls(snapshot: StateSnapshot) -> Sequence[Any]:
    values = snapshot.values
    messages = values.get("messages") if isinstance(values, dict) else None
    last = messages[-1] if messages else None
    return last.tool_calls if isinstance(last, AIMessage) else ()
