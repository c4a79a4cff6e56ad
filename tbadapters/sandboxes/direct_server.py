"""A server object whose tools are called without a client: beside ``fork_server.py``, under the server's interpreter."""

from __future__ import annotations

import json
import types
from typing import Any, Callable

Probe = Callable[[types.ModuleType, Any], Any]


def callable_directly(function: Any) -> Any:
    """Return the server object behind what would have been run, if its tools can be called without a client.

    A server with a lifespan of its own can't: the lifespan runs around a client's session.
    """
    while hasattr(function, "func"):
        function = function.func
    server = getattr(function, "__self__", None)
    if type(server).__module__.split(".")[0] not in ("fastmcp", "mcp") or not hasattr(server, "call_tool"):
        return None
    if getattr(getattr(server, "settings", None), "lifespan", None) is not None:
        return None
    lifespan = getattr(server, "_lifespan", None)
    return server if lifespan is None or getattr(lifespan, "__name__", "") == "default_lifespan" else None


class Direct:
    """The requests of a connection to a server object: each a method, its answer JSON-like.

    Args:
        server: The object.
        module: The program that made it.
        probe: Returns the probe of a name.
    """

    def __init__(self, server: Any, module: types.ModuleType, probe: Callable[[str], Probe]) -> None:
        self.server, self.module, self.probe_named = server, module, probe
        self.frozen: str | None = None

    async def list(self, _request: dict[str, Any]) -> dict[str, Any]:
        """Answer with the tools, each with name, description and input schema."""
        tools = []
        for tool in await self.server.list_tools():
            wire = tool.to_mcp_tool() if hasattr(tool, "to_mcp_tool") else tool
            tools.append(wire.model_dump(by_alias=True, mode="json"))
        return {"tools": tools}

    async def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; what it raises is an answer that says so, as a client would get it."""
        try:
            result = await self.server.call_tool(request["name"], request["arguments"])
        except Exception as error:  # noqa: BLE001  (whatever a tool raises)
            return {"text": str(error) or type(error).__name__, "error": True}
        return answer_of(result)

    async def probe(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a probe of a preparation file."""
        found = self.probe_named(request["name"])
        return {"value": found(self.module, request.get("argument"))}

    async def freeze(self, request: dict[str, Any]) -> dict[str, Any]:
        """Become the task's process: serve forks of what is now, on a socket of its own."""
        self.frozen = request["socket"]
        return {}


def answer_of(result: Any) -> dict[str, Any]:
    """Return a tool's result, in any of the forms that the SDKs' versions have, as an answer."""
    structured = None
    if isinstance(result, tuple):
        result, structured = result
    content = getattr(result, "content", result)
    structured = getattr(result, "structured_content", structured)
    if isinstance(content, dict):
        return {"text": json.dumps(content), "value": content}
    texts = [getattr(part, "text", None) for part in content]
    text = "\n".join(part if part is not None else f"[{kind(given)}]" for part, given in zip(texts, content))
    return {"text": text, "value": structured, "error": bool(getattr(result, "is_error", False))}


def kind(part: Any) -> str:
    """Return what a part of a result that is no text is."""
    return str(getattr(part, "type", type(part).__name__))
