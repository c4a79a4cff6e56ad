"""A small suite in the benchmark's format without servers: sessions are in memory, effects and probes as theirs."""

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tbadapters import Suite
from tbadapters.core.errors import SandboxFault
from tbadapters.core.grading import EndState, Expectation, GoldenAction
from tbadapters.core.state import State
from tbadapters.core.suite import Task, UserBrief
from tbadapters.core.tools import Tool, ToolResult
from tbadapters.suites.thinkingbox.check import check_thinkingbox
from tbadapters.suites.thinkingbox.grader import ThinkingBoxGraders
from tbadapters.suites.thinkingbox.grading_function import GradingFunction
from tbadapters.suites.thinkingbox.states import CHANGES, RULES, TableShape, in_order

RULES_TOLD = {
    "items": {"left_out": ["note"], "fields": None, "key": ["id"]},
    "places": {"left_out": [], "fields": ["zone", "number", "open"], "key": ["zone", "number"]},
}
WORLD = {
    "items": [
        {"id": "I1", "place": "A1", "tags": ["b", "a"], "size": {"height": 1, "width": 2}, "note": ""},
        {"id": "I2", "place": "A2", "tags": [], "size": {"height": 3, "width": 4}, "note": ""},
    ],
    "places": [
        {"zone": "A", "number": 1, "open": True, "seen": 0},
        {"zone": "A", "number": 2, "open": True, "seen": 0},
    ],
}
TESTS = '''
from thinkingbox.common import Judge, TestContext


def by_hash(x):
    effects = x.effects["shelf"]
    assert effects["result_db_hash"] == effects["golden_db_hash"], "The hashes differ.\\nResult: ..."


def test_move(x: TestContext, judge: Judge):
    """! query: move it"""
    by_hash(x)


def test_asks(x: TestContext, judge: Judge):
    """! query: move it and say so"""
    by_hash(x)
    assert judge.text_yesno(x.response, "Does it say where?"), "It does not say where."


def test_blind(x: TestContext, judge: Judge):
    """! query: move it"""
    x.effects["shelf"]["golden_db_hash"]


def test_own(x: TestContext, judge: Judge):
    """! query: move it"""
    assert x.init_result == {"shelf": {"opened": True}}
    assert x.effects["shelf"]["result_db_state"]["items"][0]["place"] == "A9"
'''
MOVE = GoldenAction("move", {"item": "I1", "place": "A9"})
LOOK = GoldenAction("look", {"item": "I1"})
GROW = GoldenAction("grow", {"item": "I2", "height": 9})


def stable_hash(tables: Mapping[str, Any]) -> str:
    """Return a hash of what counts, made as the benchmark's servers make theirs."""
    shapes = {name: TableShape.of(data) for name, data in RULES_TOLD.items()}
    counted = {
        name: sorted((shapes[name].counted(row) for row in rows), key=lambda row: str(row.get("id", "")))
        for name, rows in tables.items()
    }
    return hashlib.sha256(json.dumps(in_order(counted), sort_keys=True).encode()).hexdigest()


class Shelf:
    """One session's records and tools."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self.tables = copy.deepcopy(dict(tables))
        self.seen = copy.deepcopy(self.tables)

    def item(self, key: str) -> dict[str, Any]:
        return next(row for row in self.tables["items"] if row["id"] == key)

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "move":
            self.item(arguments["item"])["place"] = arguments["place"]
        elif name == "grow":
            self.item(arguments["item"])["size"]["height"] = arguments["height"]
        elif name == "note":
            self.item(arguments["item"])["note"] = arguments["text"]
        elif name == "add":
            self.tables["items"].append({"id": arguments["item"], "place": "A1", "tags": [], "size": {}, "note": ""})
        elif name == "remove":
            self.tables["items"].remove(self.item(arguments["item"]))
        elif name == "fail":
            return json.dumps({"error": "no such place", "tool": name})
        elif name == "break":
            raise SandboxFault("The shelf broke.")
        return "done"

    def changes(self) -> list[list[Any]]:
        found = []
        for table, shape in ((name, TableShape.of(data)) for name, data in RULES_TOLD.items()):
            before = {shape.key_of(row): row for row in self.seen[table]}
            after = {shape.key_of(row): row for row in self.tables[table]}
            found += [
                [table, before.get(key), after.get(key)]
                for key in {**before, **after}
                if before.get(key) != after.get(key)
            ]
        self.seen = copy.deepcopy(self.tables)
        return copy.deepcopy(found)


class ShelfSession:
    """A session as MCP sandboxes have it."""

    def __init__(self, backend: "ShelfBackend", task: Task) -> None:
        self.backend = backend
        self.task = task
        self.shelf = Shelf(WORLD)
        self.init_results = {"shelf": {"status": "ok", "opened": True}}

    @property
    def tools(self) -> Sequence[Tool]:
        return TOOLS

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        self.backend.calls.append(name)
        return ToolResult(self.shelf.call(name, arguments), changes=None)

    async def probe(self, server: str, name: str, argument: Any = None) -> Any:
        if not self.backend.probes:
            raise SandboxFault("There are no probes.")
        if name == RULES:
            return RULES_TOLD
        assert name == CHANGES
        return self.shelf.changes()

    async def effects(self) -> Mapping[str, Any]:
        golden = Shelf(WORLD)
        for action in self.task.expectation.end_states[0].actions:
            golden.call(action.tool, action.arguments)
        told = {
            "initial_db_state": WORLD,
            "result_db_state": copy.deepcopy(self.shelf.tables),
            "golden_db_state": golden.tables,
            "result_db_hash": stable_hash(self.shelf.tables),
            "golden_db_hash": stable_hash(golden.tables),
        }
        return {"shelf": {**told, **self.backend.tampered}}

    async def state(self) -> State:
        return State({}, await self.effects())


class ShelfBackend:
    """Opens sessions.

    Attributes:
        probes: Whether the server can be asked for what counts.
        tampered: What effects say instead.
        calls: Every call that was made, in whatever session.
    """

    def __init__(self, file: Path, *, probes: bool = True, tampered: Mapping[str, Any] | None = None) -> None:
        self.probes = probes
        self.tampered = tampered or {}
        self.calls: list[str] = []
        self.graders = ThinkingBoxGraders(lambda task: GradingFunction(file, task.id.rpartition("/")[2]), seconds=10)

    @asynccontextmanager
    async def open(self, task: Task, *, once: bool = False):
        yield ShelfSession(self, task)

    def grader(self, task: Task):
        return self.graders(task, self)

    @asynccontextmanager
    async def running(self):
        async with self.graders.running():
            yield


def tool(name: str, **arguments: str) -> Tool:
    properties = {argument: {"type": kind} for argument, kind in arguments.items()}
    return Tool(name, name, {"type": "object", "properties": properties, "required": list(properties)})


TOOLS = (
    tool("move", item="string", place="string"),
    tool("look", item="string"),
    tool("grow", item="string", height="integer"),
    tool("note", item="string", text="string"),
    tool("add", item="string"),
    tool("remove", item="string"),
    tool("fail"),
    tool("break"),
)


def task(name: str, *golden: GoldenAction) -> Task:
    return Task(
        id=f"shelf/{name}",
        opening="Move it, please.",
        user=UserBrief("The item is moved."),
        expectation=Expectation((EndState("golden", golden),)),
        world={"shelf": {}},
    )


def shelf_suite(folder: Path, *tasks: Task, tests: str = TESTS, **options: Any) -> Suite:
    """Return a suite of these tasks whose test file is written to the folder."""
    file = folder / "shelf_tests.py"
    file.write_text(tests)
    backend = ShelfBackend(file, **options)
    return Suite("shelf", tasks, "Move what is asked for.", TOOLS, backend, check=check_thinkingbox)
