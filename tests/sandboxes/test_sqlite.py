"""Promises of the SQLite sandbox."""

import json
import math
import statistics
from dataclasses import replace
from time import perf_counter
from typing import Any

import anyio.lowlevel
import pytest

from tbadapters.core.errors import SandboxFault, SuiteError, ToolError
from tbadapters.core.grading import EndState, Evidence, Expectation, GoldenAction
from tbadapters.core.state import TableRules
from tbadapters.core.suite import Task, UserBrief, UserFact
from tbadapters.core.tools import Change
from tbadapters.sandboxes.sqlite import Records, reads, sqlite_suite, writes

SCHEMA = """
CREATE TABLE owners (owner_id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE boxes (
  box_id TEXT PRIMARY KEY,
  owner_id TEXT NOT NULL REFERENCES owners,
  size INTEGER NOT NULL CHECK (size > 0),
  price REAL NOT NULL DEFAULT 0,
  is_open INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE labels (box_id TEXT, place INTEGER, text TEXT, PRIMARY KEY (place, box_id));
CREATE TABLE steps (n INTEGER PRIMARY KEY, box_id TEXT REFERENCES boxes (box_id) ON DELETE CASCADE);
"""
WORLD = {
    "now": "2026-03-02T09:00:00",
    "tables": {
        "owners": [{"owner_id": "O1", "name": "Ann"}],
        "boxes": [{"box_id": "B1", "owner_id": "O1", "size": 1}, {"box_id": "B2", "owner_id": "O1", "size": 2}],
        "labels": [{"box_id": "B1", "place": 1, "text": "x"}],
    },
}


@reads
async def get_box(db: Records, box_id: str) -> dict[str, Any]:
    """Look a box up."""
    return db.get("boxes", box_id)


@reads
async def clock(db: Records) -> str:
    """Say the time."""
    return db.now


@writes
async def resize(db: Records, box_id: str, size: int) -> dict[str, Any]:
    """Resize a box."""
    return db.update("boxes", box_id, size=size)


@writes
async def add_box(db: Records, owner_id: str, size: int) -> dict[str, Any]:
    """Add a box."""
    return db.insert("boxes", box_id=db.new_id("BOX"), owner_id=owner_id, size=size)


@writes
async def remove(db: Records, box_id: str) -> str:
    """Remove a box and note a step."""
    db.insert("steps", box_id=box_id)
    db.delete("boxes", box_id)
    return f"{box_id} is gone"


@writes
async def half_done(db: Records, box_id: str, how: str) -> str:
    """Change a box, take an id, then fail."""
    db.update("boxes", box_id, size=99)
    db.new_id("BOX")
    if how == "answer":
        raise ToolError("No, not this one.")
    if how == "crash":
        raise ZeroDivisionError("oops")
    if how == "wait":
        await anyio.lowlevel.checkpoint()
    return how


@reads
async def sly(db: Records, box_id: str) -> str:
    """Write though it says that it reads."""
    db.run("UPDATE boxes SET size = 7 WHERE box_id = ?", box_id)
    return ""


@reads
async def unserializable(db: Records) -> object:
    """Return something that is no JSON."""
    return object()


@writes
async def relabel(db: Records, box_id: str, place: int, text: str) -> dict[str, Any]:
    """Change a label."""
    return db.update("labels", (place, box_id), text=text)


@writes
async def reprice(db: Records, box_id: str, price: float) -> str:
    """Add to a box's price, the sum being made by the database."""
    db.run("UPDATE boxes SET price = price + ? WHERE box_id = ?", price, box_id)
    return "done"


@writes
async def grow(db: Records, box_id: str, size: int) -> dict[str, Any]:
    """Resize a box by a power of the size given."""
    return db.update("boxes", box_id, size=size**4)


@reads
async def product(db: Records, one: float, other: float) -> dict[str, float]:
    """Multiply."""
    return {"product": one * other}


TOOLS = [get_box, clock, resize, add_box, remove, half_done, sly, unserializable, relabel, reprice, grow, product]


def task(world=None, *, rows=None, task_id="boxes/t/0"):
    end = EndState("resized", (GoldenAction("resize", {"box_id": "B1", "size": 5}),), rows or {})
    return Task(task_id, "hi", UserBrief("g"), Expectation((end,)), WORLD if world is None else world)


def suite(*tasks, **options):
    given = {"schema": SCHEMA, "tools": TOOLS, "rules": {}, **options}
    return sqlite_suite(name="boxes", policy="p", tasks=tasks or (task(),), **given)


@pytest.fixture
async def box():
    made = suite()
    async with made.backend.open(made.tasks[0]) as sandbox:
        yield sandbox


async def test_a_result_is_compact_json_and_data(box):
    """The agent reads compact JSON, the value is the same data, defaults filled in."""
    result = await box.call("get_box", {"box_id": "B1"})
    assert result.text == '{"box_id":"B1","owner_id":"O1","size":1,"price":0.0,"is_open":0}'
    assert result.value == json.loads(result.text)
    assert (result.is_error, result.changes) == (False, ())


async def test_text_stays_text(box):
    """A tool that returns text is read as it is; the clock is the task's."""
    assert (await box.call("clock", {})).text == "2026-03-02T09:00:00"


async def test_changes_name_exactly_what_changed(box):
    """A call's changes are the fields with other values: rows that came or went count as one change each."""
    assert (await box.call("resize", {"box_id": "B1", "size": 5})).changes == (Change("boxes", "B1", "size"),)
    assert (await box.call("resize", {"box_id": "B1", "size": 5})).changes == ()
    assert (await box.call("add_box", {"owner_id": "O1", "size": 5})).changes == (Change("boxes", "BOX-9001", None),)
    relabelled = await box.call("relabel", {"box_id": "B1", "place": 1, "text": "y"})
    assert relabelled.changes == (Change("labels", "1|B1", "text"),)


async def test_cascades_are_changes_too(box):
    """What the database deletes by itself is among the changes."""
    await box.call("add_box", {"owner_id": "O1", "size": 5})
    result = await box.call("remove", {"box_id": "BOX-9001"})
    assert result.changes == (Change("boxes", "BOX-9001", None),)
    assert "BOX-9001" not in (await box.state()).tables["boxes"]


async def untouched(box, before):
    """Return whether the sandbox still holds these records, and would give the first id next."""
    same = await box.state() == before and (await box.call("get_box", {"box_id": "B1"})).value["size"] == 1
    return same and (await box.call("add_box", {"owner_id": "O1", "size": 1})).value["box_id"] == "BOX-9001"


async def test_an_answered_error_leaves_nothing_behind(box):
    """A call that a tool answers with an error changes no record and takes no id."""
    before = await box.state()
    result = await box.call("half_done", {"box_id": "B1", "how": "answer"})
    assert (result.is_error, result.text) == (True, "No, not this one.")
    assert await untouched(box, before)


@pytest.mark.parametrize(("how", "said"), [("crash", "ZeroDivisionError: oops"), ("wait", "waits for something")])
async def test_a_fault_leaves_nothing_behind(box, how, said):
    """A tool that breaks, or that waits for something, is a fault, and changes no record and takes no id."""
    before = await box.state()
    with pytest.raises(SandboxFault, match=said):
        await box.call("half_done", {"box_id": "B1", "how": how})
    assert await untouched(box, before)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("get_box", {"box_id": "B9"}, "There is no box 'B9'."),
        ("relabel", {"box_id": "B9", "place": 1, "text": ""}, "There is no label 1, 'B9'."),
        ("resize", {"box_id": "B1", "size": 0}, "The records do not allow it: CHECK constraint failed: size > 0."),
        ("add_box", {"owner_id": "O9", "size": 1}, "The records do not allow it: FOREIGN KEY constraint failed."),
        ("resize", {"box_id": "B1"}, "Invalid arguments for resize: size: Field required"),
        ("get_box", {"box_id": "B1", "x": 1}, "Invalid arguments for get_box: x: Extra inputs are not permitted"),
        (
            "resize",
            {"box_id": "B1", "size": "2"},
            "Invalid arguments for resize: size: Input should be a valid integer",
        ),
        ("fly", {}, "There is no tool 'fly'."),
    ],
)
async def test_the_agent_reads_what_is_wrong(box, name, arguments, text):
    """Unknown records, broken constraints and wrong arguments are errors that the agent can read."""
    result = await box.call(name, arguments)
    assert (result.is_error, result.text, result.changes) == (True, text, ())


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("resize", {"box_id": "B1", "size": 10**30}, "too large"),
        ("resize", {"box_id": "B1", "size": 10**5000}, "Invalid arguments for resize"),
        ("grow", {"box_id": "B1", "size": 2**40}, "too large"),
        ("get_box", {"box_id": "\ud83d"}, "surrogates not allowed"),
        ("reprice", {"box_id": "B1", "price": math.inf}, "price: Input should be a finite number"),
        ("reprice", {"box_id": "B1", "price": math.nan}, "price: Input should be a finite number"),
        ("reprice", {"box_id": "B1", "price": 10**400}, "price: Input should be a finite number"),
        ("reprice", {"box_id": "B2", "price": 1e308}, "boxes B2 price would be inf"),
        ("product", {"one": 1e308, "other": 10.0}, "too large"),
    ],
)
async def test_a_value_that_no_record_can_hold_is_an_error_for_the_agent(box, name, arguments, said):
    """Numbers beyond 64 bits, infinite ones and broken text are answered to the agent, and leave nothing behind."""
    await box.call("reprice", {"box_id": "B2", "price": 1e308})
    before = await box.state()
    result = await box.call(name, arguments)
    assert result.is_error
    assert said in result.text
    assert await box.state() == before


@pytest.mark.parametrize(
    ("name", "said"), [("sly", "marked as reading, but it wrote"), ("unserializable", "TypeError")]
)
async def test_a_tool_that_breaks_its_word_is_a_fault(box, name, said):
    """A reading tool that writes, or one that returns no data, is the sandbox's fault, not the agent's."""
    before = await box.state()
    with pytest.raises(SandboxFault, match=said):
        await box.call(name, {"box_id": "B1"} if name == "sly" else {})
    assert await box.state() == before
    assert (await box.call("get_box", {"box_id": "B1"})).value["size"] == 1


async def test_every_attempt_starts_from_the_same_records():
    """Sandboxes of one task share nothing: records, ids and clock are the same at every opening."""
    made = suite()
    async with made.backend.open(made.tasks[0]) as one, made.backend.open(made.tasks[0]) as two:
        first = await one.state()
        added = await one.call("add_box", {"owner_id": "O1", "size": 3})
        assert await two.state() == first
        assert (await two.call("add_box", {"owner_id": "O1", "size": 3})).text == added.text
    async with made.backend.open(made.tasks[0]) as three:
        assert await three.state() == first


async def test_many_concurrent_calls_do_not_mix():
    """Concurrent calls in many sandboxes, several at once in each, all take effect, each in its own sandbox."""
    made = suite()
    sizes = {}

    async def use(number):
        async with made.backend.open(made.tasks[0]) as sandbox:
            async with anyio.create_task_group() as calls:
                for _ in range(5):
                    calls.start_soon(sandbox.call, "add_box", {"owner_id": "O1", "size": number + 10})
            boxes = (await sandbox.state()).tables["boxes"]
            sizes[number] = sorted(row["size"] for row in boxes.values())

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(use, number)
    assert sizes == {number: [1, 2, *[number + 10] * 5] for number in range(20)}


async def test_a_closed_sandbox_is_closed():
    """A call after closing is a fault of the sandbox."""
    made = suite()
    async with made.backend.open(made.tasks[0]) as sandbox:
        pass
    with pytest.raises(SandboxFault, match="closed"):
        await sandbox.call("get_box", {"box_id": "B1"})


async def test_a_clean_copy_takes_well_under_a_millisecond():
    """Restoring a task's 150 rows takes well under a millisecond (median of 100)."""
    rows = [{"box_id": f"B{n}", "owner_id": "O1", "size": 1} for n in range(1, 150)]
    one = task({**WORLD, "tables": {**WORLD["tables"], "boxes": rows}})
    made = suite(one)
    times = []
    for _ in range(100):
        start = perf_counter()
        async with made.backend.open(one):
            times.append(perf_counter() - start)
    assert statistics.median(times) < 1e-3


async def test_a_world_is_laid_over_the_base_world():
    """Rows of a task are added to the common ones, replace those of the same key, and its clock wins."""
    over = {
        "now": "2026-05-05T05:00:00",
        "tables": {
            "boxes": [{"box_id": "B2", "owner_id": "O1", "size": 9}, {"box_id": "B3", "owner_id": "O1", "size": 3}]
        },
    }
    made = suite(task(over), base_world=WORLD)
    async with made.backend.open(made.tasks[0]) as sandbox:
        boxes = (await sandbox.state()).tables["boxes"]
        assert {key: row["size"] for key, row in boxes.items()} == {"B1": 1, "B2": 9, "B3": 3}
        assert (await sandbox.call("clock", {})).text == "2026-05-05T05:00:00"


@pytest.mark.parametrize(
    ("world", "said"),
    [
        ({"now": "2026-03-02", "tables": {"boxes": [{"box_id": "B1", "owner_id": "O9", "size": 1}]}}, "is not there"),
        ({"now": "2026-03-02", "tables": {"boxes": [{"box_id": "B1", "owner_id": "O1", "size": 0}]}}, "CHECK"),
        ({"now": "2026-03-02", "tables": {"boxes": [{"box_id": "B1", "colour": 1}]}}, "no column named colour"),
        (
            {"now": "2026-03-02", "tables": {"owners": [{"owner_id": "O1", "name": n} for n in ("Ann", "Bob")]}},
            "UNIQUE constraint failed",
        ),
        ({"now": "2026-03-02", "tables": {"crates": []}}, "has no table 'crates'"),
        ({"tables": {}}, "no clock"),
        ({"now": "2026-03-02", "cards": []}, "A world holds"),
    ],
)
async def test_a_world_that_does_not_fit_is_a_fault_of_the_suite(world, said):
    """Rows that break the schema are named with their task when the sandbox is opened."""
    made = suite(task(world))
    with pytest.raises(SuiteError, match=said) as raised:
        async with made.backend.open(made.tasks[0]):
            pass
    assert "boxes/t/0" in str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"schema": "CREATE TABLE a (x TEXT)", "tools": []}, "has no primary key"),
        ({"schema": "CREATE TABEL a", "tools": []}, "The schema is wrong"),
        ({"rules": {"crates": TableRules()}}, "has no table 'crates'"),
        ({"rules": {"boxes": TableRules(money=frozenset({"fee"}))}}, "no column of it: fee"),
        ({"rules": {"boxes": TableRules(references={"box_id": "crates"})}}, "has no table 'crates'"),
        ({"tools": [get_box, get_box]}, "Two tools have the same name"),
        ({"tools": [get_box, suite]}, "Mark the tools of 'boxes' with @reads or @writes: suite"),
    ],
)
def test_a_wrong_suite_is_refused_at_once(options, said):
    """A schema, rules or tools that are wrong are refused when the suite is made."""
    with pytest.raises(SuiteError, match=said):
        suite(**options)


def test_two_tasks_of_one_id_are_refused():
    """Task ids are unique."""
    with pytest.raises(SuiteError, match="several tasks with the id 'boxes/t/0'"):
        suite(task(), task())


def test_a_topic_that_the_user_knows_nothing_of_is_refused():
    """What an agent needs to ask for is one of its user's facts; another is named, with the facts that there are."""
    asked = replace(task(), needs_asking=("size",))
    with pytest.raises(SuiteError, match=r"'boxes/t/0' needs asking for 'size'.*it has none"):
        suite(asked)
    known = UserBrief("g", facts=(UserFact("the size", "Five.", ("size",)),))
    with pytest.raises(SuiteError, match="it has 'the size'"):
        suite(replace(asked, user=known))
    assert suite(replace(asked, user=known, needs_asking=("the size",))).tasks


def test_keys_and_references_are_read_from_the_schema():
    """Rules are completed with primary keys (composite ones in their order) and foreign keys."""
    rules = suite(rules={"boxes": TableRules(free_text=frozenset({"size"}))}).backend.rules
    assert rules["boxes"].key == ("box_id",)
    assert rules["boxes"].references == {"owner_id": "owners"}
    assert rules["boxes"].free_text == {"size"}
    assert rules["labels"].key == ("place", "box_id")
    assert rules["steps"].references == {"box_id": "boxes"}


async def test_declared_booleans_are_stored_as_the_database_does():
    """True and false in a declared row are the 1 and 0 that SQLite stores."""
    one = task(rows={"boxes": {"B1": {"is_open": False}, "B2": {"is_open": True}}})
    made = suite(one)
    async with made.backend.open(one) as sandbox:
        initial = await sandbox.state()
        await sandbox.call("resize", {"box_id": "B1", "size": 5})
        verdict = await made.backend.grader(one).grade(Evidence(initial, await sandbox.state(), (), ()))
    (effect,) = verdict.effects
    assert (effect.kind, effect.key, effect.column, effect.expected) == ("missing", "B2", "is_open", 1)


async def test_a_task_of_the_same_id_with_another_world_is_another_task():
    """Nothing of a task is kept for another one that only shares its id."""
    made = suite()
    other = task({**WORLD, "tables": {**WORLD["tables"], "boxes": []}})
    async with made.backend.open(made.tasks[0]) as one, made.backend.open(other) as two:
        assert len((await one.state()).tables["boxes"]) == 2
        assert (await two.state()).tables["boxes"] == {}
    assert made.backend.grader(other) is not made.backend.grader(made.tasks[0])


async def test_keys_that_look_alike_are_different_rows():
    """A bar inside a part of a composite key is no border between its parts."""
    labels = [{"box_id": "y|B1", "place": "x", "text": "1"}, {"box_id": "B1", "place": "x|y", "text": "2"}]
    made = suite(task({**WORLD, "tables": {"labels": labels}}))
    async with made.backend.open(made.tasks[0]) as sandbox:
        rows = (await sandbox.state()).tables["labels"]
    assert {key: row["text"] for key, row in rows.items()} == {"x|y\\|B1": "1", "x\\|y|B1": "2"}


NULLS = "CREATE TABLE things (id PRIMARY KEY, size INTEGER)"


@writes
async def add_thing(db: Records, thing_id: str | int | None = None) -> str:
    """Add a thing."""
    db.run("INSERT INTO things VALUES (?, 1)", thing_id)
    return "added"


@pytest.mark.parametrize(("first", "second"), [(None, None), (1, "1"), (None, "None")])
async def test_rows_that_no_key_tells_apart_are_refused(first, second):
    """Two rows whose keys read the same never hide each other: the agent's call is refused, and so is a world of them."""
    rows = [{"id": first, "size": 1}, {"id": second, "size": 2}]
    made = suite(task({"now": "2026-03-02", "tables": {"things": rows[:1]}}), schema=NULLS, tools=[add_thing])
    async with made.backend.open(made.tasks[0]) as sandbox:
        result = await sandbox.call("add_thing", {"thing_id": second})
        assert (result.is_error, result.text) == (
            True,
            f"The records do not allow it: two rows of things have the key {str(second)!r}.",
        )
        assert len((await sandbox.state()).tables["things"]) == 1
        assert not (await sandbox.call("add_thing", {"thing_id": "other"})).is_error
    both = suite(task({"now": "2026-03-02", "tables": {"things": rows}}), schema=NULLS, tools=[add_thing])
    with pytest.raises(SuiteError, match="two rows of things"):
        both.backend.image(both.tasks[0])
