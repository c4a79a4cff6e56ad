"""How an MCP server is reached, and which of its tools are not the agent's."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tbadapters.core.errors import InvalidOption, SuiteError


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """How one MCP server is reached: exactly one of ``module``, ``command`` and ``url``.

    Attributes:
        module: A Python module that ``python -m`` would start: imported once and forked for every attempt.
        command: A program and its arguments, spawned over stdio for every attempt.
        url: A streamable HTTP endpoint; every attempt has a session of its own.
        python: The interpreter of the module's own environment.
        path: Folders put first on the module's import path.
        env: Added to the few variables that the server's process inherits.
        prepare: Files that are run in the module's process before it is imported (standard library only). Each may
            define ``before_import(options)``, ``after_import(module, options)``, ``after_fork(kind, module)`` with the
            kind ``task`` or ``attempt``, and ``PROBES``, a dict of functions ``(module, argument)`` whose JSON-like
            answers ``McpSandbox.probe`` returns.
        options: JSON-like, for these functions.
    """

    module: str | None = None
    command: tuple[str, ...] | None = None
    url: str | None = None
    python: str = sys.executable
    path: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    prepare: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [name for name in ("module", "command", "url") if getattr(self, name)]
        if len(given) != 1:
            raise InvalidOption(f"An MCP server needs one of module, command and url; given: {given or 'none'}.")
        if self.module is None and (self.prepare or self.path):
            raise InvalidOption("Only a server that is given as a module can be prepared or have an import path.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """The tools by which a server is set up, asked what was done, and torn down, and how long each may take.

    A server without one of them has None for its name: nothing is set up, no records are known.

    Attributes:
        init: Called first, with the task's part of the world as ``config``.
        effects: Answers with the server's records, as JSON.
        teardown: Called last.
        reserved: What marks a tool's name as reserved, wherever it stands in it.
        start_seconds: For the server's start, or the import of its module.
        init_seconds: For ``init``.
        call_seconds: For a call of a tool.
        effects_seconds: For ``effects``.
    """

    init: str | None = "__reserved__init"
    effects: str | None = "__reserved__geteffects"
    teardown: str | None = "__reserved__teardown"
    reserved: str = "__reserved__"
    start_seconds: float = 60.0
    init_seconds: float = 60.0
    call_seconds: float = 60.0
    effects_seconds: float = 60.0

    def check(self, server: str, offered: Collection[str]) -> None:
        """Refuse a server that does not offer the tools that are named here.

        Raises:
            SuiteError: one is missing.
        """
        for option, tool in (("init", self.init), ("effects", self.effects), ("teardown", self.teardown)):
            if tool is not None and tool not in offered:
                raise SuiteError(
                    f"The server {server!r} has no tool {tool!r}: say by Lifecycle({option}=) how the tool is called there, "
                    "or None where there is none."
                )

    def is_reserved(self, name: str) -> bool:
        """Say whether a name is, or might be taken for, that of a reserved tool: qualified, spaced or in other case."""
        folded = _folded(name)
        if self.reserved and _folded(self.reserved) in folded:
            return True
        own = [_folded(tool) for tool in (self.init, self.effects, self.teardown) if tool]
        return any(re.search(rf"(?:^|__|[^a-z0-9_]){re.escape(tool)}$", folded) for tool in own)


def _folded(name: str) -> str:
    return "".join(unicodedata.normalize("NFKC", name).split()).casefold()
