"""Suite tools as LangChain tools.

Imports LangChain and LangGraph at the top: ``langgraph.py`` imports this module only when a graph is at hand.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.runnables import (
    RunnableConfig,
)
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import interrupt

from tbadapters.core.errors import AgentFault
from tbadapters.core.tools import Tool, ToolResult

APPROVAL = "tbadapters_approval"  # marks the interrupts that our own tools raise
ROOT = "tbadapters_agent"  # the metadata key that carries the root graph's name into everything it calls


@dataclass
class PlayedTurn:
    """The user turn that is being played in this context.

    LangGraph resumes a node from its beginning: calls that were answered beside the interrupting one come again.

    Attributes:
        results: What the turn's calls were answered.
        resuming: Whether an interrupted node is executed again.
        blocking: The runs that block the event loop, because they were invoked synchronously in async code.
    """

    results: dict[str, ToolResult] = field(default_factory=dict)
    resuming: bool = False
    blocking: set[UUID] = field(default_factory=set)


played_turn: ContextVar[PlayedTurn | None] = ContextVar("tbadapters_langgraph_turn", default=None)
_call_id: ContextVar[str | None] = ContextVar("tbadapters_langgraph_call_id", default=None)


class SuiteTool(BaseTool):
    """A suite's tool as a LangChain tool; what it is given reaches the sandbox as it is."""

    suite_tool: Any  # a ``Tool``, which pydantic must not take apart

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002  # the base's name
        """Note the tool call's id, then call."""
        with _noted(input):
            return await super().ainvoke(input, config, **kwargs)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002  # the base's name
        """Do the same from a worker thread."""
        with _noted(input):
            return super().invoke(input, config, **kwargs)

    async def _arun(self, /, **arguments: Any) -> str:
        result = self._before(arguments)
        if result is None:
            result = await self.suite_tool.call(arguments, actor=actor_of(ensure_config().get("metadata")))
        return self._after(arguments, result)

    def _run(self, /, **arguments: Any) -> str:
        turn = played_turn.get()
        if turn is not None and turn.blocking:  # the call would wait for the loop, and the loop for the call
            raise AgentFault(
                f"{self.name} was called by a graph that was invoked synchronously in an async node: "
                "use `await graph.ainvoke(...)` there.",
                code="blocked_loop",
            )
        result = self._before(arguments)
        if result is None:
            result = self.suite_tool.call_sync(arguments, actor=actor_of(ensure_config().get("metadata")))
        return self._after(arguments, result)

    def _before(self, arguments: Mapping[str, Any]) -> ToolResult | None:
        turn = played_turn.get()
        if turn is not None and turn.resuming:
            earlier = turn.results.pop(self._key(arguments), None)
            if earlier is not None:
                return earlier
        return self._declined(arguments) if self.suite_tool.needs_approval else None

    def _after(self, arguments: Mapping[str, Any], result: ToolResult) -> str:
        if (turn := played_turn.get()) is not None:
            turn.results[self._key(arguments)] = result
        if result.is_error:
            raise ToolException(result.text)
        return result.text

    def _declined(self, arguments: Mapping[str, Any]) -> ToolResult | None:
        key = self._key(arguments)
        request = {APPROVAL: key, "tool": self.name, "arguments": dict(arguments)}
        # Interrupts of one node are answered by their order: each answer holds all decisions, so none is mistaken.
        decisions: Mapping[str, bool] = {}
        while key not in decisions:
            decisions = interrupt(request)
        return None if decisions[key] else ToolResult("The user did not agree to this call.", is_error=True)

    def _key(self, arguments: Mapping[str, Any]) -> str:
        return json.dumps([_call_id.get(), self.name, arguments], sort_keys=True, default=str)


@contextmanager
def _noted(tool_input: Any) -> Iterator[None]:
    token = _call_id.set(tool_input.get("id") if isinstance(tool_input, dict) and "args" in tool_input else None)
    try:
        yield
    finally:
        _call_id.reset(token)


def as_langchain(tools: Sequence[Tool]) -> list[Any]:
    """Return suite tools as LangChain tools."""
    return [
        SuiteTool(
            name=tool.name,
            description=tool.description,
            args_schema=copy.deepcopy(dict(tool.parameters)),
            handle_tool_error=True,
            suite_tool=tool,
        )
        for tool in tools
    ]


def actor_of(metadata: Mapping[str, Any] | None) -> str | None:
    """Return the sub-agent that a run belongs to, None for the root graph itself.

    A named agent (``create_agent(name=...)``) by its name, any other sub-graph by the node that it runs in.
    """
    metadata = metadata or {}
    named = metadata.get("lc_agent_name")
    if named and named != metadata.get(ROOT):
        return str(named)
    nodes = [part.partition(":")[0] for part in str(metadata.get("langgraph_checkpoint_ns") or "").split("|")]
    return "/".join(nodes[:-1]) or None
