"""One attempt's conversation with a PydanticAI agent: each user turn is a run.

Imports PydanticAI, so import it only where an agent of it is at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import DeferredToolResults, UsageLimits
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import ReinjectSystemPrompt
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, ToolApproved, ToolDenied
from pydantic_ai.usage import RunUsage
from pydantic_core import to_json

from tbadapters.adapters.pydantic_ai_meter import Meter, fault_of
from tbadapters.adapters.pydantic_ai_tools import root, unwrapped
from tbadapters.core.agent import ApprovalRequest, Approvals, NeedsApproval, Said
from tbadapters.core.errors import AgentFault
from tbadapters.core.messages import Message


def history(messages: Sequence[Message]) -> list[ModelMessage]:
    """Return what user and agent said before the trial as PydanticAI's messages."""
    return [
        ModelResponse([TextPart(m.text)]) if m.role == "agent" else ModelRequest([UserPromptPart(m.text)])
        for m in messages
        if m.role != "system"
    ]


@dataclass
class Session:
    """One attempt's conversation: each turn is a run that goes on from the messages of the last one."""

    agent: AbstractAgent[Any, Any]
    model_settings: ModelSettings | None
    deps: Any
    instructions: str | None
    output_type: Any
    overrides: list[tuple[AbstractAgent[Any, Any], dict[str, Any]]]
    meter: Meter
    messages: list[Any]
    capabilities: list[Any] = field(default_factory=list)
    waiting: tuple[str, ...] = ()
    uncounted: int = 0
    usage: RunUsage = field(default_factory=RunUsage)

    def __post_init__(self) -> None:
        # A history that does not begin with the agent's own run lacks its system prompt.
        self.capabilities = [self.meter, *([ReinjectSystemPrompt()] if self.messages else [])]

    async def send(self, turn: Message | Approvals) -> Said | NeedsApproval:
        """Run the agent on one turn of the user."""
        try:
            with self._overridden():
                result = await self._run(turn)
        except Exception as error:
            fault = fault_of(error)
            if fault is error:
                raise
            raise fault from error
        self.messages, self.waiting = result.all_messages(), ()
        self._note_uncounted()
        output = result.output
        if not isinstance(output, DeferredToolRequests):
            return Said(_text(output))
        if output.calls:
            names = ", ".join(call.tool_name for call in output.calls)
            raise AgentFault(f"The agent waits for results from outside that nobody gives: {names}.")
        self.waiting = tuple(call.tool_call_id for call in output.approvals)
        return NeedsApproval(
            tuple(ApprovalRequest(call.tool_call_id, call.tool_name, call.args_as_dict()) for call in output.approvals)
        )

    @contextmanager
    def _overridden(self) -> Iterator[None]:
        token = root.set(unwrapped(self.agent))
        try:
            with ExitStack() as stack:
                for agent, changes in self.overrides:
                    stack.enter_context(agent.override(**changes))
                yield
        finally:
            root.reset(token)

    async def _run(self, turn: Message | Approvals) -> Any:
        # What is not agreed to is declined.
        answers: dict[str, bool | ToolApproved | ToolDenied] = dict.fromkeys(self.waiting, False)
        if isinstance(turn, Approvals):
            answers |= turn.decisions
        return await self.agent.run(
            turn.text if isinstance(turn, Message) else None,
            message_history=self.messages,
            deferred_tool_results=DeferredToolResults(approvals=answers) if answers else None,
            instructions=self.instructions,
            deps=self.deps,
            model_settings=self.model_settings,
            output_type=self.output_type,
            usage=self.usage,
            usage_limits=UsageLimits(request_limit=None),
            infer_name=False,
            capabilities=self.capabilities,
        )

    def _note_uncounted(self) -> None:
        """Say it when agents that nobody named share the run's usage: their requests were not recorded."""
        missed = self.usage.requests - self.meter.answered
        if missed > self.uncounted and self.meter.recorder:
            self.uncounted = missed
            self.meter.recorder.note(
                f"{missed} model requests were made by agents that are not named in subagents=; "
                "their tokens are not counted."
            )


def _text(output: Any) -> str:
    if isinstance(output, str):
        return output
    return "" if output is None else to_json(output, fallback=str).decode()
