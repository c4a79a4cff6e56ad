"""One attempt: what an agent may do in it, what stops it, what is recorded."""

import json
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from tbadapters import Limits
from tbadapters.core.agent import ApprovalRequest, Approvals, Ended, NeedsApproval, Said
from tbadapters.core.attempt import Attempt, Parties
from tbadapters.core.context import TrialRef
from tbadapters.core.conversation import conversation_for
from tbadapters.core.cost import Price
from tbadapters.core.errors import AgentFault, LimitReached, ProviderFault, SandboxFault, UserFault
from tbadapters.core.messages import Message, Usage
from tbadapters.core.records import AttemptRecord
from tbadapters.core.tools import ToolResult
from tbadapters.core.users import ScriptedUser

CLAIM = Said("Your ticket is on hold and the call is booked for Tuesday.")


@asynccontextmanager
async def opened(suite, *, limits=None, sandbox_of=lambda sandbox: sandbox, user=None, prices=None):
    """Yield a started attempt at the suite's first task."""
    task = suite.tasks[0]
    async with suite.backend.open(task) as sandbox:
        user = user or ScriptedUser(task.user)
        conversation = conversation_for("default", task, user)
        initial = await sandbox.state()
        parties = Parties(sandbox_of(sandbox), initial, suite.backend.grader(task), conversation, user)
        attempt = Attempt(TrialRef(task.id, 0), parties, limits or Limits(), number=0, prices=prices or {})
        attempt.start()
        yield attempt


async def play_golden(attempt):
    """Do what the task expects."""
    await attempt.call("set_status", {"ticket_id": "T-1", "status": "hold"})
    await attempt.call("book_call", {"ticket_id": "T-1", "day": "Tuesday"})
    return await attempt.answer(CLAIM)


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
        attempt.close(None)
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


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ({"ticket_id": "\ud800"}, {"ticket_id": "\ufffd"}),
        ({"ticket_id": {(1, 2): 3}}, {"ticket_id": {"(1, 2)": 3}}),
        ({"ticket_id": float("inf")}, {"ticket_id": "inf"}),
        ({"ticket_id": object}, {"ticket_id": "<class 'object'>"}),
        ([1], {"": [1]}),
    ],
)
async def test_any_arguments_can_be_recorded(desk, given, recorded):
    """Arguments that JSON can't hold are an error for the agent and stay readable in the record."""
    async with opened(desk) as attempt:
        assert (await attempt.call("get_ticket", given)).is_error
        record = attempt.record(await attempt.graded(), {})
    assert record.tool_calls[0].arguments == recorded
    assert json.dumps(record.to_dict(), ensure_ascii=False, allow_nan=False).encode()


async def test_a_list_that_contains_itself_can_be_recorded(desk):
    """Circular arguments are an error for the agent, and recorded as far as they go."""
    given = []
    given += [given, given]
    async with opened(desk) as attempt:
        assert (await attempt.call("get_ticket", {"ticket_id": given})).is_error
        record = attempt.record(None, {})
    assert "..." in json.dumps(record.to_dict())


async def test_arguments_are_evidence(desk):
    """What an agent does to its arguments after a call, or a tool to its own, does not change the record."""

    class Careless:
        def __init__(self, sandbox):
            self.tools, self.state = sandbox.tools, sandbox.state

        async def call(self, name, arguments):
            arguments["ticket_id"] = "changed by the tool"
            return ToolResult("ok")

    given = {"ticket_id": "T-1"}
    async with opened(desk, sandbox_of=Careless) as attempt:
        await attempt.call("get_ticket", given)
        given["ticket_id"] = "changed by the agent"
        record = attempt.record(None, {})
    assert record.tool_calls[0].arguments == {"ticket_id": "T-1"}


async def test_texts_with_lone_surrogates_are_recorded(desk):
    """Lone surrogates in answers, notes and faults are replaced; a pair of them is the character that it means."""
    async with opened(desk) as attempt:
        attempt.note("\ud83d")
        await attempt.answer(Ended("\ud83d", "Done \ud83d\ude00."))
        attempt.close(AgentFault("what \ud83d"))
        record = attempt.record(await attempt.graded(), {})
    assert json.dumps(record.to_dict(), ensure_ascii=False).encode()
    assert [e.text for e in record.transcript if e.kind == "agent"] == ["Done \U0001f600."]
    assert record.fault.message == "what \ufffd"


async def test_a_record_that_can_not_be_made_is_a_fault(desk):
    """A verdict that is none leaves an attempt without verdict, recorded as the harness's fault; nothing is raised."""
    async with opened(desk) as attempt:
        record = attempt.record(object(), {"total": 1.0})
    assert record.passed is None
    assert (record.fault.owner, record.fault.code) == ("harness", "unrecordable")
    assert AttemptRecord.from_dict(record.to_dict()) == record


async def test_a_verdict_that_is_none_is_the_graders_fault(desk):
    """A grader that answers something else than a verdict, for an agent that failed, is at fault itself."""

    class Odd:
        async def grade(self, evidence):
            return True

    async with opened(desk, limits=Limits(tool_calls=1)) as attempt:
        attempt._parties = replace(attempt._parties, grader=Odd())
        with pytest.raises(LimitReached):
            await play_golden(attempt)
        assert await attempt.graded() is None
        assert attempt.fault.owner == "grader"
