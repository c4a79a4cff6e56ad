"""A connection to an MCP server for one attempt, whatever it is made of; here: one that an MCP client's session holds."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TextIO, cast

import anyio
import mcp.types as wire
from anyio import to_thread
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage
from pydantic import TypeAdapter

from tbadapters.core.errors import SandboxFault, describe
from tbadapters.core.logs import get_logger

log = get_logger(__name__)

START_SECONDS = 60.0  # for a server's first answer, and for its list of tools
CONNECTION_CLOSED = -32000  # JSON-RPC: what the client's session answers when the server is gone
_SAID = 4096  # bytes at the end of what a server said in which its last line is looked for
_LINE = 300  # characters of that line, and of its command, that are told
_parsed = TypeAdapter[Any](wire.JSONRPCMessage).validate_json  # a model in mcp 1.x, a union in 2.x


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server's tool answered: its text, the same as data where it is data, and whether it is an error."""

    text: str
    value: Any = None
    is_error: bool = False


class Connection(Protocol):
    """One attempt's connection to a server."""

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the server's tools, as they are on the wire."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool.

        Raises:
            SandboxFault: the server is gone.
        """
        ...

    async def probe(self, name: str, argument: Any) -> Any:
        """Run a probe of a preparation file in the server's process.

        Raises:
            SandboxFault: it can't be run there.
        """
        ...

    def kill(self) -> None:
        """End the server's process for this attempt, whatever it is doing."""
        ...


LastWords = Callable[[], Awaitable[str]]


async def _nothing() -> str:
    return ""


class SessionConnection:
    """A connection that an MCP client's session holds.

    Args:
        session: The session.
        last_words: Returns what the server said last, as a sentence; nothing where nobody listens.
        seconds: Deadline of its list of tools.
    """

    def __init__(
        self, session: ClientSession, last_words: LastWords = _nothing, *, seconds: float = START_SECONDS
    ) -> None:
        self._session, self._last_words, self._seconds = session, last_words, seconds

    async def list_tools(self) -> Sequence[Mapping[str, Any]]:
        """See ``Connection``."""
        try:
            with anyio.fail_after(self._seconds):
                return await self._every_tool()
        except TimeoutError:
            raise SandboxFault(f"The server did not list its tools in {self._seconds:g} s.", code="deadline") from None

    async def _every_tool(self) -> list[Mapping[str, Any]]:
        tools: list[Mapping[str, Any]] = []
        page = await self._session.list_tools()
        while True:
            listed = page.model_dump(by_alias=True, mode="json")
            tools += listed["tools"]
            if not listed.get("nextCursor"):
                return tools
            page = await self._session.list_tools(**_cursor(listed["nextCursor"]))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """See ``Connection``."""
        try:
            result = await self._session.call_tool(name, dict(arguments))
        except Exception as error:  # the SDKs' versions raise different ones
            told = getattr(error, "error", None)
            if told is None or told.code == CONNECTION_CLOSED:
                why = f"The server is gone: {describe(error).rstrip('.')}. {await self._last_words()}"
                raise SandboxFault(why.strip(), code="server_died") from error
            return Answer(str(told.message), None, is_error=True)
        given = result.model_dump(by_alias=True, mode="json")
        text = "\n".join(part.get("text") or f"[{part['type']}]" for part in given.get("content", ()))
        return Answer(text, given.get("structuredContent"), bool(given.get("isError")))

    async def probe(self, name: str, argument: Any) -> Any:
        """See ``Connection``."""
        del argument
        raise SandboxFault(f"The probe {name!r} can't be run: only a forked server has them.", code="no_probe")

    def kill(self) -> None:
        """See ``Connection``: the client ends a spawned server when its session is closed."""


def _cursor(cursor: str) -> dict[str, Any]:
    return {"params": wire.PaginatedRequestParams(cursor=cursor)}


@asynccontextmanager
async def held(session: AbstractAsyncContextManager[SessionConnection]) -> AsyncIterator[SessionConnection]:
    """Hold a session open in a task of its own.

    The client's task groups must be left in the task that entered them, before anything that it entered later; whoever
    opens a sandbox and closes it inside a deadline can't promise that.
    """
    opened: asyncio.Future[SessionConnection] = asyncio.get_running_loop().create_future()
    done = asyncio.Event()

    async def hold() -> None:
        async with session as connection:
            opened.set_result(connection)
            await done.wait()

    holding = asyncio.create_task(hold())  # noqa: TID251  (awaited below; a task group would have to be left in order, too)
    either: set[asyncio.Future[Any]] = {holding, opened}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            raise _not_opened(holding)
        yield opened.result()
    finally:
        done.set()
        if not opened.done():
            holding.cancel()
        await asyncio.wait({holding})
        if not holding.cancelled() and holding.exception() is not None:
            log.debug("mcp_session_ended_badly", error=_reason(holding.exception()))


def _not_opened(holding: asyncio.Task[None]) -> SandboxFault:
    """Return why no session was opened: what was found where the server is known by name, else what was raised."""
    error = None if holding.cancelled() else holding.exception()
    if isinstance(error, SandboxFault):
        return error
    return SandboxFault(f"No session could be opened: {_reason(error)}", code="not_started")


def _reason(error: BaseException | None) -> str:
    """Return an error in words, without the groups that the client's task groups wrapped it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return error.strerror
    return describe(error) if error is not None else "it ended"


@asynccontextmanager
async def spawned(
    command: Sequence[str], env: Mapping[str, str], *, seconds: float = START_SECONDS
) -> AsyncIterator[SessionConnection]:
    """Spawn a server over stdio and end it when the block is left.

    Raises:
        SandboxFault: it can't be started, or opened no session within ``seconds``; its last line is told.
    """
    parameters = StdioServerParameters(command=command[0], args=list(command[1:]), env=dict(env))
    async with anyio.TemporaryFile() as said:  # a pipe would have to be read, and would hold up a server that says much

        async def last_words() -> str:
            return await to_thread.run_sync(last_words_in, said.wrapped.fileno())

        try:
            async with (
                stdio_client(parameters, errlog=cast("TextIO", said.wrapped)) as (reading, writing),
                _session(reading, writing, last_words, seconds) as session,
            ):
                yield session
        except Exception as error:
            named = _short(shlex.join(command))
            why = f"The server `{named}` opened no session: {_reason(error).rstrip('.')}. {await last_words()}"
            raise SandboxFault(why, code="not_started") from error


def last_line(text: str) -> str:
    """Return the last line that says something, as much of it as fits into a sentence."""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    return _short(lines[-1]) if lines else ""


def _short(text: str) -> str:
    return text if len(text) <= _LINE else f"{text[:_LINE]}…"


def last_words_in(descriptor: int) -> str:
    """Return the last line in what a server said into a file, as a sentence."""
    size = os.fstat(descriptor).st_size
    line = last_line(os.pread(descriptor, _SAID, max(0, size - _SAID)).decode(errors="replace"))
    return f"The last that it said: {line}" if line else "It said nothing."


@asynccontextmanager
async def remote(url: str, *, seconds: float = START_SECONDS) -> AsyncIterator[SessionConnection]:
    """Open a session at a streamable HTTP endpoint.

    Raises:
        SandboxFault: nobody answers there as an MCP server does, or not within ``seconds``.
    """
    client = await to_thread.run_sync(create_mcp_http_client)  # it reads certificates
    try:
        async with (
            client,
            streamable_http_client(url, http_client=client) as streams,
            _session(streams[0], streams[1], _nothing, seconds) as session,
        ):
            yield session
    except Exception as error:
        raise SandboxFault(
            f"The server at {url} opened no session: {_reason(error).rstrip('.')}.", code="not_started"
        ) from error


@asynccontextmanager
async def over_socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> AsyncIterator[SessionConnection]:
    """Speak MCP over a socket, a line a message, as over stdio."""
    into, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, out = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        async with into:
            while line := await reader.readline():
                try:
                    await into.send(SessionMessage(_parsed(line)))
                except ValueError as error:
                    await into.send(error)

    async def send() -> None:
        async with out:
            async for message in out:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(text.encode() + b"\n")
                await writer.drain()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(receive)
        tasks.start_soon(send)
        try:
            async with _session(reading, writing, _nothing, START_SECONDS) as session:
                yield session
        finally:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _session(
    reading: Any, writing: Any, last_words: LastWords, seconds: float
) -> AsyncIterator[SessionConnection]:
    async with ClientSession(reading, writing) as session:
        with anyio.fail_after(seconds):
            await session.initialize()
        yield SessionConnection(session, last_words, seconds=seconds)


def data_of(answer: Answer) -> Any:
    """Return an answer as data: its text where that is JSON, what the server gave as data else."""
    try:
        return json.loads(answer.text)
    except ValueError:
        return answer.value if answer.value is not None else answer.text
