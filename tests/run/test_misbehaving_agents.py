"""Agents that hang, cling, leak, block, flood and raise: the run ends, and the other trials' verdicts are untouched.

Each of them does right on all tickets but the first.
"""

import asyncio
import json
import logging
import runpy
import threading
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters import Limits, Said, evaluate, load_result
from tbadapters.core.abandoned import abandoned_tasks
from tbadapters.core.errors import AgentFault
from tbadapters.core.events import LoopBlocked
from tbadapters.core.messages import Message
from tbadapters.core.plain import LONGEST

AGENTS = runpy.run_path(str(Path(__file__).parent.parent / "data" / "agents.py"))
good, CLAIM = AGENTS["good"], AGENTS["CLAIM"]
QUICK = Limits(seconds=1.0, grace=0.3)


def first(message, ctx):
    """Whether this is the first task's trial."""
    ctx.state.setdefault("first", "T-1 " in message)
    return ctx.state["first"]


@pytest.fixture
def run(desk, tmp_path):
    """Return what runs an agent; it says what became of the first task, and has seen that the others' all passed."""

    async def run(agent, *, passed=False, **options):
        options = {"suite": desk, "trials": 2, "limits": QUICK, "out": tmp_path, "progress": "off"} | options
        result = await asyncio.wait_for(evaluate(agent, **options), 55)
        others = [record.passed for record in result.trials if record.task != "desk/hold/1"]
        assert others == [True] * 2 * options["trials"]
        records = result.by_task["desk/hold/1"].trials
        assert [record.passed for record in records] == [passed] * options["trials"]
        return result, records

    return run


async def test_an_agent_that_hangs(run):
    """It fails at its deadline and gives its slot back: with one slot, the others have their turn."""

    async def hangs(message, ctx):
        if first(message, ctx):
            await asyncio.sleep(3600)
        return await good(message, ctx)

    result, records = await run(hangs, concurrency=1)
    assert {record.end_reason for record in records} == {"seconds"}
    assert result.abandoned == 0


async def test_an_agent_that_swallows_its_cancellation(run):
    """It is abandoned after its grace and counted; its slot is given back, and nobody waits for it."""
    release = asyncio.Event()

    async def clings(message, ctx):
        while first(message, ctx) and not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()
        return await good(message, ctx)

    result, records = await run(clings, concurrency=1)
    assert {record.end_reason for record in records} == {"seconds"}
    assert result.abandoned == len(abandoned_tasks()) == 2
    assert "Abandoned: 2 attempts" in " ".join(str(result).split())
    release.set()
    await asyncio.wait(abandoned_tasks(), timeout=5)
    assert not abandoned_tasks()


async def test_an_agent_whose_thread_can_not_be_stopped(run):
    """A sync tool of the agent's own that runs on is counted and told, and nobody waits for its thread."""
    release = threading.Event()

    async def threads(message, ctx):
        if first(message, ctx):
            await asyncio.to_thread(release.wait, 60)
        return await good(message, ctx)

    began = time.monotonic()
    try:
        result, records = await run(threads)
    finally:
        release.set()
    assert time.monotonic() - began < 30
    assert [record.threads_left for record in records] == [1, 1]
    assert result.disturbances.threads_left == 2
    assert "2 threads" in " ".join(str(result).split())
    assert json.loads((result.folder / "results.json").read_text())["disturbances"]["threads_left"] == 2


async def test_an_agent_that_leaves_tasks_behind(run):
    """Tasks that outlive their trial are cancelled, named and counted; one that clings reaches no backend any more."""
    refused, left, release = [], [], asyncio.Event()

    async def goes_on(ctx):
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.05)
            try:
                await ctx.call("set_status", ticket_id="T-1", status="resolved")
            except AgentFault as fault:
                refused.append(fault.code)

    async def ends(ctx):
        await asyncio.sleep(3600)

    async def leaks(message, ctx):
        if first(message, ctx) and "left" not in ctx.state:
            ctx.state["left"] = True
            left.extend(asyncio.get_running_loop().create_task(leaving(ctx)) for leaving in (goes_on, ends))
            return CLAIM
        return await good(message, ctx)

    before = asyncio.get_running_loop().get_task_factory()
    result, records = await run(leaks)
    await asyncio.sleep(0.2)
    assert [task.done() for task in left] == [False, True] * 2
    assert abandoned_tasks() == set(left[::2])
    release.set()
    await asyncio.wait(left, timeout=5)
    assert asyncio.get_running_loop().get_task_factory() is before
    assert [record.tasks_left for record in records] == [2, 2]
    assert result.disturbances.tasks_left == 4
    assert "4 tasks" in " ".join(str(result).split())
    notes = [entry.text for entry in records[0].transcript if entry.kind == "note"]
    assert any("goes_on" in note and "ends" in note for note in notes)
    assert refused
    assert set(refused) == {"late_call"}
    assert all(record.end_reason == "settled" for record in records)


async def test_an_agent_that_blocks_the_loop(run, monkeypatch, caplog):
    """A warning names the line and the trial; the others lose no time by it, though their deadline is shorter."""
    monkeypatch.setattr("tbadapters.core.runner.BLOCKED", 0.3)

    async def blocks(message, ctx):
        if first(message, ctx):
            spins(1.6)
            return CLAIM
        await asyncio.sleep(0.2)
        return await good(message, ctx)

    events = []
    with caplog.at_level(logging.WARNING, "tbadapters"):
        await run(blocks, on_event=events.append)
    told = [event for event in events if isinstance(event, LoopBlocked)]
    assert 1 <= len(told) <= 2
    for event in told:
        assert event.where.endswith("in spins")
        assert event.task.startswith("desk/hold/1 trial ")
    assert any("desk/hold/1 trial" in line.getMessage() and "in spins" in line.getMessage() for line in caplog.records)


def spins(seconds):
    """Compute for a while."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def test_an_agent_that_answers_200_megabytes(run):
    """The middle of an endless answer is left out, with a note; the run folder stays small."""
    endless = "lorem ipsum " * 17_000_000

    async def floods(message, ctx):
        return f"Hello. {endless}" if first(message, ctx) else await good(message, ctx)

    result, records = await run(floods, trials=1, limits=Limits(seconds=None, grace=1))
    assert sum(path.stat().st_size for path in result.folder.iterdir()) < 100 * LONGEST
    for record in records:
        assert all(len(message.text) < 1.1 * LONGEST for message in record.messages)
        assert any("too long" in entry.text for entry in record.transcript if entry.kind == "note")
    assert len((await to_thread.run_sync(load_result, result.folder)).trials) == 3


async def test_an_agent_that_sends_a_tool_200_megabytes(run):
    """Arguments without end are answered with an error and recorded shortened; the agent may go on."""
    endless = "lorem ipsum " * 17_000_000
    told = []

    async def floods(message, ctx):
        if first(message, ctx) and not told:
            result = await ctx.tools["book_call"].call({"ticket_id": "T-1", "day": endless})
            told.append(result.text)
        return await good(message, ctx)

    result, _ = await run(floods, passed=True, trials=1, limits=Limits(seconds=None, grace=1))
    assert "more than 1,000,000 characters" in told[0]
    assert sum(path.stat().st_size for path in result.folder.iterdir()) < 100 * LONGEST


async def test_an_agent_that_calls_a_tool_ten_thousand_times(run):
    """Without a limit it is let, and every call is in the record; with one it is stopped there."""

    async def calls(message, ctx):
        for _ in range(10_000 if first(message, ctx) and "called" not in ctx.state else 0):
            await ctx.call("get_ticket", ticket_id="T-1")
        ctx.state["called"] = True
        return await good(message, ctx)

    _, records = await run(calls, passed=True, trials=1, limits=Limits(seconds=None, tool_calls=None, grace=1))
    assert [len(record.tool_calls) for record in records] == [10_002]
    _, records = await run(calls, trials=1, limits=Limits(seconds=None, tool_calls=100, grace=1))
    assert {(record.end_reason, len(record.tool_calls)) for record in records} == {("tool_calls", 100)}


class Contract:
    """An agent by the contract, which goes wrong on the first task: in its teardown, or there without end."""

    framework = name = "contract"

    def __init__(self, teardown):
        self._teardown = teardown

    def check(self, tools):
        pass

    @asynccontextmanager
    async def open(self, brief, tools, recorder, limits):
        session = _Session({tool.name: tool for tool in tools})
        yield session
        if session.first:
            await self._teardown()


class _Session:
    def __init__(self, tools):
        self.tools, self.first, self._ticket = tools, False, None

    async def send(self, turn: Message):
        if self._ticket is None:
            self._ticket = turn.text.split("my ticket ")[1].split()[0]
            self.first = self._ticket == "T-1"
            return Said("On which day may we call you?")
        await self.tools["set_status"].call({"ticket_id": self._ticket, "status": "hold"})
        await self.tools["book_call"].call({"ticket_id": self._ticket, "day": "Tuesday"})
        return Said(CLAIM)


async def test_an_agent_that_raises_in_its_teardown(run):
    """What its teardown raises fails the trial, though all was done."""

    async def raises():
        raise ConnectionResetError("too late")

    _, records = await run(Contract(raises))
    assert {record.fault.message for record in records} == {"ConnectionResetError: too late"}


async def test_an_agent_whose_teardown_hangs(run):
    """A teardown without end meets the trial's deadline."""

    async def hangs():
        await asyncio.sleep(3600)

    _, records = await run(Contract(hangs))
    assert {record.end_reason for record in records} == {"seconds"}


class Odd(BaseException):
    """Raised by what knows no better."""


@pytest.mark.parametrize("error", [Odd("odd"), SystemExit(3), GeneratorExit()])
async def test_a_base_exception_of_the_agent(run, error):
    """Whatever the agent's code raises fails its trial and ends nothing else."""

    async def raises(message, ctx):
        if first(message, ctx):
            raise error
        return await good(message, ctx)

    _, records = await run(raises)
    assert {record.fault.owner for record in records} == {"agent"}
    assert type(error).__name__ in records[0].fault.message


@pytest.mark.parametrize("error", [Odd("odd"), SystemExit(3)])
async def test_a_base_exception_in_a_tool(run, desk, error):
    """Whatever a suite's tool raises is the sandbox's fault, so that nobody is graded by it, and ends nothing else."""
    backend = desk.backend

    class Broken:
        grader = backend.grader

        @asynccontextmanager
        async def open(self, task):
            async with backend.open(task) as sandbox:
                call = sandbox.call

                async def broken(name, arguments):
                    if arguments.get("ticket_id") == "T-1":
                        raise error
                    return await call(name, arguments)

                sandbox.call = broken
                yield sandbox

    _, records = await run(good, passed=None, suite=replace(desk, backend=Broken()))
    assert {record.fault.owner for record in records} == {"sandbox"}
    assert type(error).__name__ in records[0].fault.message
