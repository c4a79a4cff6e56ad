"""A small MCP server of a lost-property desk, on whichever SDK its environment has; for tests of MCP sandboxes.

Environment: MCP_DESK_SDK chooses the SDK (``fastmcp`` or ``mcp``), MCP_DESK_THREAD
starts a thread at import, MCP_DESK_LIFESPAN gives the server a lifespan, MCP_DESK_TRACE is a file of what was done,
MCP_DESK_BY_NAME makes it tell its records by their names instead of in a list.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import asynccontextmanager
from pathlib import Path

SDK = os.environ.get("MCP_DESK_SDK", "mcp")
items: dict[str, dict] = {}
initial: list[dict] = []

if os.environ.get("MCP_DESK_THREAD"):
    threading.Thread(target=time.sleep, args=(3600,), daemon=True, name="idler").start()


def trace(what):
    """Leave a trace that a test can see."""
    if "MCP_DESK_TRACE" in os.environ:
        with Path(os.environ["MCP_DESK_TRACE"]).open("a") as file:
            file.write(f"{what}\n")


def server_class():
    """Return the SDK's server class."""
    if SDK == "fastmcp":
        from fastmcp import FastMCP

        return FastMCP
    try:
        from mcp.server import MCPServer
    except ImportError:
        from mcp.server.fastmcp import FastMCP as MCPServer
    return MCPServer


@asynccontextmanager
async def lifespan(_server):
    """A lifespan of the server's own, which only a client's session runs."""
    items["lifespan"] = {"id": "lifespan", "state": "entered"}
    yield {}


desk = server_class()("desk", **({"lifespan": lifespan} if os.environ.get("MCP_DESK_LIFESPAN") else {}))


@desk.tool(name="__reserved__init")
async def init(config: dict) -> str:
    """Lay out the items."""
    trace("init")
    if config.get("hang"):
        await asyncio.sleep(3600)
    if config.get("die"):
        sys.stderr.write("no shelf left\n")
        sys.stderr.flush()
        os._exit(1)
    if config.get("fail"):
        return json.dumps({"status": "error", "message": "no such shelf"})
    items.update({item["id"]: dict(item) for item in config["items"]})
    initial[:] = [dict(item) for item in items.values()]
    return json.dumps({"laid_out": len(items)})


@desk.tool(name="__reserved__geteffects")
async def effects() -> str:
    """Tell what there is."""
    if any(item.get("state") == "stuck" for item in items.values()):
        await asyncio.sleep(3600)
    if "MCP_DESK_BY_NAME" in os.environ:
        return json.dumps({"items": items})
    return json.dumps({"initial": initial, "items": list(items.values())})


@desk.tool(name="__reserved__teardown")
async def teardown() -> str:
    """Say that it was torn down."""
    trace("teardown")
    return "{}"


@desk.tool()
async def find_item(item_id: str) -> str:
    """Look an item up."""
    if item_id not in items:
        raise ValueError(f"There is no item {item_id}.")
    return json.dumps(items[item_id])


@desk.tool()
async def set_state(item_id: str, state: str) -> str:
    """Change an item's state."""
    items[item_id]["state"] = state
    return json.dumps(items[item_id])


@desk.tool()
async def wait(seconds: float, how: str = "async") -> str:
    """Take a while: kindly, or so that nothing else can run."""
    if how == "busy":
        time.sleep(seconds)
    else:
        await asyncio.sleep(seconds)
    return "waited"


@desk.tool()
async def die() -> str:
    """End the server's process."""
    os._exit(3)


@desk.tool()
async def start_child() -> str:
    """Start a process that would go on."""
    child = subprocess.Popen(["sleep", "3600"])
    return json.dumps({"pid": child.pid})


if __name__ == "__main__":
    desk.run()
