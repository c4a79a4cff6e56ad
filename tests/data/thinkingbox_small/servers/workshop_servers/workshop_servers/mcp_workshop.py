"""The workshop's MCP server. WORKSHOP_SDK chooses the SDK: ``fastmcp`` or ``mcp``; by default whichever is there."""

import importlib.util
import json
import os
from typing import Literal

from workshop_servers.knowledge import Knowledge
from workshop_servers.shop import Workshop

SDK = os.environ.get("WORKSHOP_SDK") or ("fastmcp" if importlib.util.find_spec("fastmcp") else "mcp")
Status = Literal["open", "waiting", "ready", "cancelled"]


def server_class():
    """Return the SDK's server class."""
    if SDK == "fastmcp":
        from fastmcp import FastMCP

        return FastMCP
    try:
        from mcp.server import MCPServer
    except ImportError:  # mcp 1.x
        from mcp.server.fastmcp import FastMCP as MCPServer
    return MCPServer


mcp = server_class()("workshop")
shop = Workshop({})
given: dict = {}
initial: dict = {}
knowledge: list[Knowledge] = []


@mcp.tool(name="__reserved__init")
async def init(config: dict) -> str:
    """Lay out the records and the rules."""
    global shop, given, initial  # noqa: PLW0603  (a server of one session keeps its state so)
    try:
        given = config
        shop = Workshop(config.get("data_patch") or {})
        initial = shop.db.state()
        if config.get("sources"):
            knowledge[:] = [Knowledge(config["sources"])]
    except Exception as error:  # noqa: BLE001  (whatever the records make of it is answered)
        return json.dumps({"status": "error", "message": str(error)})
    return json.dumps({"opened": "Wheelhouse"})


@mcp.tool(name="__reserved__geteffects")
async def effects() -> str:
    """Tell the records as they were, as they are, and as they should be."""
    golden = Workshop(given.get("data_patch") or {})
    for call in (given.get("golden_test_case") or {}).get("tool_interactions") or []:
        try:
            golden.call(call["tool"], call.get("parameters") or {})
        except (LookupError, ValueError):
            continue
    return json.dumps(
        {
            "initial_db_state": initial,
            "result_db_state": shop.db.state(),
            "result_db_hash": shop.db.digest(),
            "golden_db_state": golden.db.state(),
            "golden_db_hash": golden.db.digest(),
            "rubrics_yesno": given.get("rubrics_yesno") or [],
        }
    )


@mcp.tool(name="__reserved__teardown")
async def teardown() -> str:
    """Leave no rules behind."""
    while knowledge:
        knowledge.pop().drop()
    return json.dumps({"status": "ok"})


def answered(tool: str, **arguments) -> str:
    """Return what a tool answers; what it can't do is an error for the agent to read."""
    try:
        return json.dumps(shop.call(tool, {name: value for name, value in arguments.items() if value is not None}))
    except (LookupError, ValueError) as error:
        return json.dumps({"error": str(error).strip("'")})


@mcp.tool()
async def find_customer(email: str) -> str:
    """Find a customer by e-mail address."""
    return answered("find_customer", email=email)


@mcp.tool()
async def get_job(job_id: str) -> str:
    """Look up a repair with the parts ordered for it."""
    return answered("get_job", job_id=job_id)


@mcp.tool()
async def list_parts(name: str = "") -> str:
    """List the parts whose name contains a text."""
    return answered("list_parts", name=name)


@mcp.tool()
async def update_job(
    job_id: str, status: Status | None = None, tags: list[str] | None = None, remark: str | None = None
) -> str:
    """Change a repair: its status, its tags, a remark for the mechanic."""
    return answered("update_job", job_id=job_id, status=status, tags=tags, remark=remark)


@mcp.tool()
async def job_price(job_id: str, action: Literal["show", "reduce"], amount: float | None = None) -> str:
    """Show the price of a repair, or reduce it by an amount."""
    return answered("job_price", job_id=job_id, action=action, amount=amount)


@mcp.tool()
async def order_part(job_id: str, part_id: str, quantity: int = 1, note: str | None = None) -> str:
    """Take a part from the shelf for a repair; it is fitted within three days."""
    return answered("order_part", job_id=job_id, part_id=part_id, quantity=quantity, note=note)


@mcp.tool()
async def search_rules(query: str) -> str:
    """Search the workshop's rules."""
    return json.dumps(knowledge[0].found(query) if knowledge else [])


if __name__ == "__main__":
    mcp.run(transport="stdio", **({"show_banner": False} if SDK == "fastmcp" else {}))
