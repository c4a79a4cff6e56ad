"""What was said before a task begins: a slice of the messages that stand beside its test file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tbadapters.core.errors import SuiteError
from tbadapters.core.messages import Message, Role
from tbadapters.suites.thinkingbox.files import read_yaml
from tbadapters.suites.thinkingbox.test_files import TestFunction

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "agent", "system": "system"}


def history_of(function: TestFunction) -> tuple[Message, ...] | None:
    """Return the messages that a test's ``history: key:start:end`` names in ``FILE.meta.yaml``.

    ``start`` is a place or a message's id, ``end`` the id of the first message that is not part of it, or nothing.

    Returns:
        The messages; None where a tool call is among them, which only the reference harness can make again.

    Raises:
        SuiteError: there is no such history.
    """
    if function.config.history is None:
        return ()
    key, start, end = _parsed(function)
    groups = _groups(function.file.with_suffix(".meta.yaml"))
    if key not in groups:
        raise SuiteError(f"{function.uid}: there is no history {key!r} beside {function.file.name}.")
    messages = groups[key]
    first = _place(function, messages, start)
    last = _place(function, messages, end) if end else len(messages)
    if last <= first and end:
        raise SuiteError(f"{function.uid}: its history ends before it begins.")
    return _said(messages[first:last])


def _parsed(function: TestFunction) -> tuple[str, str, str]:
    parts = (function.config.history or "").rsplit(":", 2)
    if len(parts) != 3 or not parts[0]:
        raise SuiteError(f"{function.uid}: history {function.config.history!r} is not of the form key:start:end.")
    return parts[0], parts[1], parts[2]


@lru_cache(maxsize=16)
def _groups(path: Path) -> Mapping[str, list[dict[str, Any]]]:
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
        groups = content["$history"]
        return {key: messages for key, messages in groups.items() if isinstance(messages, list)}
    except FileNotFoundError:
        return {}
    except (OSError, yaml.YAMLError, LookupError, TypeError, AttributeError) as error:
        raise SuiteError(f"{path} holds no $history: {' '.join(str(error).split())}.") from error


def _place(function: TestFunction, messages: Sequence[Mapping[str, Any]], mark: str) -> int:
    """Return the place of a message, given as a number or as an id."""
    if mark.isdecimal() and int(mark) <= len(messages):
        return int(mark)
    for place, message in enumerate(messages):
        if message.get("message_id") == mark:
            return place
    raise SuiteError(f"{function.uid}: its history has no message {mark!r}.")


def _said(messages: Sequence[Mapping[str, Any]]) -> tuple[Message, ...] | None:
    if any(message.get("role") not in _ROLES or "content" not in message for message in messages):
        return None
    return tuple(Message(str(message["content"]), _ROLES[message["role"]]) for message in messages)
