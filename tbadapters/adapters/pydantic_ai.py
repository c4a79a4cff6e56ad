"""PydanticAI agents: the suite's tools by context-local overrides, so a shared agent serves concurrent trials."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from tbadapters.adapters._shared import is_instance_of, must_take, require
from tbadapters.core.agent import Recorder, TaskBrief
from tbadapters.core.errors import ForeignTools, InvalidOption, UsageError
from tbadapters.core.frameworks import Framework
from tbadapters.core.limits import Limits
from tbadapters.core.tools import Tool

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.settings import ModelSettings

    from tbadapters.adapters.pydantic_ai_meter import Meter
    from tbadapters.adapters.pydantic_ai_session import Session


class PydanticAIAgent:
    """A PydanticAI agent under test.

    An agent that brings no tool gets the suite's; one that was built with ``suite.tools("pydantic-ai")`` keeps those
    that it was given. The policy is added to its instructions on every turn, and to its sub-agents'.

    Args:
        agent: A ``pydantic_ai.Agent`` (or a ``WrapperAgent``). It is never changed; one may serve all trials.
        deps: Passed to every run; shared by all trials.
        deps_factory: ``deps_factory(brief)``, sync or async, makes deps afresh for each attempt.
        tools: ``"check"`` refuses tools of the author's own; ``"replace"`` gives the suite's tools instead of them.
        keep: Names of tools of the author's own (or ids of toolsets) that stay, such as one that runs a sub-agent. They
            are really executed, and what they do is seen by nobody.
        subagents: Agents that the author's own tools run. Only those named here get the suite's tools (under the same
            rules) and the policy, and only their model requests are counted.
        model_settings: Passed to every run of the agent itself.
        name: A short name for tables; the agent's own by default.
    """

    framework = "pydantic-ai"

    def __init__(
        self,
        agent: AbstractAgent[Any, Any],
        *,
        deps: Any = None,
        deps_factory: Callable[[TaskBrief], Any] | None = None,
        tools: Literal["check", "replace"] = "check",
        keep: Sequence[str] = (),
        subagents: Sequence[AbstractAgent[Any, Any]] = (),
        model_settings: ModelSettings | None = None,
        name: str | None = None,
    ) -> None:
        if tools not in ("check", "replace"):
            raise InvalidOption(f"PydanticAIAgent(tools={tools!r}): must be 'check' or 'replace'.")
        if deps is not None and deps_factory is not None:
            raise InvalidOption("PydanticAIAgent: give deps or deps_factory, not both.")
        if deps_factory is not None:
            must_take(deps_factory, "PydanticAIAgent(deps_factory=...)", "brief")
        self.agent = agent
        self.deps, self.deps_factory = deps, deps_factory
        self.replaces = tools == "replace"
        self.keep, self.subagents = tuple(keep), tuple(subagents)
        self.model_settings = model_settings
        self._name = name

    @property
    def name(self) -> str:
        """A short name of the agent."""
        return self._name or self.agent.name or self.framework

    @property
    def models(self) -> list[str]:
        """The names of the models of the agent and its sub-agents, where they have one already."""
        models = [agent.model for agent in (self.agent, *self.subagents)]
        return [m.partition(":")[2] or m if isinstance(m, str) else m.model_name for m in models if m is not None]

    def check(self, tools: Sequence[Tool]) -> None:
        """Look at the agent and its sub-agents once.

        Raises:
            ForeignTools: one brings tools of its own that nobody said are to be kept or replaced.
            UsageError: deps or a sub-agent's model are missing, a sub-agent is not named, or none gets the suite's tools.
        """
        self._check_deps()
        given = [self._check_tools(agent, tools) for agent in (self.agent, *self.subagents)]
        if not any(given):
            raise UsageError(
                f"No agent of {self.name!r} has the suite's tools: build one with "
                'Agent(..., tools=suite.tools("pydantic-ai")).'
            )
        for agent in self.subagents:
            if agent.model is None:
                raise UsageError(
                    f"The sub-agent {agent.name!r} has no model of its own, so its tokens can't be counted: "
                    "build it with Agent(model, ...)."
                )

    def _check_deps(self) -> None:
        expected = getattr(self.agent, "deps_type", object)
        if expected not in (object, type(None)) and self.deps is None and self.deps_factory is None:
            kind = getattr(expected, "__name__", str(expected))
            raise UsageError(
                f"The agent {self.name!r} expects deps of type {kind}: "
                f"PydanticAIAgent(agent, deps_factory=lambda brief: {kind}(...))."
            )

    def _check_tools(self, agent: AbstractAgent[Any, Any], tools: Sequence[Tool]) -> bool:
        """Return whether the agent is going to have the suite's tools."""
        from tbadapters.adapters.pydantic_ai_tools import agents_used_by, belongings

        found = belongings(agent, self.keep)
        if found.foreign and not self.replaces:
            raise ForeignTools(
                f"The agent {agent.name or self.name!r} brings tools that are not the suite's: "
                f'{", ".join(found.foreign)}. PydanticAIAgent(agent, tools="replace") gives it the suite\'s instead; '
                f"PydanticAIAgent(agent, keep={(*self.keep, *found.foreign)!r}) keeps and really executes them."
            )
        if not self.replaces and (strange := set(found.suite) - {tool.name for tool in tools}):
            raise ForeignTools(
                f"The agent {agent.name or self.name!r} was built with tools of another suite: "
                f"{', '.join(sorted(strange))}. Build it with the tools of the suite that it is evaluated on, "
                'or without any: PydanticAIAgent(agent, tools="replace").'
            )
        for tool in found.tools:
            for used in agents_used_by(tool):
                if used is not self.agent and used not in self.subagents:
                    raise UsageError(
                        f"The tool {tool.name!r} runs the agent {used.name!r}, which would be left without the suite's "
                        f"tools and uncounted: PydanticAIAgent(agent, keep=..., subagents=[{used.name or '...'}])."
                    )
        return self.replaces or found.nothing or bool(found.suite)

    @asynccontextmanager
    async def open(
        self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder, limits: Limits
    ) -> AsyncIterator[Session]:
        """Open a session for one attempt. The framework's own limits are lifted."""
        from tbadapters.adapters.pydantic_ai_meter import Meter
        from tbadapters.adapters.pydantic_ai_session import Session, history

        deps = self.deps
        if self.deps_factory is not None:
            deps = self.deps_factory(brief)
            deps = await deps if inspect.isawaitable(deps) else deps
        del limits  # the recorder counts them
        meter = Meter(recorder)
        told = [brief.instructions, *(m.text for m in brief.history if m.role == "system")]
        yield Session(
            agent=self.agent,
            model_settings=self.model_settings,
            deps=deps,
            instructions="\n\n".join(text for text in told if text) or None,
            output_type=self._output_type(tools),
            overrides=self._overrides(brief.instructions, tools, meter),
            meter=meter,
            messages=history(brief.history),
        )

    def _output_type(self, tools: Sequence[Tool]) -> Any:
        """Return the output type that also lets a run end with a request for approval, or None to leave it."""
        from pydantic_ai import DeferredToolRequests

        from tbadapters.adapters.pydantic_ai_tools import can_ask, output_types

        if can_ask(self.agent) or not any(tool.needs_approval for tool in tools):
            return None
        return [*output_types(self.agent), DeferredToolRequests]

    def _overrides(
        self, policy: str | None, tools: Sequence[Tool], meter: Meter
    ) -> list[tuple[AbstractAgent[Any, Any], dict[str, Any]]]:
        """Return what is overridden in each agent while the attempt's runs are under way."""
        from tbadapters.adapters.pydantic_ai_meter import MeteredModel
        from tbadapters.adapters.pydantic_ai_tools import actor_name, belongings, can_ask, suite_toolset

        plan: list[tuple[AbstractAgent[Any, Any], dict[str, Any]]] = []
        for agent in (self.agent, *self.subagents):
            top = agent is self.agent
            found = belongings(agent, self.keep)
            changes: dict[str, Any] = (
                {} if top or agent.model is None else {"model": MeteredModel(agent.model, meter, actor_name(agent))}
            )
            told = None if top else policy
            if self.replaces or found.nothing:
                given = suite_toolset(tools, told, can_ask=top or can_ask(agent))
                changes |= {"tools": found.tools, "toolsets": [*found.toolsets, given], "native_tools": found.native}
            elif told:
                changes["toolsets"] = [*found.own_toolsets, suite_toolset((), told)]
            plan.append((agent, changes))
        return plan


def _tools(tools: Sequence[Tool]) -> list[Any]:
    require("pydantic_ai", framework="PydanticAI", extra="pydantic-ai")
    from tbadapters.adapters.pydantic_ai_tools import suite_tool

    return [suite_tool(tool) for tool in tools]


FRAMEWORK = Framework(
    name="pydantic-ai",
    extra="pydantic-ai",
    accepts="a pydantic_ai.Agent, or PydanticAIAgent(agent, ...)",
    matches=lambda candidate: is_instance_of(candidate, "pydantic_ai", "AbstractAgent"),
    adapt=PydanticAIAgent,
    tools=_tools,
)
