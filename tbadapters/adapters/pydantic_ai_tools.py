"""The suite's tools as PydanticAI's own, and the tools that an agent's author gave it.

Imports PydanticAI, so import it only where an agent of it is at hand.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext, ToolFailed
from pydantic_ai import Tool as FrameworkTool
from pydantic_ai.agent import AbstractAgent, WrapperAgent
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.toolsets.abstract import AGENT_TOOLSET_ID
from pydantic_core import SchemaValidator, core_schema

from tbadapters.core.tools import Tool

# Arguments must be an object; whether they fit the schema is judged where the tool is executed, the same for every
# framework, and answered in words.
OBJECT = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))

# The agent whose session runs here, so that a tool can tell it from a sub-agent.
root: ContextVar[object | None] = ContextVar("tbadapters_pydantic_ai_root", default=None)


class SuiteTool(FrameworkTool[Any]):
    """A suite's tool as PydanticAI's own; its class is how an agent's suite tools are told from its author's."""

    suite_name: str


def suite_tool(tool: Tool, *, can_ask: bool = True) -> SuiteTool:
    """Return ``tool`` for PydanticAI.

    Args:
        tool: Bound to an attempt, or bound by context where it is called.
        can_ask: Whether its agent can end a run with a request for approval. One that can't is told so in words.
    """

    async def call(ctx: RunContext[Any], /, **arguments: Any) -> str:
        if tool.needs_approval and not can_ask:
            raise ToolFailed(f"{tool.name} needs a person's approval, which this sub-agent can't ask for.")
        result = await tool.call(arguments, actor=_actor(ctx))
        if result.is_error:
            raise ToolFailed(result.text)
        return result.text

    made = SuiteTool.from_schema(call, tool.name, tool.description, deepcopy(dict(tool.parameters)), takes_ctx=True)
    made.suite_name = tool.name
    made.function_schema.validator = OBJECT
    made.requires_approval = tool.needs_approval and can_ask
    made.strict = False  # strict mode would rewrite the schema
    return made


def suite_toolset(
    tools: Sequence[Tool], instructions: str | None = None, *, can_ask: bool = True
) -> FunctionToolset[Any]:
    """Return tools of the suite as one toolset, which tells its agent ``instructions``."""
    return FunctionToolset([suite_tool(tool, can_ask=can_ask) for tool in tools], instructions=instructions)


def _actor(ctx: RunContext[Any]) -> str | None:
    top = root.get()
    return None if top is None or ctx.agent is None or ctx.agent is top else actor_name(ctx.agent)


def actor_name(agent: AbstractAgent[Any, Any]) -> str:
    """Return the name under which a sub-agent's requests and tool calls are recorded."""
    return agent.name or "sub-agent"


def unwrapped(agent: AbstractAgent[Any, Any]) -> AbstractAgent[Any, Any]:
    """Return the agent that runs inside any ``WrapperAgent``."""
    while isinstance(agent, WrapperAgent):
        agent = agent.wrapped
    return agent


def can_ask(agent: AbstractAgent[Any, Any]) -> bool:
    """Whether a run of the agent may end in ``DeferredToolRequests``."""
    return DeferredToolRequests in output_types(agent)


def output_types(agent: AbstractAgent[Any, Any]) -> list[Any]:
    """Return the agent's output types as a list."""
    spec: Any = agent.output_type
    return list(spec) if isinstance(spec, (list, tuple)) else [spec]


@dataclass
class Belongings:
    """The tools that an agent's author gave it.

    Attributes:
        suite: Names of those that are a suite's.
        tools: Those of the author's function tools that are to stay.
        toolsets: Other toolsets that are to stay.
        native: Tools of the provider that are to stay.
        foreign: Names of the author's tools of which nobody said that they are to stay.
        own_toolsets: All toolsets but the one of the agent's function tools, as the author nested them.
    """

    suite: list[str] = field(default_factory=list)
    tools: list[FrameworkTool[Any]] = field(default_factory=list)
    toolsets: list[Any] = field(default_factory=list)
    native: list[Any] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    own_toolsets: list[Any] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        """Whether the agent brings no tool at all."""
        return not (self.suite or self.tools or self.toolsets or self.foreign)


def belongings(agent: AbstractAgent[Any, Any], keep: tuple[str, ...]) -> Belongings:
    """Look through all toolsets of an agent, nested ones too, and its provider's tools."""
    found, leaves = Belongings(), list[Any]()
    for toolset in agent.toolsets:
        toolset.apply(leaves.append)
        if toolset.id != AGENT_TOOLSET_ID:
            found.own_toolsets.append(toolset)
    for leaf in leaves:
        if not isinstance(leaf, FunctionToolset):
            _sort(leaf, leaf.id or leaf.label, keep, found.toolsets, found.foreign)
            continue
        for tool in leaf.tools.values():
            if isinstance(tool, SuiteTool):
                found.suite.append(tool.suite_name)
            else:
                _sort(tool, tool.name, keep, found.tools, found.foreign)
    for native in agent.root_capability.get_native_tools():
        name = str(getattr(native, "kind", None) or getattr(native, "__name__", "native tool"))
        # PydanticAI adds the search among deferred tools to every agent.
        _sort(native, name, (*keep, "tool_search"), found.native, found.foreign)
    return found


def _sort(item: Any, name: str, keep: tuple[str, ...], kept: list[Any], foreign: list[str]) -> None:
    if name in keep:
        kept.append(item)
    else:
        foreign.append(name)


def agents_used_by(tool: FrameworkTool[Any]) -> list[AbstractAgent[Any, Any]]:
    """Return the agents that a tool's function can be seen to use (its globals and closure)."""
    try:
        seen = inspect.getclosurevars(inspect.unwrap(tool.function))
    except TypeError:  # no plain function
        return []
    return [v for v in {**seen.globals, **seen.nonlocals}.values() if isinstance(v, AbstractAgent)]
