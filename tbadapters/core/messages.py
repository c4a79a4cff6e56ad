"""What is said in a conversation, what is recorded of it, and the tokens that it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["system", "user", "agent"]


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said: by the user (a turn), by the agent (an answer), or a system text in a history."""

    text: str
    role: Role = "user"

    def to_dict(self) -> dict[str, Any]:
        """Return the message as JSON-like data."""
        return {"role": self.role, "text": self.text}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, in one convention: input includes cached input, output includes reasoning."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def to_dict(self) -> dict[str, int]:
        """Return the usage as JSON-like data."""
        return {
            "input_tokens": self.input_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "output_tokens": self.output_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, int]) -> Usage:
        """Return the usage that ``to_dict`` wrote."""
        return cls(**{name: int(data.get(name, 0)) for name in cls.__dataclass_fields__})


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request that the agent, the simulated user or the judge made to a model.

    Attributes:
        model: The model's name as the provider reports it (or as it was asked for).
        usage: Its tokens, or None where the provider reported none.
        actor: The sub-agent that asked, or None for the agent itself; None for user and judge.
        fault: One line about a provider's fault, or None.
    """

    model: str
    usage: Usage | None
    actor: str | None = None
    fault: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the request as JSON-like data."""
        return {
            "model": self.model,
            "usage": self.usage.to_dict() if self.usage else None,
            "actor": self.actor,
            "fault": self.fault,
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of an attempt's transcript, in the order in which things happened.

    ``kind`` is ``user``, ``agent``, ``tool_call`` (``data["index"]`` points into the tool calls), ``model_request``,
    ``approval``, ``judgement`` (``data`` is a ``Judgement``) or ``note``.
    """

    kind: Literal["user", "agent", "system", "tool_call", "model_request", "approval", "judgement", "note"]
    text: str = ""
    data: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON-like data."""
        return {"kind": self.kind, "text": self.text, **({"data": dict(self.data)} if self.data else {})}
