"""Stand-ins for what test files import from ``thinkingbox``: data, the context ``x``, and the judge.

Executed in the tests' process (``function_process.py``): the standard library only.
"""

from __future__ import annotations

import sys
import types
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

Asked = Callable[..., dict[str, Any]]
"""Asks at the other end of the line: the kind of question, and what belongs to it by name."""


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

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def text_yesno(self, text: str, question: str) -> bool:
        """Say whether the answer to a question about a text is yes."""
        return bool(self._asked("yesno", text=text, question=question)["answer"])

    text_yesno_legacy = text_yesno

    def text_yesno_with_motivation(self, text: str, question: str) -> dict[str, Any]:
        """Do the same, and give the reason."""
        answer = self._asked("yesno", text=text, question=question)
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
        return Text(role="assistant", content=str(self._asked("complete", messages=told)["text"]))


class WatchedEffects(dict[str, Any]):
    """What a server answered for its effects; notes which parts of it a test reads."""

    def __init__(self, told: Mapping[str, Any], read: set[str]) -> None:
        super().__init__(told)
        self._read = read

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a part of it."""
        self._read.add(name)
        return super().get(name, default)


class SessionClientFixture:
    """What some test files import, for fixtures that reach into a session that is still open: there is none."""

    def __init__(self, *_: object, **__: object) -> None:
        raise RuntimeError("a test function can't reach into the session: it is over when it is graded")


def install() -> None:
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


def _message(data: dict[str, Any]) -> Record:
    kind = data["kind"]
    if kind == "text":
        return Text(role=data["role"], content=data["text"])
    if kind == "call":
        return ParallelToolCall(tool_calls=[_call(data)])
    return _response(data)


def _call(data: dict[str, Any]) -> ToolCall:
    return ToolCall(name=data["name"], arguments=data["arguments"], id=data["id"])


def _response(data: dict[str, Any]) -> ToolResponse:
    return ToolResponse(name=data["name"], content=data["content"], id=data["id"])


def context(data: dict[str, Any], read: set[str]) -> TestContext:
    """Return the context of a test, by field; what the test reads of the effects is noted in ``read``."""
    calls = [ToolCallResponse(tool_call=_call(c), tool_response=_response(c)) for c in data.pop("tool_calls")]
    messages = [_message(message) for message in data.pop("messages")]
    effects = {
        server: WatchedEffects(told, read) if isinstance(told, dict) else told
        for server, told in data.pop("effects").items()
    }
    return TestContext(tool_calls=calls, messages=messages, effects=effects, **data)
