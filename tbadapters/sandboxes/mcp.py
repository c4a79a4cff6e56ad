"""The backend of suites whose tools are MCP servers: one isolated session for every attempt.

A Python server (``McpServer(module=...)``) is imported once and forked: each task's init runs in a fork that is kept,
and each attempt is a fork of that, open in milliseconds. Any other server, and one that can't be forked, is spawned over
stdio for each attempt; one with a URL gets a session of its own. Servers are set up, asked for their records and torn
down by reserved tools (``Lifecycle``), which an agent neither sees nor can call under any name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import anyio

from tbadapters.core.errors import InvalidOption, SandboxFault, SuiteError, UnknownName, boundary
from tbadapters.core.grading import Grader
from tbadapters.core.logs import get_logger
from tbadapters.core.state import State, TableRules, changes
from tbadapters.core.state_grader import StateGrader
from tbadapters.core.suite import Task
from tbadapters.core.tools import Tool, ToolResult
from tbadapters.sandboxes.mcp_connection import Connection, data_of, held, remote, spawned
from tbadapters.sandboxes.mcp_forks import HELPER, ForkedConnection, ForkedServer, specification
from tbadapters.sandboxes.mcp_records import tables_of, tables_to_grade
from tbadapters.sandboxes.mcp_server import Lifecycle, McpServer

__all__ = ["Lifecycle", "McpBackend", "McpSandbox", "McpServer"]

log = get_logger(__name__)

Listing = Mapping[str, Sequence[Tool]]
ToolsOf = Callable[[Task, Listing], Sequence[Tool]]
StateOf = Callable[[Mapping[str, Any]], State]
RESERVED = Lifecycle()


@dataclass(frozen=True, slots=True)
class Found:
    """What a task's init answered, and the records that it left.

    Attributes:
        init: The answer, as data; None without such a tool.
        effects: The records as the server reports them, as data; None where nobody has asked yet.
    """

    init: Any = None
    effects: Any = None


@dataclass(slots=True)
class _Opened:
    """One server of an attempt."""

    connection: Connection
    found: Found


class McpSandbox:
    """One attempt's sessions, open.

    Attributes:
        init_results: What each server's init answered, as data.
    """

    def __init__(
        self, backend: McpBackend, servers: Mapping[str, _Opened], tools: Sequence[Tool], at: Mapping[str, str]
    ) -> None:
        self._backend = backend
        self._servers = servers
        self._tools = {tool.name: tool for tool in tools}
        self._at = at
        self._touched = False
        self._seen: State | None = None
        self.init_results = {name: server.found.init for name, server in servers.items()}

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the agent may call, unbound."""
        return list(self._tools.values())

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool; see ``core.sandbox.Sandbox``. What it changed is told by a backend that watches.

        Raises:
            SandboxFault: the server is gone, or did not answer in time.
        """
        if name not in self._tools or name not in self._at or self._backend.lifecycle.is_reserved(name):
            return ToolResult(f"There is no tool {name!r}.", is_error=True, changes=())
        before = await self.state() if self._backend.watch and self._seen is None else self._seen
        self._touched = True
        answer = await self._backend.within(self._servers[self._at[name]].connection, "call_seconds", name, arguments)
        self._seen = await self.state() if before is not None else None
        changed = changes(before, self._seen) if before is not None and self._seen is not None else None
        return ToolResult(answer.text, data_of(answer), answer.is_error, changed)

    async def effects(self) -> Mapping[str, Any]:
        """Return what each server reports of its records now, as data; empty where none can.

        Raises:
            SandboxFault: a server is gone, did not answer in time, or reports that it failed.
        """
        return {name: await self._effects_of(name, server) for name, server in self._servers.items()}

    async def _effects_of(self, name: str, server: _Opened) -> Any:
        if not self._touched and server.found.effects is not None:
            return server.found.effects
        return await self._backend.effects_of(name, server.connection)

    async def state(self) -> State:
        """Return all records as they are now; ``State.raw`` is what ``effects`` returns."""
        return self._backend.state_of(await self.effects())

    async def probe(self, server: str, name: str, argument: Any = None) -> Any:
        """Run a probe of a preparation file in a server's process of this attempt; see ``McpServer.prepare``.

        Raises:
            SandboxFault: the server was not forked, or the probe failed.
        """
        return await self._servers[server].connection.probe(name, argument)


@dataclass
class _Run:
    """The servers' processes, while somebody uses them."""

    users: int = 0
    starting: defaultdict[str, anyio.Lock] = field(default_factory=lambda: defaultdict(anyio.Lock))
    forked: dict[str, ForkedServer[Found] | None] = field(default_factory=dict)
    listed: dict[str, tuple[Tool, ...]] = field(default_factory=dict)


class McpBackend:
    """Opens sandboxes that are sessions with MCP servers.

    Args:
        servers: The servers by the names that tasks' worlds use.
        grader_of: Returns the grader of a task; None for the grader of state, by the tasks' end states and ``rules``.
        rules: How the grader of state compares each table.
        watch: Whether each call is followed by a look at the records, so that its result tells what it changed; None to
            watch for the grader of state.
        lifecycle: The reserved tools and the deadlines.
        tools_of: Which of the servers' tools, and as what, a task's agent gets; None for all of them.
        state_of: Reads the rows in what the servers report; ``State.raw`` should be what it is given. None for each list
            of objects that have an ``id``.

    Raises:
        InvalidOption: nothing is known to grade by.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        *,
        grader_of: Callable[[Task], Grader] | None = None,
        rules: Mapping[str, TableRules] = MappingProxyType({}),
        watch: bool | None = None,
        lifecycle: Lifecycle = RESERVED,
        tools_of: ToolsOf | None = None,
        state_of: StateOf | None = None,
    ) -> None:
        if grader_of is None and lifecycle.effects is None:
            raise InvalidOption(
                "McpBackend(lifecycle=): without a tool that tells the records there is nothing to grade by; name one by "
                "Lifecycle(effects=), or give grader_of=."
            )
        self.servers = servers
        self.lifecycle = lifecycle
        self.state_of = state_of or (tables_of if grader_of else tables_to_grade)
        self.rules = rules
        self.watch = watch if watch is not None else grader_of is None
        self._grader_of = grader_of
        self._tools_of = tools_of
        self._run: _Run | None = None

    def grader(self, task: Task) -> Grader:
        """Return the grader of a task."""
        return self._grader_of(task) if self._grader_of else StateGrader(task, self.open, self.rules)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep the servers' processes until this is left; each is started when it is first needed."""
        self._run = self._run or _Run()
        run = self._run
        run.users += 1
        try:
            yield
        finally:
            run.users -= 1
            if not run.users:
                self._run = None
                with anyio.CancelScope(shield=True):
                    for forked in run.forked.values():
                        if forked is not None:
                            await forked.aclose()

    async def _tear_down(self, name: str, connection: Connection) -> None:
        """Let a server tear down what its init set up; what fails there can't undo a verdict."""
        if self.lifecycle.teardown is not None:
            try:
                await self.within(connection, "call_seconds", self.lifecycle.teardown, {})
            except SandboxFault as fault:
                log.warning("mcp_server_not_torn_down", server=name, error=str(fault))

    @asynccontextmanager
    async def open(self, task: Task, *, once: bool = False) -> AsyncIterator[McpSandbox]:
        """Open a session with each server of a task's world: a mapping of servers' names to what their init is given.

        Args:
            task: The task.
            once: Whether the task is not opened again, so that a process which ran its init need not be kept.
        """
        async with self.running(), AsyncExitStack() as stack:
            opened = {
                name: await stack.enter_async_context(self._opened(name, task.world[name], once=once))
                for name in task.world
            }
            listing = {name: await self._listed(name, opened[name].connection) for name in opened}
            at = {tool.name: name for name, tools in listing.items() for tool in tools}
            tools = self._tools_of(task, listing) if self._tools_of else _all(listing)
            yield McpSandbox(self, opened, tools, at)

    @asynccontextmanager
    async def _opened(self, name: str, config: Any, *, once: bool) -> AsyncIterator[_Opened]:
        if name not in self.servers:
            raise UnknownName("MCP server", name, self.servers)
        forked = await self._forked(name)
        if forked is not None and forked.mode == "direct" and not once:
            async with self._fork(name, forked, config) as opened:
                yield opened
        else:
            async with self._session(name, forked) as connection:
                init = await self._initialised(name, connection, config)
                try:
                    yield _Opened(connection, Found(init))
                finally:
                    await self._tear_down(name, connection)

    @asynccontextmanager
    async def _fork(self, name: str, forked: ForkedServer[Found], config: Any) -> AsyncIterator[_Opened]:
        """Open a fork of the process that ran the task's init."""

        async def init(connection: ForkedConnection) -> Found:
            init = await self._initialised(name, connection, config)
            return Found(init, await self.effects_of(name, connection))

        key = hashlib.sha256(json.dumps(config, sort_keys=True, default=repr).encode()).hexdigest()
        connection, task = await forked.attempt(key, init)
        try:
            yield _Opened(connection, task.found)
        finally:
            connection.close()

    @asynccontextmanager
    async def _session(self, name: str, forked: ForkedServer[Found] | None) -> AsyncIterator[Connection]:
        """Open a session with a server that is not called directly."""
        server = self.servers[name]
        if server.url is not None:
            async with held(remote(server.url, seconds=self.lifecycle.start_seconds)) as session:
                yield session
        elif forked is not None:
            connection = await forked.connect()
            try:
                async with connection.served() as served:
                    yield served
            finally:
                connection.kill()
                connection.close()
        else:
            command, seconds = server.command or _command(server), self.lifecycle.start_seconds
            async with held(spawned(command, server.env, seconds=seconds)) as session:
                yield session

    async def _forked(self, name: str) -> ForkedServer[Found] | None:
        """Return the process that imported a server, started when first needed; None where it is not forked."""
        run = self._run
        assert run is not None, "open() is inside running()"  # noqa: S101  (narrows the type)
        if self.servers[name].module is None:
            return None
        async with run.starting[name]:
            if name not in run.forked:
                seconds = self.lifecycle.start_seconds

                async def retire(connection: ForkedConnection) -> None:
                    await self._tear_down(name, connection)

                run.forked[name] = await ForkedServer.start(name, self.servers[name], seconds=seconds, retire=retire)
            return run.forked[name]

    async def _initialised(self, name: str, connection: Connection, config: Any) -> Any:
        """Run a server's init and return its answer, as data; None where it has no tool for that.

        Raises:
            SuiteError: the server has not the tools that its lifecycle names.
        """
        await self._listed(name, connection)
        if self.lifecycle.init is None:
            return None
        try:
            answer = await self.within(connection, "init_seconds", self.lifecycle.init, {"config": config})
        except SandboxFault as fault:
            raise SandboxFault(f"The init of the server {name!r} failed: {fault}", code=fault.code) from fault
        init = data_of(answer)
        _raise_if_failed(f"The init of the server {name!r}", init, is_error=answer.is_error)
        return init

    async def effects_of(self, name: str, connection: Connection) -> Any:
        """Return what a server reports of its records, as data; None where it has no tool for that."""
        if self.lifecycle.effects is None:
            return None
        answer = await self.within(connection, "effects_seconds", self.lifecycle.effects, {})
        effects = data_of(answer)
        _raise_if_failed(f"The effects of the server {name!r}", effects, is_error=answer.is_error)
        return effects

    async def within(self, connection: Connection, limit: str, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool within a deadline of the lifecycle.

        Raises:
            SandboxFault: it was not met; the process is ended.
        """
        seconds = getattr(self.lifecycle, limit)
        try:
            async with asyncio.timeout(seconds):
                return await connection.call(tool, arguments)
        except TimeoutError:
            connection.kill()
            raise SandboxFault(f"The server did not answer {tool} in {seconds:g} s.", code="deadline") from None

    async def _listed(self, name: str, connection: Connection) -> tuple[Tool, ...]:
        run = self._run
        assert run is not None, "open() is inside running()"  # noqa: S101  (narrows the type)
        if name not in run.listed:
            with boundary(SandboxFault):
                listed = await connection.list_tools()
            self.lifecycle.check(name, [wire["name"] for wire in listed])
            run.listed[name] = tuple(_tool(wire) for wire in listed if not self.lifecycle.is_reserved(wire["name"]))
        return run.listed[name]

    async def list_tools(self, server: str) -> tuple[Tool, ...]:
        """Return a server's tools, without the reserved ones and without setting it up.

        Raises:
            UnknownName: there is no such server.
            SandboxFault: it can't be started.
        """
        if server not in self.servers:
            raise UnknownName("MCP server", server, self.servers)
        async with self.running():
            forked = await self._forked(server)
            async with self._session(server, forked) as connection:
                return await self._listed(server, connection)


def _command(server: McpServer) -> tuple[str, ...]:
    """Return the command that starts a module which is not forked, prepared as a forked one is."""
    return (server.python, str(HELPER), json.dumps(specification(server) | {"spawn": True}))


def _tool(wire: Mapping[str, Any]) -> Tool:
    reads = (wire.get("annotations") or {}).get("readOnlyHint")
    writes = None if reads is None else not reads
    return Tool(wire["name"], wire.get("description") or "", wire["inputSchema"], writes=writes, checks_arguments=True)


def _all(listing: Listing) -> list[Tool]:
    """Return the tools of all servers.

    Raises:
        SuiteError: two servers have a tool of the same name.
    """
    named: dict[str, Tool] = {}
    for server, tools in listing.items():
        for tool in tools:
            if tool.name in named:
                raise SuiteError(
                    f"Two servers have a tool {tool.name!r} ({server} is one): say by tools_of which is meant."
                )
            named[tool.name] = tool
    return list(named.values())


def _raise_if_failed(what: str, data: Any, *, is_error: bool) -> None:
    """Raise the sandbox's fault where a reserved tool failed: an error, or ``{"status": "error", "message": ...}``."""
    told = data.get("message", data) if isinstance(data, Mapping) and data.get("status") == "error" else None
    if is_error or told is not None:
        raise SandboxFault(f"{what} failed: {told or data}", code="lifecycle")
