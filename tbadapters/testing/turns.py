"""What a scripted model is asked and what it answers: one form for both wire formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args, runtime_checkable

from tbadapters.core.context import TrialRef

Role = Literal["system", "user", "agent", "tool"]
FaultKind = Literal[
    "rate_limit",  # 429 with Retry-After
    "quota",  # 429 with the code insufficient_quota
    "server_error",  # 500
    "overloaded",  # 503
    "request_timeout",  # 408
    "conflict",  # 409
    "forbidden",  # 403
    "context_length",  # 400 with the code context_length_exceeded
    "timeout",  # no answer for `stall_seconds`, then the connection is cut
    "cut_stream",  # the connection is cut in the middle of the answer
    "malformed_json",  # a tool call's arguments are no JSON
    "refusal",  # the model refuses instead of answering
    "content_filter",  # the answer is cut by a content filter
]
FAULT_KINDS: tuple[FaultKind, ...] = get_args(FaultKind)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the model makes.

    Attributes:
        name: The tool's name.
        arguments: Its arguments.
        id: The call's id, unique in its conversation; empty: the server makes one.
        malformed: Whether the arguments were no JSON object (only in calls that are read back from a conversation).
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    malformed: bool = False


@dataclass(frozen=True, slots=True)
class TurnMessage:
    """One message of the conversation that the model is shown.

    Attributes:
        role: Who said it; ``tool`` is a tool's result.
        text: Its text, parts joined.
        calls: The tool calls of an agent's message.
        call_id: Which call a tool's result answers.
    """

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that the model may call in this turn."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One request to the model.

    Attributes:
        model: The model's name.
        messages: The conversation, the same form whether it came as chat completions or as responses.
        tools: The tools on offer.
        trial: The trial that asks, where the request says so.
        parallel: Whether several tool calls may be made at once.
        wire: The wire format.
        stream: Whether the answer is streamed.
        body: The request as it was sent.
    """

    model: str
    messages: tuple[TurnMessage, ...]
    tools: tuple[OfferedTool, ...] = ()
    trial: TrialRef | None = None
    parallel: bool = True
    wire: Literal["chat", "responses"] = "chat"
    stream: bool = False
    body: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def offered(self) -> frozenset[str]:
        """The names of the tools on offer."""
        return frozenset(tool.name for tool in self.tools)

    @property
    def replies(self) -> int:
        """How many answers of the model the conversation holds."""
        return sum(message.role == "agent" for message in self.messages)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers: text, tool calls (several are parallel calls), a refusal, or a fault.

    ``tool_calls`` takes ``Call`` objects or ``(name, arguments)`` pairs.
    """

    text: str | None = None
    tool_calls: Sequence[Call | tuple[str, Mapping[str, Any]]] = ()
    refusal: str | None = None
    fault: FaultKind | None = None

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls as ``Call`` objects."""
        return tuple(call if isinstance(call, Call) else Call(*call) for call in self.tool_calls)


@runtime_checkable
class Policy(Protocol):
    """Decides what a scripted model answers. Pure: the same turn gives the same reply, at any time and in any order."""

    def respond(self, request: ModelTurn) -> Reply:
        """Return the answer to one request."""
        ...


PolicyLike = Policy | Callable[[ModelTurn], Reply | str]


class FixedPolicy:
    """Plays a list of replies, one for each answer that a conversation holds already; the last one repeats.

    The position is read from the conversation, so that any number of conversations can be played at once.
    """

    def __init__(self, replies: Sequence[Reply | str]) -> None:
        if not replies:
            raise ValueError("FixedPolicy needs at least one reply.")
        self._replies = [Reply(text=r) if isinstance(r, str) else r for r in replies]

    def respond(self, request: ModelTurn) -> Reply:
        """Return the reply at the conversation's position."""
        return self._replies[min(request.replies, len(self._replies) - 1)]
