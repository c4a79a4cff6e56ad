"""OpenAI Agents SDK: an ``agents.Agent``, the agents that it hands off to and its sub-agents, driven by the core.

Importing this module does not import the SDK.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import anyio

from tbadapters.adapters._shared import agent_fault, is_instance_of, model_fault, require
from tbadapters.core.agent import Approvals, NeedsApproval, Recorder, Said, TaskBrief
from tbadapters.core.errors import AgentFault, Fault, HarnessFault, InvalidOption, ProviderFault, UsageError, describe
from tbadapters.core.frameworks import Framework
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Message
from tbadapters.core.tools import Tool

if TYPE_CHECKING:
    from agents import Agent, RunConfig, RunResult, RunState, TResponseInputItem
    from agents.run_config import CallModelData, ModelInputData

_ROLES = {"user": "user", "agent": "assistant", "system": "system"}
_LABELS = {"MaxTurnsExceeded": "max_turns", "ModelBehaviorError": "model_behavior", "ModelRefusalError": "refusal"}


def _part(noun: Literal["tools", "ledger"]) -> ModuleType:
    require("agents", framework="The OpenAI Agents SDK", extra="openai-agents")
    return importlib.import_module(f"tbadapters.adapters.openai_agents_{noun}")


class OpenAIAgentsAgent:
    """An agent of the OpenAI Agents SDK with options; a bare ``agents.Agent`` is adapted with the defaults.

    Args:
        agent: The agent that the user talks to first. It is never changed; attempts may share it.
        run_config: The run configuration to use; its filter of model input is kept.
        context: What the SDK passes to tools, hooks and guardrails as context. A callable without arguments is called
            for each attempt, so that nothing leaks from one to the next.
        tools: ``"check"``: agents built without tools get the suite's; any tools but the suite's are refused.
            ``"replace"``: the suite's in place of the author's own. ``"suite"``: nothing is added or replaced, the
            suite's tools are where the author put them. A sub-agent behind ``as_tool()`` can't be given tools: build
            it with ``tools=load_suite(...).tools("openai-agents")``.
        keep: Names of the author's own tools (and MCP servers) that stay, such as a calculator. They are really executed.
        tracing: Whether the SDK's tracing stays on; it posts from a background thread.
        name: A short name for tables; by default the agent's.
    """

    framework = "openai-agents"

    def __init__(
        self,
        agent: Agent[Any],
        *,
        run_config: RunConfig | None = None,
        context: Any = None,
        tools: Literal["check", "replace", "suite"] = "check",
        keep: Collection[str] = (),
        tracing: bool = False,
        name: str | None = None,
    ) -> None:
        if not matches(agent):
            raise UsageError(f"OpenAIAgentsAgent takes an agents.Agent, not {type(agent).__name__}.")
        if tools not in ("check", "replace", "suite"):
            raise InvalidOption(f'OpenAIAgentsAgent(tools={tools!r}): say "check", "replace" or "suite".')
        self.agent, self.name = agent, name or agent.name
        self._context, self._tools, self._keep = context, tools, frozenset(keep)
        config = run_config or _part("ledger").RunConfig()
        self._run_config = replace(config, tracing_disabled=config.tracing_disabled or not tracing)
        self.models = _part("ledger").model_names(agent, config)

    def check(self, tools: Sequence[Tool]) -> None:
        """Look at the agents in sight. Those inside ``handoff()`` and ``as_tool()`` are looked at when they first act.

        Raises:
            ForeignTools: one brings tools that are not the suite's.
        """
        own, names = _part("tools"), {tool.name for tool in tools}
        for agent in own.reachable(self.agent):
            foreign = [] if self._tools == "replace" else own.foreign_tools(agent, self._keep)
            others = [t.name for t in agent.tools if isinstance(t, own.SuiteTool) and t.name not in names]
            if foreign or others:
                raise own.refused(agent.name, [*foreign, *others], seen=not others, keep=not others)

    @asynccontextmanager
    async def open(
        self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder, limits: Limits
    ) -> AsyncIterator[OpenAIAgentsSession]:
        """Open a session for one attempt; it is left when the last tool call's cleanup has ended."""
        own, agent = _part("tools"), self.agent
        if self._tools == "replace" or not any(own.has_suite_tools(one) for one in own.reachable(agent)):
            equipment = own.Equipment(agent, tools, recorder.note, self._keep)
            agent = agent if self._tools == "suite" else equipment.copy(agent)
        context = self._context() if callable(self._context) else self._context
        session = OpenAIAgentsSession(
            agent,
            self._keep,
            run_config=self._run_config,
            context=context,
            brief=brief,
            recorder=recorder,
            limits=limits,
        )
        try:
            yield session
        finally:
            with anyio.move_on_after(limits.grace, shield=True):
                await session.ledger.idle()


class OpenAIAgentsSession:
    """One attempt's conversation: the whole of it is sent to whichever agent spoke last."""

    def __init__(
        self,
        agent: Agent[Any],
        keep: Collection[str],
        *,
        run_config: RunConfig,
        context: Any,
        brief: TaskBrief,
        recorder: Recorder,
        limits: Limits,
    ) -> None:
        part = _part("ledger")
        self.ledger = part.Ledger(recorder, agent, run_config)
        self._watch = part.Watch(recorder)
        self._agent, self._keep, self._context, self._instructions = agent, keep, context, brief.instructions
        self._author_filter = run_config.call_model_input_filter
        self._run_config = replace(run_config, call_model_input_filter=self._before_request)
        self._max_turns = None if limits.model_requests is None else limits.model_requests + 1
        self._items: list[Any] = [{"role": _ROLES[m.role], "content": m.text} for m in brief.history]
        self._state: RunState[Any] | None = None
        self._waiting: dict[str, Any] = {}

    async def send(self, turn: Message | Approvals) -> Said | NeedsApproval:
        """Give the agent one user turn, or the answers to its approval requests, and return what it answers.

        Raises:
            Fault: as in ``AgentSession.send``.
            ForeignTools: an agent that acts for the first time brings tools that are not the suite's.
        """
        part, result = _part("ledger"), await self._run(self._input(turn))
        self._agent, self._items = result.last_agent, result.to_input_list()
        self._waiting = {str(item.call_id): item for item in result.interruptions}
        if self._waiting:
            self._state = result.to_state()
            return NeedsApproval(tuple(part.approval_request(key, item) for key, item in self._waiting.items()))
        return Said(part.answer_text(result.final_output))

    def _input(self, turn: Message | Approvals) -> list[TResponseInputItem] | RunState[Any]:
        if isinstance(turn, Message):
            if self._waiting:
                raise HarnessFault("The agent waits for approvals, not for a message.")
            return [*self._items, {"role": "user", "content": turn.text}]
        if self._state is None:
            raise HarnessFault("The agent waits for a message, not for approvals.")
        state, self._state = self._state, None
        for key, item in self._waiting.items():
            if turn.decisions.get(key, False):
                state.approve(item)
            else:
                state.reject(item)
        return state

    async def _run(self, given: list[TResponseInputItem] | RunState[Any]) -> RunResult:
        from agents import RunContextWrapper, Runner

        context = RunContextWrapper(context=self._context, usage=self.ledger)
        try:
            result = await Runner.run(
                self._agent,
                given,
                context=context,  # a wrapper is taken as it is; ours brings the ledger
                max_turns=self._max_turns,
                hooks=self._watch,
                run_config=self._run_config,
            )
        except Exception as error:
            if self.ledger.broken:
                raise self.ledger.broken  # noqa: B904 - it is among the causes of what the SDK raised
            fault = _request_fault(error)
            self.ledger.unanswered(fault)
            raise fault or _own_fault(error) from error
        if self.ledger.broken:
            raise self.ledger.broken
        self.ledger.unanswered_but_survived()
        return result

    async def _before_request(self, data: CallModelData[Any]) -> ModelInputData:
        """Look at the agent, tell it the policy and count the request; reaches sub-agents, unlike run hooks."""
        agent, own = data.agent, _part("tools")
        if self.ledger.broken:
            raise self.ledger.broken
        if foreign := own.foreign_tools(agent, self._keep):
            raise self.ledger.breaks(own.refused(agent.name, foreign, seen=False))
        model_input = data.model_data
        if self._author_filter is not None:
            filtered = self._author_filter(data)
            model_input = filtered if not hasattr(filtered, "__await__") else await filtered
        if self._instructions:
            if self._watch.speaks(agent) or own.has_suite_tools(agent):
                told = [text for text in (model_input.instructions, self._instructions) if text]
                model_input = replace(model_input, instructions="\n\n".join(told))
            else:
                self.ledger.note(f"The sub-agent {agent.name} has no suite tools and was not told the policy.")
        self.ledger.request_starts(agent)
        return model_input


def matches(agent: object) -> bool:
    """Whether an object is an agent of the SDK; imports nothing."""
    return is_instance_of(agent, "agents.agent", "Agent")


def tools(suite_tools: Sequence[Tool]) -> list[Any]:
    """Return a suite's tools as the SDK's own, for agents and for sub-agents behind ``as_tool()``."""
    make = _part("tools").suite_tool
    return [make(tool) for tool in suite_tools]


def _request_fault(error: Exception) -> Fault | None:
    if type(error).__name__ == "ModelTimeoutError":
        return ProviderFault(describe(error), code="timeout")
    return model_fault(error)


def _own_fault(error: Exception) -> Fault:
    name = type(error).__name__
    code = "tripwire" if name.endswith("TripwireTriggered") else _LABELS.get(name)
    return AgentFault(describe(error), code=code) if code else agent_fault(error)


FRAMEWORK = Framework(
    name="openai-agents",
    extra="openai-agents",
    accepts="an OpenAI Agents SDK agents.Agent",
    matches=matches,
    adapt=OpenAIAgentsAgent,
    tools=tools,
)
