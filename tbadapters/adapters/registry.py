"""How an object, or a text that names one, becomes an agent adapter."""

from __future__ import annotations

import importlib
import inspect
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from tbadapters.adapters.agent_files import import_file
from tbadapters.adapters.function import FunctionAgent, name_of, positional_parameters
from tbadapters.core.agent import AgentAdapter
from tbadapters.core.errors import MissingFramework, TbAdaptersError, UnimportableAgent, UnknownAgentType, describe
from tbadapters.core.frameworks import frameworks

_EXTRA_OF = {  # a framework's import name -> its name and extra, for an agent's file that can't import it
    "langgraph": ("langgraph", "langgraph"),
    "langchain": ("langchain", "langgraph"),
    "langchain_core": ("langchain-core", "langgraph"),
    "langchain_openai": ("langchain-openai", "langgraph"),
    "agents": ("openai-agents", "openai-agents"),
    "pydantic_ai": ("pydantic-ai", "pydantic-ai"),
}


def resolve_agent(agent: object) -> AgentAdapter:
    """Return the adapter of whatever may be passed as an agent.

    Args:
        agent: A framework's agent object, an adapter, ``factory(make)``, a callable ``(message, ctx) -> str``, or
            ``"module:attr"`` / ``"file.py:attr"`` naming one of these.

    Raises:
        UnknownAgentType: no adapter accepts it; the sentence says what is accepted.
        UnimportableAgent: a text that can't be imported.
        MissingFramework: the framework that it needs is not installed.
    """
    if isinstance(agent, str):
        return resolve_agent(load_agent(agent))
    _refuse_near_misses(agent)
    if isinstance(agent, AgentAdapter):
        return agent
    for known in frameworks():
        if known.matches(agent):
            return known.adapt(agent)
    if callable(agent):
        _refuse_builder(agent)
        return FunctionAgent(agent)
    raise UnknownAgentType(f"{_described(agent)} can't be run as an agent. {_accepted()}")


def load_agent(spec: str) -> Any:
    """Import what a text names: ``"package.module:attr"`` or ``"path/to/file.py:attr"``.

    The current folder (for a file: its own) is searched first, as ``python`` itself does.

    Raises:
        UnimportableAgent: it can't be imported; the sentence says why.
        MissingFramework: it imports a framework that is not installed.
    """
    source, _, attribute = spec.rpartition(":")
    if not source or not attribute:
        raise UnimportableAgent(spec, "write it as 'module:attr' or 'path/to/file.py:attr'.")
    try:
        module = _file_module(spec, source) if source.endswith(".py") else _named_module(spec, source)
    except TbAdaptersError:
        raise
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in _EXTRA_OF:
            raise MissingFramework(*_EXTRA_OF[missing]) from error
        raise UnimportableAgent(spec, f"it imports {error.name!r}, which is not installed.") from error
    except Exception as error:
        raise UnimportableAgent(spec, describe(error)) from error
    return _attribute(spec, module, attribute)


def _file_module(spec: str, source: str) -> ModuleType:
    path = Path(source).resolve()
    if not path.is_file():
        raise UnimportableAgent(spec, f"there is no file {source!r}.")
    return import_file(path)


def _named_module(spec: str, source: str) -> ModuleType:
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if (source == missing or source.startswith(f"{missing}.")) and missing not in _EXTRA_OF:
            raise UnimportableAgent(spec, f"there is no module {missing!r}.") from error
        raise


def _attribute(spec: str, module: ModuleType, attribute: str) -> Any:
    value: Any = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            names = [name for name in vars(value) if not name.startswith("_")] if hasattr(value, "__dict__") else []
            near = get_close_matches(part, names, n=3, cutoff=0.5)
            mend = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise UnimportableAgent(spec, f"{spec.rpartition(':')[0]!r} has no {part!r}.{mend}")
        value = getattr(value, part)
    return value


def _refuse_near_misses(agent: object) -> None:
    """Refuse what is nearly an agent, each with the line that works."""
    name = name_of(agent)
    if inspect.iscoroutine(agent):
        agent.close()
        raise UnknownAgentType(f"{name}(...) was called without `await`: pass the function {name} itself, or await it.")
    if isinstance(agent, type):
        raise UnknownAgentType(f"{name} is a class: pass an object of it, such as {name}(...).")
    if inspect.ismodule(agent):
        raise UnknownAgentType(f"{name} is a module: pass the agent in it, such as {name}.agent.")
    if isinstance(agent, dict):
        raise UnknownAgentType("A dict of agents is compared by compare({...}); evaluate() takes one agent.")


def _refuse_builder(function: Any) -> None:
    if (positional_parameters(function) or [""])[0] == "tools":
        name = name_of(function)
        raise UnknownAgentType(
            f'{name}(tools) builds an agent, it is none: pass factory({name}, tools="langgraph") '
            f"(or the framework whose tools it takes; factory({name}) for tbadapters' own)."
        )


def _described(agent: object) -> str:
    kind = type(agent)
    return f"An object of type {kind.__module__}.{kind.__qualname__}" if agent is not None else "None"


def _accepted() -> str:
    return (
        f"Accepted: {'; '.join(known.accepts for known in frameworks())}; factory(make); "
        "a callable (message, ctx) -> str; 'module:attr' or 'file.py:attr'."
    )
