"""What a scripted model server received and sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tbadapters.core.context import TrialRef
from tbadapters.core.messages import Usage
from tbadapters.testing.turns import FaultKind, ModelTurn, Reply


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came of it.

    Attributes:
        number: The request's number on this server, from 0.
        path: The endpoint.
        model: The model that was asked for.
        trial: The trial that asked, or None where the request did not say.
        status: The HTTP status (200 for a stream that was cut).
        reply: What the policy answered; None where it was not asked.
        fault: The fault that was injected.
        usage: The tokens of the answer; None where there was none.
        usage_sent: Whether the client was told its tokens: a stream of chat completions tells them only when asked.
        headers: The request's headers, names in lower case, without the key.
        raw: The request's body as it came; empty with ``keep_bodies=False``.
        turn: The request in the form that the policy saw; None with ``keep_bodies=False``.
    """

    number: int
    path: str
    model: str
    trial: TrialRef | None
    status: int
    reply: Reply | None = None
    fault: FaultKind | None = None
    usage: Usage | None = None
    usage_sent: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw: bytes = field(default=b"", repr=False)
    turn: ModelTurn | None = field(default=None, repr=False)

    @property
    def body(self) -> Any:
        """The request's body as data."""
        return json.loads(self.raw)


class ServerLog:
    """All exchanges of a server, in the order in which they were answered."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        """Keep one exchange."""
        self.exchanges.append(exchange)

    @property
    def totals(self) -> Usage:
        """The tokens that the clients were told of, all together."""
        return sum((e.usage for e in self.exchanges if e.usage and e.usage_sent), Usage())

    def by_trial(self) -> dict[tuple[str, int], Usage]:
        """Return the tokens that the clients were told of, by task and trial index."""
        totals: dict[tuple[str, int], Usage] = {}
        for exchange in list(self.exchanges):
            if exchange.trial and exchange.usage and exchange.usage_sent:
                key = (exchange.trial.task, exchange.trial.index)
                totals[key] = totals.get(key, Usage()) + exchange.usage
        return totals
