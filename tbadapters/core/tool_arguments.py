"""Validation of tool arguments, the same for every framework: none of them validates against a schema given as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from tbadapters.core.tools import Tool


@lru_cache(maxsize=4096)
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads(schema))


def invalid_arguments(tool: Tool, arguments: object) -> str | None:
    """Return one sentence about what is wrong with the arguments, or None where they fit the tool's schema."""
    if not isinstance(arguments, Mapping):
        return f"Invalid arguments for {tool.name}: a JSON object is needed, not {type(arguments).__name__}."
    error = best_match(_validator(json.dumps(tool.parameters, sort_keys=True)).iter_errors(_plain(arguments)))
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path)
    return f"Invalid arguments for {tool.name}: {where + ': ' if where else ''}{error.message}."


def _plain(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return dict(arguments)
