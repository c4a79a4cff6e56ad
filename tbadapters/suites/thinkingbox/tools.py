"""Which tools the tasks of a scenario have: the servers' as the scenario names them, and the agent file's own."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, overload

from tbadapters.core.errors import SuiteError
from tbadapters.core.tools import Tool
from tbadapters.suites.thinkingbox.files import AgentFile, Scenario, ScenarioTool


def chosen_tools(scenario: Scenario, agent: AgentFile, offered: Mapping[str, Sequence[Tool]]) -> tuple[Tool, ...]:
    """Return the tools that a scenario's agent has.

    Args:
        scenario: What it names, with descriptions of its own.
        agent: The agent file; its tools that do not end the conversation are served by nobody, so left out.
        offered: The tools of each of the scenario's servers.

    Raises:
        SuiteError: the scenario names a tool that no server has, or two servers have.
    """
    named = {tool.name: tool for tool in scenario.tools}
    found: dict[str, Tool] = {
        own.name: Tool(own.name, own.description, own.input_schema, writes=False, ends_turn=True)
        for own in agent.builtin_tools
        if own.is_end_turn
    }
    for server, tools in offered.items():
        for tool in tools:
            if tool.name not in named:
                continue
            if tool.name in found:
                raise SuiteError(f"The tool {tool.name!r} of the server {server!r} is there twice.")
            found[tool.name] = _overridden(tool, named[tool.name])
    missing = named.keys() - found.keys()
    if missing:
        servers = ", ".join(offered)
        raise SuiteError(f"No server of the scenario ({servers}) has the tool {min(missing)!r} that it names.")
    return tuple(found.values())


def _overridden(tool: Tool, override: ScenarioTool) -> Tool:
    parameters: Mapping[str, Any] = tool.parameters
    if override.override_arg_description:
        changed = copy.deepcopy(dict(parameters))
        for name, description in override.override_arg_description.items():
            if name in changed.get("properties", {}):
                changed["properties"][name]["description"] = description
        parameters = changed
    description = tool.description if override.override_description is None else override.override_description
    return replace(tool, description=description, parameters=parameters, ends_turn=override.is_end_turn)


class ListedTools(Sequence[Tool]):
    """Tools that are asked for when somebody first looks at them: listing them may start a server.

    Args:
        scenario: Whose tools they are; two with the same name are equal without being listed.
        listed: Returns them.
    """

    def __init__(self, scenario: tuple[str, ...], listed: Callable[[], tuple[Tool, ...]]) -> None:
        self._scenario, self._listed = scenario, listed

    @cached_property
    def _tools(self) -> tuple[Tool, ...]:
        return self._listed()

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | Sequence[Tool]:
        return self._tools[index]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListedTools) and self._scenario == other._scenario

    def __hash__(self) -> int:
        return hash(self._scenario)

    def __repr__(self) -> str:
        return f"ListedTools({'/'.join(self._scenario)})"
