"""LangGraph: a compiled graph as an agent.

    evaluate(create_agent(model, load_suite("neobank").tools("langgraph")), suite="neobank")

The suite's tools find their trial by context variable, so one compiled graph serves all trials at once. A graph whose
state has no ``messages`` is wrapped in ``LangGraphAgent``, which is told how a message goes in and an answer comes out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from tbadapters.adapters._shared import is_instance_of, must_take, require
from tbadapters.core.agent import AgentSession, Recorder, TaskBrief
from tbadapters.core.errors import ForeignTools, InvalidOption, UnknownAgentType
from tbadapters.core.frameworks import Framework
from tbadapters.core.limits import Limits
from tbadapters.core.tools import Tool

NAME = "langgraph"
ToolsWord = Literal["check", "suite", "replace"]


class LangGraphAgent:
    """Lets a compiled graph be driven as an agent.

    Args:
        graph: What ``StateGraph.compile()``, ``create_agent`` or ``@entrypoint`` returned.
        input: ``(message, brief) -> state update`` of one user turn; needed where the state has no ``messages``. The
            suite's policy is ``brief.instructions``: giving it to the model is then the function's business.
        output: ``(state) -> str``, the answer to the user; by default the text of the last ``AIMessage``.
        config: Merged into the config of every run (callbacks, tags, configurable, ``recursion_limit``).
        context: The runtime context, as in ``graph.ainvoke(..., context=...)``.
        tools: ``check``: every ``ToolNode`` must hold suite tools only. ``suite``: the author's word that a graph
            without a ``ToolNode`` calls nothing but suite tools.
        keep: Names of the author's own tools that may stay, such as one that only asks a sub-agent. They are run.
        tracing: Leave LangSmith tracing as the environment says; by default it is off in trials.
        name: A short name; by default the graph's.

    Raises:
        UnknownAgentType: not a compiled graph.
        InvalidOption: ``input`` or ``output`` can't be called so, or no such word for ``tools``.
        MissingFramework: LangGraph is not installed.
    """

    framework = NAME

    def __init__(
        self,
        graph: Any,
        *,
        input: Callable[[str, TaskBrief], Any] | None = None,  # noqa: A002  # LangGraph's own word
        output: Callable[[Any], str] | None = None,
        config: Mapping[str, Any] | None = None,
        context: Any = None,
        tools: ToolsWord = "check",
        keep: Collection[str] = (),
        tracing: bool = False,
        name: str | None = None,
    ) -> None:
        require("langgraph.pregel", framework=NAME, extra=NAME)
        _refuse_other_than_compiled(graph)
        if tools not in ("check", "suite", "replace"):
            raise InvalidOption(f"tools={tools!r}: must be 'check', 'suite' or 'replace'.")
        if input is not None:
            must_take(input, "LangGraphAgent(input=...)", "message", "brief")
        if output is not None:
            must_take(output, "LangGraphAgent(output=...)", "state")
        self.graph = graph
        self.input, self.output = input, output
        self.config, self.context = dict(config or {}), context
        self.tools, self.keep = tools, frozenset(keep)
        self.tracing = tracing
        own = str(graph.name or "")
        self.name = name or (own if own not in ("", "LangGraph") else "graph")

    @property
    def models(self) -> list[str]:
        """The names of the chat models that can be found in the graph."""
        from tbadapters.adapters.langgraph_parts import tools_in

        return tools_in(self.graph).models

    def check(self, tools: Sequence[Tool]) -> None:
        """See ``AgentAdapter.check``.

        Raises:
            ForeignTools: the graph holds tools of its author's, or none that can be seen.
            UnknownAgentType: its state has no ``messages``.
        """
        from tbadapters.adapters.langgraph_parts import tools_in
        from tbadapters.adapters.langgraph_tools import SuiteTool

        if self.tools == "replace":
            raise ForeignTools(
                "A compiled graph's tools can't be replaced, its model already knows them: "
                f'build it for each trial by factory(make_graph, tools="{NAME}").'
            )
        self._check_state()
        found, known = tools_in(self.graph), {tool.name for tool in tools}
        foreign = {t.name for t in found.tools if not isinstance(t, SuiteTool) or t.name not in known} - self.keep
        if foreign:
            raise ForeignTools(
                f"The graph {self.name!r} holds tools that are not the suite's: {', '.join(sorted(foreign))}. Build it "
                f'with the suite\'s: create_agent(model, load_suite(...).tools("{NAME}")). A tool that only asks a '
                f"sub-agent may stay: LangGraphAgent(graph, keep={sorted(foreign)!r})."
            )
        if not found.tool_nodes and self.tools == "check":
            raise ForeignTools(
                f"The graph {self.name!r} has no ToolNode to look at. If its tools are the suite's, called in nodes of "
                f'its own, say so: LangGraphAgent(graph, tools="suite"); else build it with '
                f'create_agent(model, load_suite(...).tools("{NAME}")).'
            )

    def _check_state(self) -> None:
        if "messages" in self.graph.channels or (self.input and self.output):
            return
        state = ", ".join(c for c in self.graph.channels if not c.startswith(("__", "branch:"))) or "no named fields"
        raise UnknownAgentType(
            f"The state of the graph {self.name!r} has no 'messages' ({state}): "
            "LangGraphAgent(graph, input=lambda message, brief: {'question': message}, "
            "output=lambda state: state['answer'])."
        )

    @asynccontextmanager
    async def open(
        self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder, limits: Limits
    ) -> AsyncIterator[AgentSession]:
        """See ``AgentAdapter.open``; the core counts the limits, and the tools are in the graph already."""
        from tbadapters.adapters.langgraph_session import GraphSession, SessionOptions

        del tools, limits
        options = SessionOptions(self.input, self.output, self.config, self.context, self.tracing)
        yield GraphSession(self.graph, options, brief, recorder)


def _refuse_other_than_compiled(graph: object) -> None:
    if is_instance_of(graph, "langgraph", "StateGraph"):
        raise UnknownAgentType("The StateGraph is not compiled: pass graph.compile().")
    if is_instance_of(graph, "langgraph", "RemoteGraph"):
        raise UnknownAgentType("A RemoteGraph runs its own tools on its server: pass the compiled graph itself.")
    if not is_instance_of(graph, "langgraph", "Pregel"):
        kind = type(graph)
        raise UnknownAgentType(
            f"An object of type {kind.__module__}.{kind.__qualname__} is no compiled graph: "
            "LangGraphAgent takes what StateGraph.compile() or create_agent(...) returned."
        )


def _matches(agent: object) -> bool:
    return is_instance_of(agent, "langgraph", "Pregel", "StateGraph", "RemoteGraph")


def _tools(tools: Sequence[Tool]) -> list[Any]:
    for module in ("langchain_core", "langgraph.pregel"):
        require(module, framework=NAME, extra=NAME)
    from tbadapters.adapters.langgraph_tools import as_langchain

    return as_langchain(tools)


FRAMEWORK = Framework(
    name=NAME,
    extra=NAME,
    accepts="a compiled LangGraph graph (or LangGraphAgent(graph, ...) around it)",
    matches=_matches,
    adapt=LangGraphAgent,
    tools=_tools,
)
