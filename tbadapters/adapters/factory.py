"""An agent built afresh for every attempt, so that nothing can leak from trial to trial."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, overload

from tbadapters.adapters._shared import agent_fault
from tbadapters.adapters.function import name_of, positional_parameters
from tbadapters.core.agent import AgentAdapter, AgentSession, Recorder, TaskBrief
from tbadapters.core.errors import TbAdaptersError, UnknownAgentType, UsageError, describe
from tbadapters.core.frameworks import framework
from tbadapters.core.limits import Limits
from tbadapters.core.tools import Tool

Make = Callable[..., Any]


@overload
def factory(make: Make, *, tools: str | None = None) -> AgentFactory: ...
@overload
def factory(*, tools: str | None = None) -> Callable[[Make], AgentFactory]: ...
def factory(make: Make | None = None, *, tools: str | None = None) -> AgentFactory | Callable[[Make], AgentFactory]:
    """Mark a callable as one that makes the agent of one attempt.

        evaluate(factory(make_graph, tools="langgraph"), suite="neobank")

        @factory(tools="langgraph")
        def make_graph(tools):
            return create_agent(model, tools)

    Args:
        make: ``make(tools)`` or ``make(tools, brief)``, sync or async; ``brief`` is the attempt's ``TaskBrief``. It
            returns whatever may be passed as an agent. It is called for every attempt, and, when it is sync, once
            before the first so that a mistake in it costs no trial.
        tools: The framework whose own tool objects ``make`` is given (``langgraph``, ``openai-agents``,
            ``pydantic-ai``); None for tbadapters' ``Tool`` objects.

    Raises:
        UnknownName: no such framework.
        UnknownAgentType: ``make`` can't be called with the tools.
    """
    if make is None:
        return lambda marked: AgentFactory(marked, tools=tools)
    return AgentFactory(make, tools=tools)


class AgentFactory:
    """What ``factory`` returns: an adapter whose agent is made anew for each attempt."""

    def __init__(self, make: Make, *, tools: str | None = None) -> None:
        if isinstance(make, AgentFactory) or not callable(make):
            raise UnknownAgentType(f"factory() takes a callable make(tools) that builds an agent, not {name_of(make)}.")
        self.make = make
        self.name = name_of(make)
        self.framework = tools or "function"
        self._native = framework(tools).tools if tools else list[Any]
        self._takes_brief = _takes_brief(make, self.name)

    def check(self, tools: Sequence[Tool]) -> None:
        """See ``AgentAdapter.check``: a sync ``make`` is called once, and what it made is checked."""
        if inspect.iscoroutinefunction(self.make):
            return
        try:
            made = self._call(TaskBrief("check"), tools)
        except TbAdaptersError:
            raise
        except Exception as error:
            raise UsageError(f"The factory {self.name} failed: {describe(error)}{self._hint()}") from error
        if not inspect.isawaitable(made):
            _resolve(made).check(tools)
        elif inspect.iscoroutine(made):
            made.close()

    @asynccontextmanager
    async def open(
        self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder, limits: Limits
    ) -> AsyncIterator[AgentSession]:
        """See ``AgentAdapter.open``."""
        try:
            made = self._call(brief, tools)
            made = await made if inspect.isawaitable(made) else made
        except Exception as error:
            raise agent_fault(error) from error
        adapter = _resolve(made)
        adapter.check(tools)
        async with adapter.open(brief, tools, recorder, limits) as session:
            yield session

    def _call(self, brief: TaskBrief, tools: Sequence[Tool]) -> Any:
        native = self._native(tools)
        return self.make(native, brief) if self._takes_brief else self.make(native)

    def _hint(self) -> str:
        if self.framework != "function":
            return ""
        return f' (it was given tbadapters\' own Tool objects; say factory({self.name}, tools="langgraph") or the like)'


def _takes_brief(make: Make, name: str) -> bool:
    parameters = positional_parameters(make)
    if parameters is None:
        return False
    signature = inspect.signature(make)
    for arguments in (("tools",), ("tools", "brief")):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return len(arguments) == 2 or "brief" in parameters[1:2]  # noqa: PLR2004  # the second form
    raise UnknownAgentType(f"{name}({', '.join(parameters)}) can't be called as make(tools) or make(tools, brief).")


def _resolve(made: object) -> AgentAdapter:
    from tbadapters.adapters.registry import resolve_agent  # the registry knows factories, so not at the top

    return resolve_agent(made)
