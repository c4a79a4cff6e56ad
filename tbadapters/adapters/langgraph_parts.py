"""What a compiled graph is made of: its tools, tool nodes, models and sub-graphs, as far as they can be found.

Imports LangChain and LangGraph at the top: ``langgraph.py`` imports this module only when a graph is at hand.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableParallel,
    RunnableSequence,
)
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

_OWN_PACKAGES = ("langgraph.", "langchain.", "langchain_core.", "langchain_openai.")
_DEPTH = 4  # functions that call functions that hold tools


@dataclass
class FoundTools:
    """The tools found in a graph.

    Attributes:
        tools: Every tool found, in tool nodes and in what node functions refer to.
        tool_nodes: How many ``ToolNode`` there are.
        models: The names of the chat models found beside them.
    """

    tools: list[BaseTool] = field(default_factory=list)
    tool_nodes: int = 0
    models: list[str] = field(default_factory=list)


def tools_in(graph: Pregel[Any, Any, Any, Any]) -> FoundTools:
    """Return the tools that can be found in a graph, its sub-graphs, and its node functions' closures and globals."""
    found = FoundTools()
    seen: set[int] = set()
    waiting: list[tuple[Any, int]] = [(graph, 0)]
    while waiting:
        value, depth = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, BaseTool):
            found.tools.append(value)
        elif isinstance(value, BaseChatModel):
            found.models += filter(None, [getattr(value, "model_name", None) or getattr(value, "model", None)])
        elif isinstance(value, ToolNode):
            found.tool_nodes += 1
            found.tools += [tool for tool in value.tools_by_name.values() if id(tool) not in seen]
            seen |= {id(tool) for tool in value.tools_by_name.values()}
        else:
            waiting += [(inner, depth + isinstance(value, FunctionType)) for inner in _inside(value, depth)]
    return found


def graphs_in(graph: Pregel[Any, Any, Any, Any]) -> Iterator[Pregel[Any, Any, Any, Any]]:
    """Yield a graph and its sub-graphs, as LangGraph itself knows them."""
    yield graph
    for _, inner in graph.get_subgraphs(recurse=True):
        if isinstance(inner, Pregel):
            yield inner


def _inside(value: Any, depth: int) -> Iterable[Any]:
    """Yield what a part of a graph is made of and may hold tools."""
    if isinstance(value, FunctionType):
        return _held(_referred(value)) if depth < _DEPTH else ()
    for kinds, parts in _PARTS:
        if isinstance(value, kinds):
            return parts(value)
    return ()


_PARTS: tuple[tuple[Any, Callable[[Any], Iterable[Any]]], ...] = (
    (Pregel, lambda graph: [part for node in graph.nodes.values() for part in (node.bound, *node.subgraphs)]),
    (RunnableBinding, lambda binding: [binding.bound]),
    (RunnableSequence, lambda sequence: sequence.steps),
    (RunnableParallel, lambda parallel: parallel.steps__.values()),
    (Runnable, lambda node: [getattr(node, "func", None), getattr(node, "afunc", None)]),
    (functools.partial, lambda partial: [partial.func, *_held((*partial.args, *partial.keywords.values()))]),
    (MethodType, lambda method: [method.__func__, *_held(getattr(method.__self__, "__dict__", {}).values())]),
    ((list, tuple), lambda items: [item for item in items if isinstance(item, BaseTool)]),
    (dict, lambda items: [item for item in items.values() if isinstance(item, BaseTool)]),
)


def _referred(function: FunctionType) -> Iterable[Any]:
    try:
        names = inspect.getclosurevars(inspect.unwrap(function))
    except (TypeError, ValueError):  # an empty closure cell
        return ()
    return (*names.nonlocals.values(), *names.globals.values())


def _held(values: Iterable[Any]) -> list[Any]:
    """Keep what may lead to the author's tools; the frameworks' own functions are not searched."""
    kinds = (
        BaseTool,
        BaseChatModel,
        ToolNode,
        Pregel,
        RunnableBinding,
        RunnableSequence,
        functools.partial,
        list,
        tuple,
        dict,
    )
    return [
        value
        for value in values
        if isinstance(value, kinds)
        or (isinstance(value, FunctionType | MethodType) and not f"{value.__module__}.".startswith(_OWN_PACKAGES))
    ]
