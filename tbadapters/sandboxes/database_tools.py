"""How an async function on records becomes a tool: ``@reads`` and ``@writes``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from tbadapters.core.errors import SandboxFault, SuiteError, ToolError
from tbadapters.core.tools import Tool
from tbadapters.sandboxes.records import Records

P = ParamSpec("P")
Data = TypeVar("Data")
_CLOSED = ConfigDict(extra="forbid", allow_inf_nan=False)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class DatabaseTool(Generic[P, Data]):
    """A tool of a SQLite suite: what the agent sees, and the function behind it. Callable as the function is.

    Attributes:
        tool: Name, description and schema, made from the function's name, docstring and signature.
        function: ``async def name(db: Records, ...) -> dict | list | str``.
        arguments: The model that its arguments are validated by.
    """

    tool: Tool
    function: Callable[P, Awaitable[Data]]
    arguments: type[BaseModel]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[Data]:
        """Call the function itself, as one tool may do with another."""
        return self.function(*args, **kwargs)

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them.

        Raises:
            ToolError: they do not fit the schema, or are no JSON (infinity, half a surrogate pair).
        """
        try:
            model = self.arguments.model_validate_json(json.dumps(arguments, ensure_ascii=False).encode(), strict=True)
            json.dumps(arguments, allow_nan=False)  # once more: a suite's own nested types may let infinity pass
        except (ValidationError, TypeError, ValueError) as error:
            raise ToolError(f"Invalid arguments for {self.tool.name}: {_explained(error)}") from None
        return {name: getattr(model, name) for name in model.model_fields_set}

    def run(self, records: Records, values: Mapping[str, Any]) -> Data:
        """Execute the function in one go: no other call can come between, so a call is a transaction without a lock.

        Raises:
            SandboxFault: it waits for something other than the records.
        """
        waiting: Any = self.function(records, **values)  # type: ignore[arg-type]  # its parameters are not known here
        try:
            waiting.send(None)
        except StopIteration as done:
            value: Data = done.value
            return value
        waiting.close()
        raise SandboxFault(f"The tool {self.tool.name!r} waits for something other than the records.")


@overload
def reads(function: Callable[P, Awaitable[Data]]) -> DatabaseTool[P, Data]: ...


@overload
def reads(*, needs_approval: bool = False) -> Callable[[Callable[P, Awaitable[Data]]], DatabaseTool[P, Data]]: ...


def reads(function: Callable[..., Any] | None = None, *, needs_approval: bool = False) -> Any:
    """Mark an async function as a tool that changes nothing (held to it: a change is a fault of the sandbox)."""
    return _marked(function, writes=False, needs_approval=needs_approval)


@overload
def writes(function: Callable[P, Awaitable[Data]]) -> DatabaseTool[P, Data]: ...


@overload
def writes(*, needs_approval: bool = False) -> Callable[[Callable[P, Awaitable[Data]]], DatabaseTool[P, Data]]: ...


def writes(function: Callable[..., Any] | None = None, *, needs_approval: bool = False) -> Any:
    """Mark an async function as a tool that may change records; each call is one transaction."""
    return _marked(function, writes=True, needs_approval=needs_approval)


def _marked(function: Callable[..., Any] | None, *, writes: bool, needs_approval: bool) -> Any:
    def mark(function: Callable[..., Any]) -> DatabaseTool[..., Any]:
        name = function.__name__
        if not inspect.iscoroutinefunction(function):
            raise SuiteError(f"The tool {name!r} must be an async function.")
        if not function.__doc__:
            raise SuiteError(f"The tool {name!r} needs a docstring: it is the description that agents read.")
        model = _arguments_model(function)
        tool = Tool(name, inspect.cleandoc(function.__doc__), _json_schema(model), needs_approval, writes)
        return DatabaseTool(tool, function, model)

    return mark if function is None else mark(function)


def _arguments_model(function: Callable[..., Any]) -> type[BaseModel]:
    name = function.__name__
    parameters = list(inspect.signature(function).parameters.values())
    hints = get_type_hints(function, include_extras=True)
    if not parameters or not _is_records(hints.get(parameters[0].name)):
        raise SuiteError(f"The first parameter of the tool {name!r} must be the records: db: Records.")
    fields: dict[str, Any] = {}
    for parameter in parameters[1:]:
        if parameter.kind not in _BY_NAME or parameter.name not in hints:
            raise SuiteError(f"The parameter {parameter.name!r} of the tool {name!r} needs a type and a plain name.")
        if hasattr(BaseModel, parameter.name) or parameter.name.startswith(("_", "model_")):
            raise SuiteError(f"The parameter name {parameter.name!r} of the tool {name!r} is reserved: rename it.")
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    model: type[BaseModel] = create_model(name, __config__=_CLOSED, **fields)
    return model


def _is_records(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Records)


def _json_schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    inlined = _inlined(schema, schema.pop("$defs", {}), ())
    inlined.setdefault("properties", {})
    return {key: value for key, value in inlined.items() if key != "description"}


def _inlined(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """Return a schema with its definitions put where they are named, and without pydantic's titles."""
    if isinstance(node, list):
        return [_inlined(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[-1]
        if name in inside:
            raise SuiteError(f"The type {name!r} refers to itself: a tool's schema must be finite.")
        rest = {key: value for key, value in node.items() if key != "$ref"}
        return _inlined({**definitions[name], **rest}, definitions, (*inside, name))
    plain = {}
    for key, value in node.items():
        if key == "properties":
            plain[key] = {name: _inlined(item, definitions, inside) for name, item in value.items()}
        elif key != "title" or isinstance(value, dict):
            plain[key] = (
                value if key in {"default", "enum", "const", "examples"} else _inlined(value, definitions, inside)
            )
    return plain


def _explained(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}" for e in error.errors())


__all__ = ["DatabaseTool", "reads", "writes"]
