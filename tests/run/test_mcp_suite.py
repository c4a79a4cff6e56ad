"""Whole runs on a suite whose backend is an MCP server."""

import sys
from pathlib import Path

from tbadapters import Retries, Suite, Task, UserBrief, evaluate
from tbadapters.adapters.function import TrialContext
from tbadapters.core.grading import EndState, Expectation, GoldenAction
from tbadapters.core.state import TableRules
from tbadapters.sandboxes.mcp import McpBackend, McpServer

DATA = Path(__file__).parents[1] / "data"
BACK = EndState("returned", (GoldenAction("set_state", {"item_id": "umbrella", "state": "returned"}),))


async def lost_property(server: McpServer) -> Suite:
    """Return a suite of one task, graded by the records."""
    backend = McpBackend({"desk": server}, rules={"items": TableRules(key=("id",))})
    items = [{"id": "umbrella", "state": "found"}, {"id": "scarf", "state": "found"}]
    brief = UserBrief("The umbrella back.")
    task = Task("lost/umbrella", "Is my umbrella there?", brief, Expectation((BACK,)), {"desk": {"items": items}})
    return Suite("lost", (task,), "Give back what is asked for.", await backend.list_tools("desk"), backend)


FORKED = McpServer(module="mcp_desk", path=(str(DATA),))


async def give(item: str, ctx: TrialContext) -> str:
    """Give an item back."""
    await ctx.call("find_item", item_id=item)
    await ctx.call("set_state", item_id=item, state="returned")
    return "It has been returned to you."


async def test_own_suite_of_an_mcp_server(tmp_path: Path) -> None:
    """An agent passes on a suite of one's own MCP server, and a flaw is told with the record and the call that did it."""
    suite = await lost_property(FORKED)

    async def right(message: str, ctx: TrialContext) -> str:
        return await give("umbrella", ctx)

    async def wrong(message: str, ctx: TrialContext) -> str:
        return await give("scarf", ctx)

    passed = await evaluate(right, suite=suite, trials=3, out=tmp_path)
    failed = await evaluate(wrong, suite=suite, trials=1, out=tmp_path)
    assert passed.figures.pass_at_1.value == 1.0
    effects = failed.trial("lost/umbrella", 0).verdict.effects
    assert {(e.kind, e.table, e.key, e.column, e.caused_by, e.golden) for e in effects} == {
        ("unexpected", "items", "scarf", "state", 1, None),
        ("missing", "items", "umbrella", "state", None, 0),
    }


async def test_server_killed_in_a_call_gives_a_new_attempt(tmp_path: Path) -> None:
    """A trial whose server died in a call is tried again, and its verdict is that of the attempt that ended."""
    attempts = []

    async def agent(message: str, ctx: TrialContext) -> str:
        attempts.append(message)
        if len(attempts) == 1:
            await ctx.call("die")
        return await give("umbrella", ctx)

    for server in (FORKED, McpServer(command=(sys.executable, str(DATA / "mcp_desk.py")))):
        attempts.clear()
        suite = await lost_property(server)
        result = await evaluate(agent, suite=suite, trials=1, out=tmp_path, retries=Retries(wait_initial=0.01))
        assert len(attempts) == 2
        assert result.figures.pass_at_1.value == 1.0
        assert result.infrastructure_faults == {"sandbox: server_died": 1}


async def test_arguments_are_the_servers_to_check(tmp_path: Path) -> None:
    """An argument that the server takes, although its schema names another type, reaches it as it was given."""
    suite = await lost_property(FORKED)
    answers = []

    async def agent(message: str, ctx: TrialContext) -> str:
        answers.append((await ctx.tools["wait"].call({"seconds": "0.01"})).text)
        answers.append((await ctx.tools["wait"].call({"seconds": "soon"})).text)
        return await give("umbrella", ctx)

    await evaluate(agent, suite=suite, trials=1, out=tmp_path)
    assert answers[0] == "waited"
    assert "soon" in answers[1]
    assert "valid" in answers[1]
