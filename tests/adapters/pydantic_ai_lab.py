"""A scripted model server and PydanticAI's real clients that speak to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters.testing import ModelTurn, ScriptedModelServer

WIRES = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}
BALANCE = ("get_balance", {"account": "A"})
CLOSE = ("close_account", {"account": "A"})


@dataclass
class Lab:
    """A scripted server and a client that speaks to it."""

    server: ScriptedModelServer
    client: AsyncOpenAI

    def model(self, wire: str = "chat", name: str = "scripted") -> Any:
        return WIRES[wire](name, provider=OpenAIProvider(openai_client=self.client))

    @property
    def shown(self) -> list[ModelTurn]:
        return [exchange.turn for exchange in self.server.requests]


@pytest.fixture
async def lab() -> AsyncIterator[Callable[..., Any]]:
    """Give a maker of labs that play a policy, ``here = await start(policy)``, and close them at the end."""
    opened: list[Lab] = []

    async def start(policy: Any, *, faults: Any = None, **options: Any) -> Lab:
        server = await ScriptedModelServer(policy, faults=faults).__aenter__()
        http = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=100))
        client = AsyncOpenAI(base_url=server.url, api_key="any", http_client=http, **{"max_retries": 0, **options})
        opened.append(Lab(server, client))
        return opened[-1]

    yield start
    for here in opened:
        await here.client.close()
        await here.server.__aexit__(None, None, None)


def system_texts(turn: ModelTurn) -> str:
    return "\n".join(m.text for m in turn.messages if m.role == "system")
