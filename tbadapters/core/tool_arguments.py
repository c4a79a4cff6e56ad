"""Validation of tool arguments, the same for every framework: none of them validates against a schema given as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Self

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from tbadapters.core.plain import LONGEST, plain
from tbadapters.core.tools import Tool


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


class TooLong(str):
    """Stands for arguments that are too long to be taken, and says so."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """Return it."""
        return super().__new__(cls, f"more than {LONGEST:,} characters are not taken")


def taken(arguments: object) -> Any:
    """Return a copy of arguments as JSON-like data; what is longer than ``LONGEST`` is not even copied."""
    if isinstance(arguments, TooLong) or _is_long(arguments):
        return TooLong()
    return plain(arguments)


def _is_long(value: object) -> bool:
    length, waiting = 0, [value]
    while waiting and length <= LONGEST:
        one = waiting.pop()
        length += len(one) if isinstance(one, str | bytes) else 1
        if isinstance(one, Mapping):
            waiting.extend(one.keys())
            waiting.extend(one.values())
        elif isinstance(one, list | tuple):
            waiting.extend(one)
    return length > LONGEST


def invalid_arguments(tool: Tool, arguments: object) -> str | None:
    """Return one sentence about what is wrong with the arguments, or None where they fit the tool's schema."""
    if isinstance(arguments, TooLong):
        return f"Invalid arguments for {tool.name}: {arguments}."
    if not isinstance(arguments, Mapping):
        return f"Invalid arguments for {tool.name}: a JSON object is needed, not {type(arguments).__name__}."
    if tool.checks_arguments:
        return None
    error = best_match(_validator(json.dumps(tool.parameters, sort_keys=True)).iter_errors(_plain(arguments)))
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    return f"Invalid arguments for {tool.name}: {where + ': ' if where else ''}{error.message}."


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(arguments)
