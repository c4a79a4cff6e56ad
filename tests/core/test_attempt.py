"""One attempt: what an agent may do in it, what stops it, what is recorded."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest
from opened_attempt import CLAIM, opened, play_golden

from tbadapters import Limits
from tbadapters.core.agent import ApprovalRequest, Approvals, Ended, NeedsApproval, Said
from tbadapters.core.cost import Price
from tbadapters.core.errors import AgentFault, LimitReached, ProviderFault, SandboxFault, UserFault
from tbadapters.core.messages import Message, Usage
from tbadapters.core.records import AttemptRecord
from tbadapters.core.tools import ToolResult
from tbadapters.core.users import ScriptedUser


async def test_golden_calls_and_claim_pass(desk):
    """An attempt that leaves the expected records and says the required fact passes and is settled."""
    async with opened(desk) as attempt:
        assert await play_golden(attempt) is None
        record = attempt.record(await attempt.graded(), {"total": 1.0})
    assert record.passed is True
    assert record.end_reason == "settled"
    assert [call.name for call in record.tool_calls] == ["set_status", "book_call"]
    assert record.looked_clean


async def test_record_survives_json(desk):
    """A record read back from its JSON-like form is the same record, but for the data of tool results."""
    async with opened(desk) as attempt:
        attempt.request_starts()
        attempt.model_request("m", Usage(10, 2, 3, 1), actor="helper")
        attempt.note("a remark")
        await attempt.call("set_status", {"ticket_id": "T-1", "status": "resolved"})
        await attempt.answer(CLAIM)
        record = attempt.record(await attempt.graded(), {"total": 1.0})
    assert record.verdict.effects
    assert AttemptRecord.from_dict(record.to_dict()).to_dict() == record.to_dict()
    assert record.usage_by_actor == {"helper": Usage(10, 2, 3, 1)}


async def test_polite_lie_fails_with_missing_effects(desk):
    """A claim without action ends cleanly and fails, with the golden actions named whose effects are missing."""
    async with opened(desk) as attempt:
        assert await attempt.answer(CLAIM) is None
        record = attempt.record(await attempt.graded(), {})
    assert record.passed is False
    assert record.end_reason == "settled"
    assert {(e.kind, e.golden) for e in record.verdict.effects} == {("missing", 0), ("missing", 1)}
    assert not record.looked_clean


async def test_recoverable_tool_errors_are_answers(desk):
    """An unknown tool, invalid arguments and a tool's own error are results that the agent may recover from."""
    async with opened(desk) as attempt:
        unknown = await attempt.call("set_state", {})
        invalid = await attempt.call("set_status", {"ticket_id": "T-1", "status": "closed"})
        own = await attempt.call("get_ticket", {"ticket_id": "T-99"})
        await play_golden(attempt)
        record = attempt.record(await attempt.graded(), {})
    assert all(result.is_error for result in (unknown, invalid, own))
    assert "set_status" in unknown.text
    assert "closed" in invalid.text
    assert "T-99" in own.text
    assert record.passed is True
    assert len(record.tool_calls) == 5


async def test_tool_call_limit_stops(desk):
    """The call above the limit raises, stays raised, and fails the trial with its state graded."""
    async with opened(desk, limits=Limits(tool_calls=2)) as attempt:
        await play_golden(attempt)
        for _ in range(2):
            with pytest.raises(LimitReached):
                await attempt.call("get_ticket", {"ticket_id": "T-1"})
        assert attempt.stopped.is_set()
        record = attempt.record(await attempt.graded(), {})
    assert record.passed is False
    assert record.verdict.effects == ()
    assert record.end_reason == "tool_calls"
    assert len(record.tool_calls) == 2


async def test_model_request_limit_stops_before_the_request(desk):
    """Exactly as many model requests as allowed can be started."""
    async with opened(desk, limits=Limits(model_requests=2)) as attempt:
        for _ in range(2):
            attempt.request_starts()
            attempt.model_request("m", Usage(1, 0, 1, 0))
        with pytest.raises(LimitReached):
            attempt.request_starts()
        assert attempt.fault.code == "model_requests"


@pytest.mark.parametrize(
    ("limits", "prices", "code"),
    [(Limits(tokens=100), {}, "tokens"), (Limits(cost=0.001), {"m": Price(10.0, 1.0, 20.0)}, "cost")],
)
async def test_tokens_and_cost_stop(desk, limits, prices, code):
    """Tokens or cost above their limit stop the attempt."""
    async with opened(desk, limits=limits, prices=prices) as attempt:
        attempt.request_starts()
        attempt.model_request("m", Usage(90, 0, 10, 0))
        assert (attempt.fault is None) == (code == "tokens")
        attempt.model_request("m", Usage(1, 0, 0, 0))
        assert attempt.fault.code == code
        with pytest.raises(LimitReached):
            await attempt.call("get_ticket", {"ticket_id": "T-1"})


async def test_user_turn_limit(desk):
    """The user's turn above the limit is never said."""
    async with opened(desk, limits=Limits(user_turns=1)) as attempt:
        with pytest.raises(LimitReached):
            await attempt.answer(Said("On which day may we call you?"))
        record = attempt.record(await attempt.graded(), {})
    assert record.end_reason == "user_turns"
    assert record.passed is False


async def test_agent_ends(desk):
    """An agent may end the conversation itself; it is graded all the same."""
    async with opened(desk) as attempt:
        await attempt.call("set_status", {"ticket_id": "T-1", "status": "hold"})
        await attempt.call("book_call", {"ticket_id": "T-1", "day": "Tuesday"})
        assert await attempt.answer(Ended("end_turn", "Done: Tuesday.")) is None
        record = attempt.record(await attempt.graded(), {})
    assert record.end_reason == "agent_ended"
    assert record.passed is True


async def test_approvals_are_answered_and_recorded(desk):
    """Approval requests are answered by the user, and each decision is in the transcript."""
    task = desk.tasks[0]
    user = ScriptedUser(task.user, approvals=lambda call: call.tool == "book_call")
    async with opened(desk, user=user) as attempt:
        asked = NeedsApproval((ApprovalRequest("1", "book_call", {}), ApprovalRequest("2", "set_status", {})))
        assert await attempt.answer(asked) == Approvals({"1": True, "2": False})
        record = attempt.record(None, {})
    assert [e.text for e in record.transcript if e.kind == "approval"] == ["Approved: book_call", "Denied: set_status"]


async def test_late_calls_do_not_reach_the_backend(desk):
    """After the end a call raises, and the graded state stays what it was."""
    async with opened(desk) as attempt:
        await play_golden(attempt)
        await attempt.close(None)
        with pytest.raises(AgentFault, match="too late"):
            await attempt.call("set_status", {"ticket_id": "T-1", "status": "resolved"})
        assert (await attempt.graded()).passed is True


async def test_sandbox_death_leaves_no_verdict(desk):
    """When the backend dies, the fault is the sandbox's and there is no verdict."""

    class Dying:
        def __init__(self, sandbox):
            self.tools, self.state = sandbox.tools, sandbox.state

        async def call(self, name, arguments):
            raise OSError("the database is gone")

    async with opened(desk, sandbox_of=Dying) as attempt:
        with pytest.raises(SandboxFault, match="the database is gone"):
            await attempt.call("get_ticket", {"ticket_id": "T-1"})
        assert await attempt.graded() is None
        record = attempt.record(None, {})
    assert record.passed is None
    assert record.fault.owner == "sandbox"
    assert record.end_reason == "fault"


async def test_grader_death_leaves_no_verdict(desk):
    """When grading fails, the fault is the grader's and there is no verdict."""

    class Dying:
        async def grade(self, evidence):
            raise ZeroDivisionError

    async with opened(desk) as attempt:
        attempt._parties = replace(attempt._parties, grader=Dying())
        assert await attempt.graded() is None
        assert attempt.fault.owner == "grader"


async def test_state_that_can_not_be_read(desk):
    """When the final state can't be read, the fault is the sandbox's."""

    class Blind:
        def __init__(self, sandbox):
            self.tools = sandbox.tools

        async def state(self):
            raise OSError("unreadable")

    async with opened(desk, sandbox_of=Blind) as attempt:
        assert await attempt.graded() is None
        assert attempt.fault.owner == "sandbox"


async def test_broken_user_is_the_users_fault(desk):
    """An exception in the simulated user is the user's fault."""

    class Broken:
        async def reply(self, said):
            raise KeyError(said)

        async def approve(self, call):
            raise KeyError(call)

    async with opened(desk, user=Broken()) as attempt:
        with pytest.raises(UserFault):
            await attempt.answer(Said("Hello"))
        with pytest.raises(UserFault):
            await attempt.answer(NeedsApproval((ApprovalRequest("1", "x", {}),)))


async def test_parallel_calls_are_taken_one_at_a_time(desk):
    """Overlapping calls never overlap in the backend."""
    inside = most = 0

    class Slow:
        def __init__(self, sandbox):
            self.tools, self.state = sandbox.tools, sandbox.state

        async def call(self, name, arguments):
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await anyio.lowlevel.checkpoint()
            inside -= 1
            return ToolResult("ok")

    async with opened(desk, sandbox_of=Slow) as attempt, anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(attempt.call, "get_ticket", {"ticket_id": "T-1"})
    assert most == 1
    assert [call.index for call in attempt.record(None, {}).tool_calls] == list(range(5))


async def test_sync_calls_on_the_loop_are_refused(desk):
    """A sync call on the loop's own thread would wait for itself: it raises instead."""
    async with opened(desk) as attempt:
        with pytest.raises(RuntimeError, match="await"):
            attempt.call_sync("get_ticket", {"ticket_id": "T-1"})
        result = await anyio.to_thread.run_sync(attempt.call_sync, "get_ticket", {"ticket_id": "T-1"})
    assert result.value["status"] == "open"


async def test_sync_calls_do_not_wait_for_a_blocked_loop(desk, monkeypatch):
    """A loop that waits for the thread that waits for it is not waited for: the call says what blocks it."""
    monkeypatch.setattr("tbadapters.core.thread_door.BLOCKED_SECONDS", 0.1)
    async with opened(desk) as attempt:
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(attempt.call_sync, "get_ticket", {"ticket_id": "T-1"})
            with pytest.raises(AgentFault, match="ainvoke"):
                waiting.result(timeout=5)  # on the loop's thread: the loop is blocked
        assert (await attempt.call("get_ticket", {"ticket_id": "T-1"})).value["status"] == "open"


async def test_cost_is_unknown_rather_than_zero(desk):
    """Without a price or without usage the cost is None."""
    async with opened(desk, prices={"m": Price(10.0, 1.0, 20.0)}) as attempt:
        assert attempt.cost is None
        attempt.model_request("m", Usage(1_000_000, 0, 0, 0))
        assert attempt.cost == pytest.approx(10.0)
        attempt.model_request("nobody-knows-this-model", Usage(1, 0, 0, 0))
        assert attempt.cost is None


async def test_provider_faults_are_recorded_with_the_request(desk):
    """A model request that failed is in the record, with its fault in one line."""
    async with opened(desk) as attempt:
        attempt.request_starts()
        assert attempt.waiting_seconds() >= 0
        attempt.model_request("m", None, fault=ProviderFault("429 slow down", code="rate_limit"))
        assert attempt.waiting_seconds() == 0
        record = attempt.record(None, {})
    assert record.requests[0].fault == "429 slow down"
    assert record.messages == (Message(desk.tasks[0].opening),)


class SlowCalls:
    """A sandbox whose calls take a while, or hang even when they are cancelled."""

    def __init__(self, sandbox, *, seconds, hanging=False):
        self.tools, self.state = sandbox.tools, sandbox.state
        self.began, self.ended = anyio.Event(), anyio.Event()
        self._seconds, self._hanging = seconds, hanging

    async def call(self, name, arguments):
        self.began.set()
        with anyio.CancelScope(shield=self._hanging):
            await anyio.sleep(self._seconds)
        self.ended.set()
        return ToolResult("ok")


@pytest.mark.parametrize(
    ("seconds", "hanging", "ended", "fault"),
    [(0.1, False, True, None), (60, False, False, None), (1.0, True, False, "hanging_call")],
)
async def test_closing_waits_for_the_call_under_way(desk, seconds, hanging, ended, fault):
    """A call from a thread ends, or is cancelled, before the state is read; one that does neither leaves no verdict."""
    slow = None

    def slowed(sandbox):
        nonlocal slow
        slow = SlowCalls(sandbox, seconds=seconds, hanging=hanging)
        return slow

    def call_from_thread(attempt):
        with suppress(AgentFault):
            attempt.call_sync("get_ticket", {"ticket_id": "T-1"})

    async with opened(desk, limits=Limits(grace=0.2), sandbox_of=slowed) as attempt, anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, call_from_thread, attempt)
        await slow.began.wait()
        await attempt.close()
        assert slow.ended.is_set() == ended
        verdict = await attempt.graded()
        record = attempt.record(verdict, {})
    assert (verdict is None) == (fault is not None)
    assert (attempt.fault.code if attempt.fault else None) == fault
    assert len(record.tool_calls) == ended
    assert any("cancelled" in entry.text for entry in record.transcript) == (seconds == 60)


@pytest.mark.parametrize("calls", [(), (ApprovalRequest("1", "book_call", {}),)])
async def test_approvals_count_as_the_calls_that_they_are_for(desk, calls):
    """A session that asks for approvals for ever is stopped by the limit of tool calls, one asking for none too."""
    async with opened(desk, limits=Limits(tool_calls=3)) as attempt:
        for _ in range(3):
            await attempt.answer(NeedsApproval(calls))
        with pytest.raises(LimitReached):
            await attempt.answer(NeedsApproval(calls))
        assert attempt.fault.code == "tool_calls"
