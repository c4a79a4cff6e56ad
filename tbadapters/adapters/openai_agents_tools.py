"""The suite's tools as the OpenAI Agents SDK's own, and copies of an author's agents that hold them.

Imports the SDK, so it is imported where an agent of it is at hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeGuard

from agents import (
    Agent,
    FunctionTool,
    Handoff,
    RunContextWrapper,
    ToolOriginType,
)
from agents.tool import get_function_tool_origin
from agents.tool_context import ToolContext

from tbadapters.adapters.openai_agents_ledger import Ledger, reachable
from tbadapters.core.errors import ForeignTools
from tbadapters.core.tools import Tool


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


def foreign_tools(agent: Any, keep: Collection[str] = ()) -> list[str]:
    """Return the names of an agent's tools and MCP servers that are not a suite's, but for those that are kept."""
    own = [tool.name for tool in agent.tools if not isinstance(tool, SuiteTool) and not is_sub_agent(tool)]
    return [name for name in (*own, *(server.name for server in agent.mcp_servers)) if name not in keep]


def refused(agent: str, names: Sequence[str], *, seen: bool = True, keep: bool = True) -> ForeignTools:
    """Return the error for foreign tools; whether tools="replace" reaches the agent, and whether ``keep`` would do."""
    build = 'Build it with tools=load_suite(...).tools("openai-agents")'
    other = ', or say OpenAIAgentsAgent(agent, tools="replace") to have the suite\'s tools instead' if seen else ""
    other += f"; OpenAIAgentsAgent(agent, keep={list(names)!r}) keeps and really executes them" if keep else ""
    return ForeignTools(
        f"The agent {agent!r} brings tools that are not the suite's: {', '.join(names)}. {build}{other}."
    )


class Equipment:
    """Copies of an author's agents with the suite's tools; the author's objects stay as they are.

    An agent gets the suite's tools in place of foreign ones; and, where no agent in sight was built with any tools
    but sub-agents and kept ones, if it has no sub-agents.
    """

    def __init__(
        self, root: Agent[Any], tools: Sequence[Tool], note: Callable[[str], None], keep: Collection[str]
    ) -> None:
        self._note, self._keep = note, keep
        self._tools = [suite_tool(tool) for tool in tools]
        self._wired = any(has_suite_tools(agent) or foreign_tools(agent, keep) for agent in reachable(root))
        self._copies: dict[int, tuple[Agent[Any], Agent[Any]]] = {}

    def copy(self, agent: Agent[Any]) -> Agent[Any]:
        """Return the equipped copy of an agent: one for each, so that agents may hand off in circles."""
        if id(agent) in self._copies:
            return self._copies[id(agent)][1]
        foreign = foreign_tools(agent, self._keep)
        kept = [t for t in agent.tools if isinstance(t, SuiteTool) or is_sub_agent(t) or t.name in self._keep]
        if foreign or not (self._wired or any(tool.name not in self._keep for tool in agent.tools)):
            names = {tool.name for tool in kept}
            kept += [tool for tool in self._tools if tool.name not in names]
            instead = f" instead of {', '.join(foreign)}" if foreign else ""
            self._note(f"{agent.name} was given the suite's tools{instead}.")
        servers = [server for server in agent.mcp_servers if server.name in self._keep]
        twin = agent.clone(tools=kept, mcp_servers=servers, handoffs=[])
        self._copies[id(agent)] = self._copies[id(twin)] = (agent, twin)
        twin.handoffs.extend(
            self._handoff(target) if isinstance(target, Handoff) else self.copy(target) for target in agent.handoffs
        )
        return twin

    def _handoff(self, handoff: Handoff[Any, Any]) -> Handoff[Any, Any]:
        async def invoke(context: RunContextWrapper[Any], text: str) -> Any:
            return self.copy(await handoff.on_invoke_handoff(context, text))

        return replace(handoff, on_invoke_handoff=invoke)
