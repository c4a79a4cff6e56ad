"""Agents of the OpenAI Agents SDK whose models are scripts on one server, over both of the SDK's wire formats."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel
from openai import AsyncOpenAI

from tbadapters.testing.faults import Faults
from tbadapters.testing.model_server import ScriptedModelServer
from tbadapters.testing.turns import ModelTurn

WIRES = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


@dataclass
class Stage:
    """A server, and agents whose models are on it by the agents' names."""

    server: ScriptedModelServer
    client: AsyncOpenAI
    wire: str

    def agent(self, name: str, **options: Any) -> Agent:
        return Agent(name, model=WIRES[self.wire](name, self.client), **options)

    def seen(self, model: str) -> list[ModelTurn]:
        return [exchange.turn for exchange in self.server.requests if exchange.model == model]


@asynccontextmanager
async def staged(wire: str, *, seconds: float = 10, **scripts: Any) -> AsyncIterator[Stage]:
    """Serve one model for each script: a list of replies, one for each answer in the conversation, or a callable."""

    def play(script: Any) -> Any:
        return script if callable(script) else lambda turn: script[min(turn.replies, len(script) - 1)]

    policies = {name: play(script) for name, script in scripts.items()}
    async with (
        ScriptedModelServer(policies, faults=Faults(stall_seconds=2, retry_after=7)) as server,
        AsyncOpenAI(base_url=server.url, api_key="any", max_retries=0, timeout=seconds) as client,
    ):
        yield Stage(server, client, wire)


@pytest.fixture(params=list(WIRES))
def stage(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Stages over each wire format."""
    return lambda **scripts: staged(request.param, **scripts)
