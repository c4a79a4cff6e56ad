"""What tbadapters puts into an OpenAI Agents SDK run: the suite's tools, a ledger of requests, a watch on agents.

Imports the SDK, so it is imported where an agent of it is at hand.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import anyio
from agents import (
    Agent,
    AgentHookContext,
    FunctionTool,
    Handoff,
    Model,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    ToolApprovalItem,
    ToolOriginType,
    Usage,
)
from agents.models import get_default_model
from agents.tool import get_function_tool_origin
from agents.tool_context import ToolContext
from pydantic_core import to_json

from tbadapters.core import messages
from tbadapters.core.agent import ApprovalRequest, Recorder
from tbadapters.core.errors import Fault, ForeignTools, TbAdaptersError, UsageError
from tbadapters.core.tools import Tool

NO_USAGE = "The model {} reported no usage; for streamed chat completions say ModelSettings(include_usage=True)."
UNSEEN = (
    "A sub-agent behind as_tool() was given a run_config of its own, so its tools can't be looked at: leave run_config "
    "out of as_tool() (it then has that of OpenAIAgentsAgent(agent, run_config=...)), or build the agent with factory()."
)


class SuiteTool(FunctionTool):
    """A suite's tool as the SDK's own; the type is how it is told from an author's tools."""


def suite_tool(tool: Tool) -> SuiteTool:
    """Return a tool as the SDK's, its schema as it is (the SDK's strict form would make every argument required)."""

    async def invoke(context: ToolContext[Any], text: str) -> str:
        ledger = context.usage if isinstance(context.usage, Ledger) else None
        try:
            arguments = json.loads(text or "{}")
        except ValueError as error:
            return f"The arguments of {tool.name} are no valid JSON: {error}"
        if not isinstance(arguments, dict):
            return f"The arguments of {tool.name} must be a JSON object."
        if ledger is None:
            return (await tool.call(arguments)).text
        async with ledger.calling():
            return (await tool.call(arguments, actor=ledger.actor(context.agent))).text

    schema = deepcopy(dict(tool.parameters))
    return SuiteTool(
        tool.name, tool.description, schema, invoke, strict_json_schema=False, needs_approval=tool.needs_approval
    )


def is_sub_agent(tool: object) -> TypeGuard[FunctionTool]:
    """Whether a tool was made by ``as_tool()``: an agent of the author's, not a foreign tool."""
    origin = get_function_tool_origin(tool) if isinstance(tool, FunctionTool) else None
    return origin is not None and origin.type is ToolOriginType.AGENT_AS_TOOL


def has_suite_tools(agent: Any) -> bool:
    """Whether an agent was built with tools of a suite."""
    return any(isinstance(tool, SuiteTool) for tool in agent.tools)


def foreign_tools(agent: Any) -> list[str]:
    """Return the names of an agent's tools and MCP servers that are not a suite's."""
    own = [tool.name for tool in agent.tools if not isinstance(tool, SuiteTool) and not is_sub_agent(tool)]
    return own + [server.name for server in agent.mcp_servers]


def refused(agent: str, names: Sequence[str], *, seen: bool = True) -> ForeignTools:
    """Return the error for foreign tools; ``seen`` is whether the agent is one that tools="replace" reaches."""
    build = 'Build it with tools=load_suite(...).tools("openai-agents")'
    other = ', or say OpenAIAgentsAgent(agent, tools="replace") to have the suite\'s tools instead' if seen else ""
    return ForeignTools(
        f"The agent {agent!r} brings tools that are not the suite's: {', '.join(names)}. {build}{other}."
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


class Equipment:
    """Copies of an author's agents with the suite's tools; the author's objects stay as they are.

    An agent gets the suite's tools in place of foreign ones; and, where no agent in sight was built with any tools
    but sub-agents, if it has none.
    """

    def __init__(self, root: Agent[Any], tools: Sequence[Tool], note: Callable[[str], None]) -> None:
        self._note = note
        self._tools = [suite_tool(tool) for tool in tools]
        self._wired = any(has_suite_tools(agent) or foreign_tools(agent) for agent in reachable(root))
        self._copies: dict[int, tuple[Agent[Any], Agent[Any]]] = {}

    def copy(self, agent: Agent[Any]) -> Agent[Any]:
        """Return the equipped copy of an agent: one for each, so that agents may hand off in circles."""
        if id(agent) in self._copies:
            return self._copies[id(agent)][1]
        kept = [tool for tool in agent.tools if isinstance(tool, SuiteTool) or is_sub_agent(tool)]
        foreign = foreign_tools(agent)
        if foreign or not (self._wired or agent.tools):
            names = {tool.name for tool in kept}
            kept += [tool for tool in self._tools if tool.name not in names]
            instead = f" instead of {', '.join(foreign)}" if foreign else ""
            self._note(f"{agent.name} was given the suite's tools{instead}.")
        twin = agent.clone(tools=kept, mcp_servers=[], handoffs=[])
        self._copies[id(agent)] = self._copies[id(twin)] = (agent, twin)
        twin.handoffs.extend(
            self._handoff(target) if isinstance(target, Handoff) else self.copy(target) for target in agent.handoffs
        )
        return twin

    def _handoff(self, handoff: Handoff[Any, Any]) -> Handoff[Any, Any]:
        async def invoke(context: RunContextWrapper[Any], text: str) -> Any:
            return self.copy(await handoff.on_invoke_handoff(context, text))

        return replace(handoff, on_invoke_handoff=invoke)


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
