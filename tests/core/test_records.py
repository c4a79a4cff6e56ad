"""Whatever an agent, a tool or a grader hands over: the record holds it, and holds it as it was."""

import json
from dataclasses import replace

import pytest
from opened_attempt import opened, play_golden

from tbadapters import Limits
from tbadapters.core.agent import Ended
from tbadapters.core.errors import AgentFault, LimitReached
from tbadapters.core.records import AttemptRecord
from tbadapters.core.tools import ToolResult


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
    """Circular arguments, which have no end, are an error for the agent, and the record says why."""
    given = []
    given += [given, given]
    async with opened(desk) as attempt:
        assert (await attempt.call("get_ticket", {"ticket_id": given})).is_error
        record = attempt.record(None, {})
    assert "characters are not taken" in json.dumps(record.to_dict())


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
        await attempt.close(AgentFault("what \ud83d"))
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
