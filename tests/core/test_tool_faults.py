from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from tbadapters import load_suite
from tbadapters.core.context import TrialRef
from tbadapters.core.errors import InvalidOption
from tbadapters.core.tool_faults import TOOL_FAULT_KINDS, FaultySandbox, ToolFaults, tool_faults_of

CHARGE = ("charge", {"customer_id": "C-1", "amount": 25})
LIST = ("list_charges", {"customer_id": "C-1"})
GOLD = ("set_tier", {"customer_id": "C-1", "tier": "gold"})


@pytest.fixture
def till():
    return load_suite(Path(__file__).parent.parent / "data" / "till.py")


class Forgetful:
    """A sandbox that can't tell what a call changed, as one of an MCP server can't."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.tools = sandbox.tools
        self.state = sandbox.state

    async def call(self, name, arguments):
        return replace(await self.sandbox.call(name, arguments), changes=None)


@pytest.fixture
def faulty(till):
    """Opens a sandbox of the first task whose calls meet what a script of kinds says."""

    @asynccontextmanager
    async def opened(*kinds, tells=True):
        task = till.tasks[0]
        script = iter(kinds)

        @asynccontextmanager
        async def another():
            async with till.backend.open(task) as sandbox:
                yield sandbox if tells else Forgetful(sandbox)

        class Scripted(ToolFaults):
            def drawn(self, trial, tool, number):
                return next(script, None)

        async with another() as sandbox:
            faults = Scripted(slow=1, slow_seconds=0.01)
            yield FaultySandbox(sandbox, faults, TrialRef(task.id, 0), another)

    return opened


async def charges(sandbox):
    return len((await sandbox.state()).tables["charges"])


async def test_a_transient_error_happens_before_anything(faulty):
    """A call that meets a transient error changes nothing, and works when it is made again."""
    async with faulty("transient_error") as sandbox:
        failed = await sandbox.call(*CHARGE)
        assert (failed.is_error, failed.changes, failed.fault) == (True, (), "transient_error")
        assert await charges(sandbox) == 0
        assert not (await sandbox.call(*CHARGE)).is_error
        assert await charges(sandbox) == 1


async def test_a_late_timeout_loses_the_answer_not_the_effect(faulty):
    """A call whose answer is lost is executed; the agent reads of a timeout and nothing of what was done."""
    async with faulty("late_timeout") as sandbox:
        lost = await sandbox.call(*CHARGE)
        assert (lost.is_error, lost.fault, lost.value) == (True, "late_timeout", None)
        assert "CH" not in lost.text
        assert {change.table for change in lost.changes} == {"charges"}
        assert await charges(sandbox) == 1


@pytest.mark.parametrize("tells", [True, False])
async def test_a_duplicate_delivery_executes_twice_and_answers_once(faulty, tells):
    """A call that changes something is executed twice and answered with the first answer; one that reads is let be."""
    async with faulty("duplicate_delivery", "duplicate_delivery", tells=tells) as sandbox:
        twice = await sandbox.call(*CHARGE)
        assert (twice.is_error, twice.fault) == (False, "duplicate_delivery")
        rows = (await sandbox.state()).tables["charges"]
        assert len(rows) == 2
        assert twice.value["charge_id"] == min(rows)
        if tells:
            assert {change.key for change in twice.changes} == set(rows)
        assert (await sandbox.call(*LIST)).fault is None


@pytest.mark.parametrize("tells", [True, False])
async def test_a_stale_read_answers_from_before_the_last_change(faulty, tells):
    """A read answers from the records before the last change: one that makes a difference is a fault, others are none."""
    async with faulty("stale_read", None, "stale_read", None, "stale_read", None, tells=tells) as sandbox:
        assert (await sandbox.call(*LIST)).fault is None
        await sandbox.call(*CHARGE)
        stale = await sandbox.call(*LIST)
        assert (stale.value or [], stale.fault) == ([], "stale_read")
        await sandbox.call(*GOLD)
        seen = await sandbox.call(*LIST)
        # Who can't tell what changed is one state behind for good: that of the beginning.
        assert seen.fault == (None if tells else "stale_read")
        assert len((await sandbox.call(*LIST)).value) == 1


@pytest.mark.parametrize("tells", [True, False])
async def test_a_call_that_writes_is_never_answered_stale(faulty, tells):
    """A call that changes something does so once and is answered as it is, whatever was drawn for reads."""
    async with faulty(None, "stale_read", tells=tells) as sandbox:
        await sandbox.call(*GOLD)
        result = await sandbox.call(*CHARGE)
        assert (result.fault, result.is_error) == (None, False)
        assert await charges(sandbox) == 1


async def test_a_slow_call_is_answered_late(faulty, monkeypatch):
    """A slow call is executed at once, and answered after the seconds that were asked for."""
    waited = []
    async with faulty("slow") as sandbox:

        async def sleep(seconds):
            waited.append((seconds, await charges(sandbox)))

        monkeypatch.setattr(anyio, "sleep", sleep)
        assert (await sandbox.call(*CHARGE)).fault == "slow"
    assert waited == [(0.01, 1)]


async def test_nothing_is_injected_where_nothing_is_drawn(faulty):
    """A call that meets no fault is the sandbox's own."""
    async with faulty() as sandbox:
        result = await sandbox.call(*CHARGE)
        assert (result.fault, result.is_error, result.value["amount"]) == (None, False, 25)
        assert [tool.name for tool in sandbox.tools] == ["list_charges", "charge", "set_tier"]


def test_draws_are_repeatable_and_apart():
    """What a call meets depends on seed, task, trial and number alone, at the rates that were asked for."""
    faults = ToolFaults(transient_error=0.2, late_timeout=0.1, stale_read=0.1, duplicate_delivery=0.1, slow=0.1)

    def drawn(faults, task="a", index=0):
        return [faults.drawn(TrialRef(task, index), "tool", number) for number in range(2000)]

    first = drawn(faults)
    assert first == drawn(replace(faults))
    assert first != drawn(faults, index=1)
    assert first != drawn(faults, task="b")
    assert first != drawn(replace(faults, seed=1))
    shares = {kind: first.count(kind) / 2000 for kind in (*TOOL_FAULT_KINDS, None)}
    expected = {kind: getattr(faults, kind) for kind in TOOL_FAULT_KINDS} | {None: 0.4}
    assert shares == pytest.approx(expected, abs=0.04)


def test_only_the_tools_that_are_named():
    """Faults meet the tools that are named, by patterns, and no others."""
    faults = ToolFaults(late_timeout=1, tools=("pay_*", "refund"))
    met = [tool for tool in ("pay_bill", "refund", "refunds", "look") if faults.drawn(TrialRef("a", 0), tool, 0)]
    assert met == ["pay_bill", "refund"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "0 together; above 0"),
        ({"slow": 1.1}, "slow=1.1"),
        ({"slow": -0.1}, "slow=-0.1"),
        ({"slow": True}, "slow=True"),
        ({"slow": "1"}, "slow='1'"),
        ({"slow": 0.6, "late_timeout": 0.6}, "1.2 together"),
        ({"slow": 0.5, "slow_seconds": 0}, "slow_seconds=0"),
        ({"slow": 0.5, "tools": "pay"}, "tools='pay'"),
        ({"slow": 0.5, "tools": ("",)}, "tools="),
    ],
)
def test_what_makes_no_sense_is_refused(given, sentence):
    """Rates, seconds and tools that make no sense are refused by name."""
    with pytest.raises(InvalidOption, match=sentence):
        ToolFaults(**given)


def test_as_text_and_as_data():
    """Faults are read from the command line's text, and from what a manifest keeps."""
    faults = tool_faults_of(" late_timeout=0.1, slow=0.2,slow_seconds=1.5, tools=pay_* refund,seed=3")
    assert faults == ToolFaults(late_timeout=0.1, slow=0.2, slow_seconds=1.5, tools=("pay_*", "refund"), seed=3)
    assert ToolFaults.from_dict(faults.to_dict()) == faults
    assert faults.note == "tool faults injected, by call of pay_* refund: late_timeout 0.1, slow 0.2 (seed 3)"


@pytest.mark.parametrize("text", ["", "late_timeout", "lost=0.1", "slow=often", "seed=1.5,slow=0.1"])
def test_text_that_cannot_be_read_is_refused(text):
    """A text that can't be read is refused, never half of it used."""
    with pytest.raises(InvalidOption):
        tool_faults_of(text)
