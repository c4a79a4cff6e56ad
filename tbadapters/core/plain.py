"""Whatever an agent, a sandbox or a grader hands over, as JSON-like data of our own.

A record must never be lost to what is in it: a lone surrogate in a model's text, an infinite number, a key that is no
text, a list that contains itself. What JSON can't hold is kept as its ``repr``.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any

LONGEST = 1_000_000  # characters of one text, and of the JSON of a tool call's arguments
_DEPTH = 8  # levels that are searched for the value that JSON can't hold; what lies deeper is kept as text


def plain(value: Any) -> Any:
    """Return a deep copy of ``value`` that is JSON-like and can be encoded."""
    return _plain(value, _DEPTH)


def encodable(text: str) -> str:
    """Return text that UTF-8 can encode: surrogate pairs are joined, lone surrogates replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def shortened(text: str) -> str:
    """Return a text of at most ``LONGEST`` characters or so: of a longer one the beginning and the end."""
    left_out = len(text) - LONGEST
    if left_out <= 0:
        return text
    return f"{text[: LONGEST // 2]} [{left_out:,} characters left out] {text[-LONGEST // 2 :]}"


def _plain(value: Any, depth: int) -> Any:
    try:
        return json.loads(encodable(json.dumps(value, ensure_ascii=False, allow_nan=False, default=_jsonable)))
    except (TypeError, ValueError, RecursionError):
        pass
    if depth and isinstance(value, Mapping):
        return {_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    return _shown(value)


def _key(key: object) -> str:
    return encodable(key) if isinstance(key, str) else _shown(key)


def _jsonable(value: object) -> Any:
    return dict(value) if isinstance(value, Mapping) else _shown(value)  # of mappings, JSON knows dicts only


def _shown(value: object) -> str:
    try:
        return encodable(reprlib.repr(value))
    except Exception:  # noqa: BLE001  (whatever an object's own repr raises)
        return f"<{type(value).__name__}>"
