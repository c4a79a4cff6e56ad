"""The benchmark's backend: sessions with a checkout's tool servers, their search, and the tasks' graders.

Servers and search are started when a run begins and end with it; two runs never share them.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from anyio import to_thread

from tbadapters.core.errors import UsageError
from tbadapters.core.event_loop import run_apart
from tbadapters.core.state import State
from tbadapters.core.suite import Task
from tbadapters.core.tools import Tool
from tbadapters.sandboxes.mcp import McpBackend, McpSandbox, McpServer
from tbadapters.sandboxes.mcp_records import tables_of
from tbadapters.sandboxes.preparations import CLOCK, SEARCH
from tbadapters.sandboxes.search_choice import SearchChoice
from tbadapters.suites.thinkingbox.building import Built
from tbadapters.suites.thinkingbox.environment import cache_folder, digest_of, keep_listing, kept_listing, python_of
from tbadapters.suites.thinkingbox.files import VARIABLE, AgentFile, DataFolder, ServerEntry
from tbadapters.suites.thinkingbox.grader import ThinkingBoxGrader, ThinkingBoxGraders
from tbadapters.suites.thinkingbox.grading_function import GradingFunction
from tbadapters.suites.thinkingbox.states import SERVER_PROBES, STATES
from tbadapters.suites.thinkingbox.tools import chosen_tools

GOLDEN_CACHE = Path(__file__).with_name("golden_cache.py")
RESULT = STATES[1]
LISTING = 1  # what a kept listing of tools holds; another number, and it is asked for again
_SEARCHING = "TYPESENSE"  # how the variables of a server begin that searches


@dataclass(frozen=True)
class Servers:
    """A checkout's tool servers, and the conditions under which they run.

    Attributes:
        data: The checkout.
        python: The interpreter that was given; None for that of the environment made for the checkout.
        clock: Options of the preparation that freezes their clock.
    """

    data: DataFolder
    python: str | None = None
    clock: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def digest(self) -> str:
        """A digest of their code."""
        return digest_of(self.data.packages)

    def searches(self, name: str) -> bool:
        """Say whether a server searches: it is given what a search client needs."""
        return any(variable.startswith(_SEARCHING) for variable in self._entry(name).env)

    def server(self, name: str, options: Mapping[str, Any]) -> McpServer:
        """Return how a server is reached; ``options`` are for the preparation of the search.

        Raises:
            UsageError: the checkout names no such server, or there is no environment that could run it.
        """
        entry = self._entry(name)
        if entry.type == "mcp-remote":
            return McpServer(url=entry.endpoint)
        python = python_of(self.data, self.python)
        command = [part.format(python=python, env=os.environ) for part in entry.command]
        # Python's own cache goes elsewhere, too: the checkout stays as it is.
        env = {VARIABLE: str(self.data.root), "PYTHONPYCACHEPREFIX": str(cache_folder() / "pycache"), **entry.env}
        if command[:2] != [python, "-m"] or len(command) != 3:
            return McpServer(command=tuple(command), env=env)
        return McpServer(
            module=command[2],
            python=python,
            path=tuple(str(package) for package in self.data.packages),
            env=env,
            prepare=(CLOCK, SEARCH, SERVER_PROBES, GOLDEN_CACHE),
            options={**self.clock, **options},
        )

    def _entry(self, name: str) -> ServerEntry:
        try:
            return self.data.servers[name]
        except KeyError:
            raise UsageError(f"servers/servers.yaml of {self.data.root} names no server {name!r}.") from None

    def listed(self, name: str) -> tuple[Tool, ...]:
        """Return a server's tools: as kept from the last time, or as it lists them now, started for that.

        It is called without a loop or from inside of one, so the server is asked on a loop of its own.
        """
        server = self.server(name, {})
        content = json.dumps([LISTING, asdict(server) | {"options": {}}, self.digest], sort_keys=True, default=str)
        key = hashlib.sha256(content.encode()).hexdigest()[:24]
        kept = kept_listing(key)
        if kept is not None:
            return tuple(Tool(**tool) for tool in kept)
        tools = _asked(name, server)
        keep_listing(
            key,
            [
                {"name": t.name, "description": t.description, "parameters": t.parameters, "writes": t.writes}
                for t in tools
            ],
        )
        return tools


def _asked(name: str, server: McpServer) -> tuple[Tool, ...]:
    return run_apart(lambda: McpBackend({name: server}, grader_of=_ungraded).list_tools(name))


def _ungraded(task: Task) -> Any:
    raise AssertionError(f"{task.id} is not graded where tools are listed")


def records_of(effects: Mapping[str, Any]) -> State:
    """Return the rows in what servers report: those of the result, where they tell it apart from what should be."""
    told = {server: e.get(RESULT) if isinstance(e, Mapping) and RESULT in e else e for server, e in effects.items()}
    return replace(tables_of(told), raw=effects)


class ThinkingBoxBackend:
    """Opens sessions with the servers of a task's world, and grades by the task's own test function.

    Args:
        servers: The servers.
        built: The tasks, with their test functions.
        agent: The agent file.
        search: What servers that search are given.
    """

    def __init__(
        self, servers: Servers, built: Sequence[Built], *, agent: AgentFile, search: SearchChoice | None
    ) -> None:
        self._servers = servers
        self._built = {one.task.id: one for one in built}
        self._agent = agent
        self._search = search
        self._sessions: ContextVar[McpBackend | None] = ContextVar("sessions", default=None)
        self._graders = ThinkingBoxGraders(self._function_of)
        self._runs = 0
        self._lock = threading.Lock()

    def _function_of(self, task: Task) -> GradingFunction:
        function = self._built[task.id].function
        return GradingFunction(function.file, function.name)

    def tools_of(self, task: Task, offered: Mapping[str, Sequence[Tool]]) -> Sequence[Tool]:
        """Return the tools of a task, of those that its servers offer."""
        scenario = self._servers.data.scenario(self._built[task.id].function.config.scenario)
        return chosen_tools(scenario, self._agent, offered)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep servers, search and the tests' process until the block is left."""
        names = sorted({name for one in self._built.values() for name in one.task.world})
        async with AsyncExitStack() as stack:
            searching = self._search is not None and any(self._servers.searches(name) for name in names)
            options = await stack.enter_async_context(self._search.running()) if self._search and searching else {}
            servers = await to_thread.run_sync(lambda: {name: self._servers.server(name, options) for name in names})
            backend = McpBackend(servers, grader_of=self.grader, tools_of=self.tools_of, state_of=records_of)
            await stack.enter_async_context(self._graded())
            await stack.enter_async_context(backend.running())
            token = self._sessions.set(backend)
            try:
                yield
            finally:
                self._sessions.reset(token)

    @asynccontextmanager
    async def _graded(self) -> AsyncIterator[None]:
        """End the tests' process when the last run is over that has its tasks graded."""
        with self._lock:
            self._runs += 1
        try:
            yield
        finally:
            with self._lock:
                self._runs -= 1
                last = not self._runs
            if last:
                async with self._graders.running():
                    pass

    @asynccontextmanager
    async def open(self, task: Task, *, once: bool = False) -> AsyncIterator[McpSandbox]:
        """Open a session; outside of a run, with servers of its own. See ``McpBackend.open``."""
        sessions = self._sessions.get()
        if sessions is not None:
            async with sessions.open(task, once=once) as sandbox:
                yield sandbox
            return
        async with self.running(), self.open(task, once=once) as sandbox:
            yield sandbox

    def grader(self, task: Task) -> ThinkingBoxGrader:
        """Return the grader of a task."""
        return self._graders(task, self)
