"""What may be passed as an agent that runs in another process: something that the other process can import."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tbadapters.adapters.factory import AgentFactory, factory
from tbadapters.adapters.function import name_of
from tbadapters.adapters.registry import load_agent, resolve_agent
from tbadapters.core.agent import AgentAdapter
from tbadapters.core.errors import UnknownAgentType, UsageError

_importing: list[str] = []  # the agent that this process, an agent's own, is made for
_unguarded: list[str] = []  # what is wrong with its module, which runs an evaluation when it is imported


@dataclass(frozen=True, slots=True)
class Importable:
    """An agent by name.

    Attributes:
        spec: ``module:attr`` or ``file.py:attr``.
        factory: Whether the name is that of a bare ``make(tools)`` that was passed as ``factory(make)``.
        tools: The framework whose tool objects ``make`` is given.
    """

    spec: str
    factory: bool = False
    tools: str | None = None

    def to_json(self) -> str:
        """Return it as text that ``from_json`` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Importable:
        """Return what ``to_json`` wrote."""
        return cls(**json.loads(text))

    def resolve(self) -> AgentAdapter:
        """Import the agent and return its adapter.

        Raises:
            UsageError: it can't be imported or run.
        """
        if _unguarded:
            raise UsageError(_unguarded[0])
        found = load_agent(self.spec)
        return resolve_agent(factory(found, tools=self.tools) if self.factory else found)


def importable(agent: object) -> Importable:
    """Return the name by which another process can import an agent.

    Raises:
        UnknownAgentType: there is none; the sentence shows what works.
        UsageError: this is an agent's process already: its module runs an evaluation when it is imported.
    """
    if _importing:
        _unguarded.append(
            f"Importing the agent {_importing[0]!r} starts an evaluation: "
            "put that under `if __name__ == '__main__':` in its file."
        )
        raise UsageError(_unguarded[0])
    if isinstance(agent, str):
        return Importable(agent)
    if isinstance(agent, AgentFactory):
        spec = _name_of(agent.make)
        found = _found(spec) if spec else None
        if spec and found is agent:
            return Importable(spec)
        if spec and found is agent.make:
            native = None if agent.framework == "function" else agent.framework
            return Importable(spec, factory=True, tools=native)
    elif (spec := _name_of(agent)) and _found(spec) is agent:
        return Importable(spec)
    raise UnknownAgentType(
        f'isolation="process" runs the agent in another process, which must import it: {name_of(agent)} can\'t be '
        'handed over. Pass it by name, "module:attr" or "file.py:attr", or as a function or factory(make) that is '
        "defined at the top of a module."
    )


def command(module: str, descriptor: int, agent: Importable) -> list[str]:
    """Return the command that runs ``main()`` of a module of this package, with this process's import path.

    Its arguments are a socket's descriptor and the agent.
    """
    start = f"import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from {module} import main; main()"
    return [sys.executable, "-c", start, str(descriptor), agent.to_json(), json.dumps(sys.path)]


def entered(spec: str) -> None:
    """Say that this process is an agent's own."""
    _importing.append(spec)


def _name_of(function: Any) -> str | None:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return None
    if module == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        return f"{Path(file).resolve()}:{name}" if file and str(file).endswith(".py") else None
    return f"{module}:{name}"


def _found(spec: str) -> Any:
    """Return what a name means in this process, where its module is loaded already; None else."""
    source, _, name = spec.rpartition(":")
    value: Any = sys.modules.get("__main__" if source.endswith(".py") else source)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value
