"""The messages between a run and its agent's process: JSON objects, each with its length before it.

What the agent's process sends is checked by the models here: it may run anybody's code, and may send anything.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, TypeAdapter, ValidationError

from tbadapters.core.errors import AgentFault
from tbadapters.core.plain import LONGEST, plain
from tbadapters.core.tool_arguments import TooLong, taken

MESSAGE_MAX = 16 * 2**20  # bytes of one message
ATTEMPT_MAX = 64 * 2**20  # bytes that one attempt's process may send in all
MESSAGES_MAX = 20_000  # messages that one attempt's process may send in all
PARTS_MAX = 2**15  # bytes of one message outside its texts: quotes, brackets, commas, numbers
NOTE_MAX = 10_000  # characters of one remark
LENGTH = struct.Struct("!I")

Count = Annotated[int, Field(ge=0, le=10**12)]
Name = Annotated[str, Field(max_length=1000)]
Text = Annotated[str, Field(max_length=LONGEST)]  # arguments of a tool call, as JSON


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class WireFault(_Message):
    """A fault as the agent's process tells it; only an agent's and a provider's are believed."""

    owner: Literal["agent", "provider"]
    access: bool = False
    code: Name
    message: str
    retry_after: NonNegativeFloat | None = None


class WireUsage(_Message):
    """Tokens of one model request."""

    input_tokens: Count
    cached_input_tokens: Count
    output_tokens: Count
    reasoning_tokens: Count


class Looked(_Message):
    """What the agent is, before the first trial."""

    type: Literal["looked"]
    name: Name
    framework: Name
    made_afresh: bool
    models: Annotated[tuple[Name, ...], Field(max_length=100)]


class Refused(_Message):
    """The agent can't be run: a sentence for whoever asked for it."""

    type: Literal["refused"]
    error: Name
    message: str


class Opened(_Message):
    """The session is open."""

    type: Literal["opened"]


class Answered(_Message):
    """The agent's answer to the user."""

    type: Literal["said"]
    text: str


class AskedCall(_Message):
    """One call that waits for approval."""

    id: Name
    tool: Name
    arguments: Text


class Asks(_Message):
    """Calls that wait for approval."""

    type: Literal["asks"]
    calls: Annotated[tuple[AskedCall, ...], Field(max_length=1000, fail_fast=True)]


class Left(_Message):
    """The agent ended the conversation."""

    type: Literal["ended"]
    reason: Name
    text: str


class Failed(_Message):
    """What ended the session instead of an answer."""

    type: Literal["failed"]
    fault: WireFault


class Closed(_Message):
    """The session is closed."""

    type: Literal["closed"]


class Called(_Message):
    """A tool call."""

    type: Literal["call"]
    id: Count
    name: Name
    arguments: Text | None
    actor: Name | None


class RequestStarts(_Message):
    """A model request is about to be made."""

    type: Literal["request_starts"]
    actor: Name | None


class RequestEnded(_Message):
    """A model request ended."""

    type: Literal["request_ended"]
    model: Name
    usage: WireUsage | None
    actor: Name | None
    fault: WireFault | None


class Noted(_Message):
    """A remark for the trial's reader."""

    type: Literal["note"]
    text: Annotated[str, Field(max_length=NOTE_MAX)]


class Seen(_Message):
    """What the transport saw of a model request, as the hooks of ``transport_hooks`` are told."""

    type: Literal["seen"]
    id: Count
    event: Literal["hold", "request", "response", "ended", "failed"]
    method: Name = ""
    url: Annotated[str, Field(max_length=4000)] = ""
    body: str = ""
    status: Annotated[int, Field(ge=0, le=999)] = 0
    headers: dict[Name, Name] = {}
    error: Annotated[str, Field(max_length=2000)] = ""


Reply = Looked | Refused | Opened | Answered | Asks | Left | Failed | Closed
Report = Called | RequestStarts | RequestEnded | Noted | Seen
_MESSAGES: TypeAdapter[Reply | Report] = TypeAdapter(Annotated[Reply | Report, Field(discriminator="type")])


def parsed(data: bytes) -> Reply | Report:
    """Return a message of the agent's process.

    Raises:
        AgentFault: it is none, or made to be read for ever: of what is long in an honest message, all is text.
    """
    if len(data) > PARTS_MAX and _outside_texts(data) > PARTS_MAX:
        raise broken("sent a message of too many parts")
    try:
        return _MESSAGES.validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise broken(f"sent what is no message ({where + ': ' if where else ''}{first['msg']})") from error


def _outside_texts(data: bytes) -> int:
    """Return how many bytes of a JSON text are no part of its strings."""
    bare = data.replace(rb"\\", b"").replace(rb"\"", b"")
    quotes = bare.count(b'"')
    return quotes if quotes > PARTS_MAX else quotes + sum(map(len, bare.split(b'"')[::2]))


def given(arguments: Any) -> str | None:
    """Return a call's arguments as they are sent: as JSON text, which costs nobody anything who does not read it.

    None where they are too long to be taken.
    """
    copy = taken(arguments)
    text = json.dumps(copy, ensure_ascii=False, separators=(",", ":"))
    return None if isinstance(copy, TooLong) or len(text) > LONGEST else text


def arguments_of(text: str | None) -> Any:
    """Return the arguments that ``given`` made into text.

    Raises:
        AgentFault: they are none.
    """
    if text is None:
        return TooLong()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise broken("called a tool with what is no JSON") from error


def broken(what: str) -> AgentFault:
    """Return the fault of an agent whose process does not keep to the protocol."""
    return AgentFault(f"The agent's process {what}.", code="protocol")


def encoded(message: Mapping[str, Any]) -> bytes:
    """Return a message with its length before it."""
    data = json.dumps(plain(message), ensure_ascii=False, separators=(",", ":")).encode()
    return LENGTH.pack(len(data)) + data


class Pipe:
    """One end of a stream socket that carries messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, limited: bool) -> None:
        self._reader, self._writer = reader, writer
        self._limited = limited
        self._received = self._messages = 0

    @classmethod
    async def over(cls, connection: socket.socket, *, limited: bool) -> Self:
        """Take a connected socket over; ``limited``: whether the other end is a stranger."""
        connection.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        return cls(reader, writer, limited=limited)

    async def receive(self) -> bytes | None:
        """Return the next message, None where the other end is closed.

        Raises:
            AgentFault: the other end, a stranger, sends too much.
        """
        try:
            (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
            self._received += length
            self._messages += 1
            if self._limited and length > MESSAGE_MAX:
                raise broken(f"sent a message of {length / 2**20:,.0f} MiB; {MESSAGE_MAX // 2**20} MiB is the most")
            if self._limited and self._received > ATTEMPT_MAX:
                raise broken(f"sent more than {ATTEMPT_MAX // 2**20} MiB in one attempt")
            if self._limited and self._messages > MESSAGES_MAX:
                raise broken(f"sent more than {MESSAGES_MAX:,} messages in one attempt")
            return await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; where the other end is gone, it is lost."""
        self._writer.write(encoded(message))

    async def drain(self) -> None:
        """Wait until the other end has taken most of what was sent."""
        try:
            await self._writer.drain()
        except ConnectionError:
            return

    def close(self) -> None:
        """Close at once, whatever was not sent yet."""
        self._writer.transport.abort()
