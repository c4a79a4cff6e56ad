"""Which agent frameworks are known: found by entry points, so that the core imports none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tbadapters.core.plugins import load_plugin, plugin_names

if TYPE_CHECKING:
    from tbadapters.core.agent import AgentAdapter
    from tbadapters.core.tools import Tool

GROUP = "tbadapters.frameworks"


@dataclass(frozen=True, slots=True)
class Framework:
    """What tbadapters knows of one agent framework. Making one must not import the framework.

    Attributes:
        name: As in ``suite.tools(name)``: ``langgraph``, ``openai-agents``, ``pydantic-ai``.
        extra: The extra that installs it.
        accepts: What may be passed as an agent, in words for an error message.
        matches: Whether an object is an agent of this framework (looks at the type's module; imports nothing).
        adapt: Returns the adapter of such an object.
        tools: Returns tools as the framework's own tool objects, each bound to whatever ``Tool.call`` finds.
    """

    name: str
    extra: str
    accepts: str
    matches: Callable[[object], bool]
    adapt: Callable[[Any], AgentAdapter]
    tools: Callable[[Sequence[Tool]], list[Any]]


def frameworks() -> list[Framework]:
    """Return the known frameworks."""
    return [framework(name) for name in plugin_names(GROUP)]


def framework(name: str) -> Framework:
    """Return one framework by name.

    Raises:
        UnknownName: no such framework.
    """
    found: Framework = load_plugin(GROUP, name, kind="framework")
    return found
