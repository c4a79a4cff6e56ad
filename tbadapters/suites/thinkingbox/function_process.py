"""The process in which test functions are executed: a file of its own that needs the standard library only.

``function_runner.py`` starts it and talks to it over a socket at descriptor 0. For each test it is handed another
socket, and forks: nothing that a test does reaches the next one. In the fork the test's file is executed with
stand-ins for what such files import from ``thinkingbox``; what it asks the judge travels over the socket and back.

Frames are a length of four bytes and JSON. A control message is eight bytes: 0 with a socket (begin a test), or the
number of a fork that is to be ended with all that it started.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import io
import json
import os
import signal
import socket
import struct
import sys
import traceback
import types
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

CONTROL = struct.Struct("!q")
LENGTH = struct.Struct("!I")
PRINTED = 2000  # characters of what a test printed that are kept

Frame = dict[str, Any]


class Line:
    """A socket on which frames travel, both ways, one at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def send(self, frame: Frame) -> None:
        """Send a frame."""
        data = json.dumps(frame, default=repr).encode()
        self._connection.sendall(LENGTH.pack(len(data)) + data)

    def receive(self) -> Frame:
        """Wait for a frame and return it; whoever is at the other end and goes away ends this process."""
        frame: Frame = json.loads(self._exactly(LENGTH.unpack(self._exactly(LENGTH.size))[0]))
        return frame

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._connection.recv(min(size - len(data), 1 << 20))
            if not part:
                os._exit(0)
            data += part
        return bytes(data)


# -- stand-ins for what a test file imports ------------------------------------------------------------------------


class Record:
    """What test files know as data with fields: ``defaults`` names them, with what makes a value that is not given."""

    defaults: ClassVar[Mapping[str, Callable[[], Any]]] = {}

    def __init__(self, **given: Any) -> None:
        self.T = type(self).__name__
        self.metadata: dict[str, Any] = {}
        for name, make in type(self).defaults.items():
            setattr(self, name, given.pop(name) if name in given else make())
        for name, value in given.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it can be changed, as what it stands for

    def __repr__(self) -> str:
        return f"{self.T}({', '.join(f'{name}={value!r}' for name, value in vars(self).items() if name != 'T')})"


def _needed() -> NoReturn:
    raise TypeError("a field that is needed was not given")


def _call_id() -> str:
    return f"call_{uuid.uuid4().hex}"


class Text(Record):
    """Something said."""

    defaults: ClassVar[Mapping[str, Callable[[], Any]]] = {"role": _needed, "content": _needed}
    role: str
    content: str

    @property
    def tag(self) -> str:
        """``text``, ``think`` or ``direct``."""
        return str(self.metadata.get("tag", "text"))

    @property
    def is_visible(self) -> bool:
        """Whether the user sees it."""
        return self.tag != "think"

    @property
    def is_talk(self) -> bool:
        """Whether it belongs to the visible conversation."""
        return self.role in {"user", "assistant"} and self.is_visible and not self.metadata.get("is_dummy")


class ToolCall(Record):
    """A call of a tool."""

    defaults: ClassVar[Mapping[str, Callable[[], Any]]] = {"name": _needed, "arguments": _needed, "id": _call_id}


class ParallelToolCall(Record):
    """Calls that were made at once."""

    defaults: ClassVar[Mapping[str, Callable[[], Any]]] = {"tool_calls": _needed}


class ToolResponse(Record):
    """What a tool answered."""

    defaults: ClassVar[Mapping[str, Callable[[], Any]]] = {"name": _needed, "content": _needed, "id": _call_id}


class ToolCallResponse(Record):
    """A call with its answer."""

    defaults: ClassVar[Mapping[str, Callable[[], Any]]] = {"tool_call": _needed, "tool_response": _needed}


class TestContext(Record):
    """What a test function gets as ``x``."""

    defaults: ClassVar[Mapping[str, Callable[[], Any]]] = {
        "response": str,
        "tool_direct_responses": list,
        "effects": dict,
        "tool_calls": list,
        "messages": list,
        "init_result": dict,
        "session_id": lambda: str(uuid.UUID(int=0)),
    }
    messages: list[Record]

    def transcript(self, limit: int = 0) -> str:
        """Return what user and assistant said to each other, back to the assistant's last ``limit`` messages."""
        if limit < 0:
            raise ValueError("limit must be 0 or more")
        said: list[str] = []
        answers = 0
        for message in reversed(self.messages):
            if not (isinstance(message, Text) and message.is_talk):
                continue
            answers += message.role == "assistant"
            said.append(f"{'Assistant' if message.role == 'assistant' else 'User'}: {message.content}")
            if limit and answers >= limit:
                break
        return "\n\n".join(reversed(said))

    def query(self) -> str:
        """Return the user's first message."""
        for message in self.messages:
            if isinstance(message, Text) and message.role == "user" and message.is_talk:
                return message.content
        raise ValueError("no message of the user")


class JudgeException(Exception):
    """Raised by the judge that test files know."""


class Judge:
    """What a test function gets as ``judge``: every question is asked at the other end of the line."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def text_yesno(self, text: str, question: str) -> bool:
        """Say whether the answer to a question about a text is yes."""
        return bool(self._answer("yesno", text=text, question=question)["answer"])

    text_yesno_legacy = text_yesno

    def text_yesno_with_motivation(self, text: str, question: str) -> Frame:
        """Do the same, and give the reason."""
        answer = self._answer("yesno", text=text, question=question)
        return {"answer": bool(answer["answer"]), "motivation": answer.get("reason", "")}

    def yesno(self, question: str) -> bool:
        """Say whether the answer to a question is yes."""
        return self.text_yesno("", question)

    def evaluate_bool(self, system: str, user: str) -> bool:
        """Say whether the answer to what the instructions ask about a text is yes."""
        return self.text_yesno(user, system)

    def compare_yesno(self, first: str, second: str, question: str) -> bool:
        """Say whether the answer to a question about two texts is yes."""
        return self.text_yesno(f"First message:\n{first}\n\nSecond message:\n{second}", question)

    def no_repeat(self, first: str, second_list: list[str]) -> bool:
        """Say whether the first text repeats none of the others."""
        question = "Does the content of the first message repeat the content of the second message?"
        return not any(self.compare_yesno(first, second, question) for second in second_list)

    def _get_text_completion(self, messages: list[Text]) -> Text:
        told = [{"role": message.role, "text": message.content} for message in messages]
        return Text(role="assistant", content=str(self._answer("complete", messages=told)["text"]))

    def _answer(self, kind: str, **asked: Any) -> Frame:
        self._line.send({"kind": kind, **asked})
        answer = self._line.receive()
        if "error" in answer:
            raise JudgeException(answer["error"])
        return answer


class SessionClientFixture:
    """What some test files import, for fixtures that reach into a session that is still open: there is none."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("a test function can't reach into the session: it is over when it is graded")


def install_stand_ins() -> None:
    """Make the modules importable that test files name."""
    chat = [Text, ToolCall, ParallelToolCall, ToolResponse, ToolCallResponse, TestContext]
    modules: dict[str, Sequence[type]] = {
        "thinkingbox": [],
        "thinkingbox.common": [Judge, TestContext, SessionClientFixture],
        "thinkingbox.common.chat_types": chat,
        "thinkingbox.common.judge": [Judge, JudgeException],
        "thinkingbox.common.mcp_proxy_client": [SessionClientFixture],
    }
    for name, classes in modules.items():
        module = types.ModuleType(name)
        module.__path__ = []
        for each in classes:
            setattr(module, each.__name__, each)
        sys.modules[name] = module
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, module)


# -- one test ------------------------------------------------------------------------------------------------------


def _message(data: Frame) -> Record:
    kind = data["kind"]
    if kind == "text":
        return Text(role=data["role"], content=data["text"])
    if kind == "call":
        return ParallelToolCall(tool_calls=[_call(data)])
    return _response(data)


def _call(data: Frame) -> ToolCall:
    return ToolCall(name=data["name"], arguments=data["arguments"], id=data["id"])


def _response(data: Frame) -> ToolResponse:
    return ToolResponse(name=data["name"], content=data["content"], id=data["id"])


def _context(data: Frame) -> TestContext:
    calls = [ToolCallResponse(tool_call=_call(c), tool_response=_response(c)) for c in data.pop("tool_calls")]
    return TestContext(tool_calls=calls, messages=[_message(m) for m in data.pop("messages")], **data)


def _executed(request: Frame, line: Line) -> Frame:
    """Execute a test file and its function; return what came of it."""
    said = io.StringIO()

    def printed(*values: object, sep: str = " ", end: str = "\n", **_: object) -> None:
        said.write(sep.join(map(str, values)) + end)

    file = request["file"]
    space: Frame = {"__name__": "_test_file", "__file__": file, "__builtins__": builtins, "print": printed}
    try:
        exec(compile(request["code"], file, "exec"), space)  # noqa: S102  (a test is code; it has this process alone)
        function = space[request["function"]]
        given = _given(function, {"x": _context(request["x"]), "judge": Judge(line)})
        outcome = _finished(function(**given))
    except BaseException as error:  # noqa: BLE001  (a test may raise anything, SystemExit too)
        outcome = _raised(error, request)
    return {"kind": "outcome", "printed": said.getvalue()[:PRINTED], **outcome}


def _given(function: Callable[..., Any], known: Frame) -> Frame:
    """Return the arguments that a test function wants."""
    wanted = inspect.signature(function).parameters
    foreign = sorted(set(wanted) - set(known))
    if foreign:
        raise TypeError(f"it wants {', '.join(foreign)}, which only the reference harness can give")
    return {name: value for name, value in known.items() if name in wanted}


def _finished(value: Any) -> Frame:
    if value is None:
        return {"passed": True, "reward": 1.0}
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise TypeError(f"it returned {value!r}; nothing, or a number from 0 to 1, is needed")
    return {"passed": True, "reward": float(value)}


def _raised(error: BaseException, request: Frame) -> Frame:
    lines = request["code"].split("\n")
    own = [step.lineno for step in traceback.extract_tb(error.__traceback__) if step.filename == request["file"]]
    place = own[-1] if own and own[-1] is not None else None
    source = lines[place - 1].strip() if place and place <= len(lines) else ""
    found = {"message": str(error), "line": place, "source": source}
    if isinstance(error, AssertionError):
        return {"passed": False, **found}
    return {"passed": None, "error": type(error).__name__, **found}


# -- the process ---------------------------------------------------------------------------------------------------


def _serve(connection: socket.socket) -> NoReturn:
    """Execute the one test of a fork and end."""
    os.setsid()  # what the test starts is ended with it
    line = Line(connection)
    line.send({"kind": "pid", "pid": os.getpid()})
    request = line.receive()
    line.send(_executed(request, line))
    os._exit(0)


class Forks:
    """The forks that are running."""

    def __init__(self) -> None:
        self._running: set[int] = set()

    def begin(self, control: socket.socket, descriptor: int) -> None:
        """Fork for a test that talks on this descriptor."""
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})  # a fork that ends at once is known before
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            control.close()
            _serve(socket.socket(fileno=descriptor))
        self._running.add(child)
        os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def reap(self, *_: object) -> None:
        """Take note of those that have ended."""
        while self._running:
            pid, _status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._running.discard(pid)

    def end(self, pid: int) -> None:
        """End one, with all that it started; a number that is none of ours is left alone."""
        if pid in self._running:
            for end in (os.killpg, os.kill):  # it may not have come to make a group of its own
                with contextlib.suppress(ProcessLookupError):
                    end(pid, signal.SIGKILL)

    def end_all(self) -> None:
        """End all of them."""
        for pid in tuple(self._running):
            self.end(pid)


def main() -> None:
    """Fork for each socket that arrives, until the other end goes away; then end all forks."""
    control = socket.socket(fileno=0)
    forks = Forks()
    install_stand_ins()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    signal.signal(signal.SIGCHLD, forks.reap)
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, CONTROL.size, 1)
        if len(data) < CONTROL.size:
            break
        if descriptors:
            forks.begin(control, descriptors[0])
        else:
            forks.end(CONTROL.unpack(data)[0])
    forks.end_all()


if __name__ == "__main__":
    main()
