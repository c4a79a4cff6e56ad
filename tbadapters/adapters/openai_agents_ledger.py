"""What is counted of an OpenAI Agents SDK run: its model requests, by agent, and who speaks.

Imports the SDK, so it is imported where an agent of it is at hand.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio
from agents import (
    Agent,
    AgentHookContext,
    Model,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    ToolApprovalItem,
    Usage,
)
from agents.models import get_default_model
from pydantic_core import to_json

from tbadapters.core import messages
from tbadapters.core.agent import ApprovalRequest, Recorder
from tbadapters.core.errors import Fault, TbAdaptersError, UsageError

NO_USAGE = "The model {} reported no usage; for streamed chat completions say ModelSettings(include_usage=True)."
UNSEEN = (
    "A sub-agent behind as_tool() was given a run_config of its own, so its tools can't be looked at: leave run_config "
    "out of as_tool() (it then has that of OpenAIAgentsAgent(agent, run_config=...)), or build the agent with factory()."
)


def reachable(agent: Agent[Any]) -> list[Agent[Any]]:
    """Return an agent and those that it hands off to, each once. Agents inside ``Handoff`` objects can't be seen."""
    found, waiting = list[Agent[Any]](), [agent]
    while waiting:
        current = waiting.pop(0)
        if not any(current is known for known in found):
            found.append(current)
            waiting.extend(target for target in current.handoffs if isinstance(target, Agent))
    return found


@dataclass(eq=False, slots=True)
class Request:
    """A model request under way."""

    model: str
    actor: str | None


_request: ContextVar[Request | None] = ContextVar("tbadapters_openai_agents_request", default=None)


class Ledger(Usage):
    """A run's usage, as the SDK shares it among all agents of a run: each answer's tokens are recorded as they arrive.

    Run hooks do not reach sub-agents behind ``as_tool()`` and are not called for an answer that the SDK rejects; this is.

    Attributes:
        broken: The first error of ours that was raised inside the run. The SDK turns those of sub-agents into a polite
            sentence for the model, so it is kept here.
    """

    def __init__(self, recorder: Recorder, root: Agent[Any], run_config: RunConfig) -> None:
        super().__init__()
        self.broken: TbAdaptersError | None = None
        self._recorder, self._root, self._run_config = recorder, root, run_config
        self._open: list[Request] = []
        self._noted: set[str] = set()
        self._calls, self._idle = 0, anyio.Event()

    def __deepcopy__(self, memo: dict[int, Any]) -> Ledger:
        return self  # a run that waits for approvals goes on in the same ledger

    def actor(self, agent: Any) -> str | None:
        """Return how an agent is named in the record: None for the agent itself."""
        return None if agent is None or agent is self._root else str(agent.name)

    def note(self, text: str) -> None:
        """Note a remark once."""
        if text not in self._noted:
            self._noted.add(text)
            self._recorder.note(text)

    def breaks(self, error: TbAdaptersError) -> TbAdaptersError:
        """Keep an error that must end the attempt, whatever the SDK makes of it, and return it."""
        self.broken = self.broken or error
        return error

    def request_starts(self, agent: Agent[Any]) -> None:
        """Record that an agent is about to ask its model, in the task in which ``add`` will be called."""
        actor = self.actor(agent)
        try:
            self._recorder.request_starts(actor)
        except TbAdaptersError as error:
            self.breaks(error)
            raise
        request = Request(_model_name(agent, self._run_config), actor)
        self._open.append(request)
        _request.set(request)

    def add(self, other: Usage) -> None:
        """Record a model's answer; called by the SDK before any tool call of the answer is executed."""
        super().add(other)
        request = _request.get()
        if request is None or request not in self._open:
            raise self.breaks(UsageError(UNSEEN))
        _request.set(None)
        self._open.remove(request)
        tokens = _tokens(other)
        if tokens is None:
            self.note(NO_USAGE.format(request.model))
        self._recorder.model_request(request.model, tokens, actor=request.actor)

    def unanswered(self, fault: Fault | None) -> None:
        """Record the requests that ended without an answer, and with them the run."""
        for request in self._open:
            self._recorder.model_request(request.model, None, fault=fault, actor=request.actor)
        self._open.clear()

    def unanswered_but_survived(self) -> None:
        """Record the requests that ended without an answer in a run that went on: a sub-agent's, made polite."""
        for request in self._open:
            self._recorder.note(f"A model request of {request.actor or 'the agent'} failed, and its caller went on.")
        self.unanswered(None)

    @asynccontextmanager
    async def calling(self) -> AsyncIterator[None]:
        """Hold the session open while a tool call, or its cleanup, is under way."""
        self._calls += 1
        try:
            yield
        except TbAdaptersError as error:
            self.breaks(error)
            raise
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()
                self._idle = anyio.Event()

    async def idle(self) -> None:
        """Wait until no tool call is under way; the SDK returns before a cancelled call has ended."""
        while self._calls:
            await self._idle.wait()


class Watch(RunHooks[Any]):
    """Knows which agents hold the conversation (the first one, and those that it was handed to)."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._speakers: list[object] = []

    async def on_agent_start(self, context: AgentHookContext[Any], agent: Agent[Any]) -> None:  # noqa: ARG002 - as the SDK calls it
        """Remember an agent that takes over; sub-agents behind ``as_tool()`` are not announced here."""
        if not self.speaks(agent):
            self._speakers.append(agent)

    async def on_handoff(
        self,
        context: RunContextWrapper[Any],  # noqa: ARG002 - the SDK passes it by name
        from_agent: Agent[Any],
        to_agent: Agent[Any],
    ) -> None:
        """Note a handoff."""
        self._recorder.note(f"{from_agent.name} handed off to {to_agent.name}.")

    def speaks(self, agent: object) -> bool:
        """Whether an agent speaks with the user."""
        return any(agent is speaker for speaker in self._speakers)


def answer_text(output: object) -> str:
    """Return a run's final output as text; structured output as JSON."""
    if output is None or isinstance(output, str):
        return output or ""
    return to_json(output, fallback=str).decode()


def approval_request(key: str, item: ToolApprovalItem) -> ApprovalRequest:
    """Return a call that waits for approval; arguments that are no JSON object are shown as none."""
    try:
        arguments = json.loads(item.arguments or "{}")
    except ValueError:
        arguments = None
    return ApprovalRequest(key, item.name or "", arguments if isinstance(arguments, dict) else {})


def model_names(agent: Agent[Any], run_config: RunConfig) -> list[str]:
    """Return the names of the models that an agent and those in sight ask, each once."""
    return list(dict.fromkeys(_model_name(one, run_config) for one in reachable(agent)))


def _model_name(agent: Agent[Any], run_config: RunConfig) -> str:
    model = run_config.model or agent.model
    if isinstance(model, Model):
        return str(getattr(model, "model", type(model).__name__))
    return model or get_default_model()


def _tokens(usage: Usage) -> messages.Usage | None:
    if not (usage.input_tokens or usage.output_tokens):
        return None
    return messages.Usage(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.input_tokens_details.cached_tokens or 0,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.output_tokens_details.reasoning_tokens or 0,
    )
