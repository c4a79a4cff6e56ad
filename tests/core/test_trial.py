"""One trial: deadlines, whose fault it is, and when another attempt is made."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from trial_stage import QUICK, Session, attempt_of, plan, raising, trial_of

from tbadapters import Ended, Limits, Said
from tbadapters.core.errors import AccessFault, ProviderFault, SandboxFault, UsageError
from tbadapters.core.grading import Verdict
from tbadapters.core.messages import Usage
from tbadapters.core.trial import run_trial


async def test_exception_of_the_agent_fails_the_trial(desk):
    """An unknown exception of the agent's code is the agent's: a failed trial, its state graded, no further attempt."""
    record, committed = await trial_of(desk, raising(KeyError("plan")))
    assert record.passed is False
    assert record.end_reason == "agent_error"
    assert record.fault.owner == "agent"
    assert "KeyError: 'plan'" in record.fault.message
    assert {e.kind for e in record.verdict.effects} == {"missing"}
    assert len(committed) == 1


@pytest.mark.parametrize("fault", [ProviderFault("down", code="server_error"), SandboxFault("gone")])
async def test_faults_of_the_infrastructure_make_another_attempt(desk, fault):
    """A fault that the agent does not own leads to new attempts, and then to a trial without verdict."""
    record, committed = await trial_of(desk, raising(fault))
    assert [r.attempt for r in committed] == [0, 1, 2]
    assert record is committed[-1]
    assert record.passed is None
    assert record.fault.owner == fault.owner


async def test_a_later_attempt_decides(desk):
    """After a provider's fault the next attempt starts from the clean backend and its verdict counts."""
    tries = []

    async def send(session, turn):
        await session.tools["set_status"].call({"ticket_id": "T-1", "status": "hold"})
        tries.append(turn)
        if len(tries) == 1:
            raise ProviderFault("429", code="rate_limit", retry_after=0.01)
        await session.tools["book_call"].call({"ticket_id": "T-1", "day": "Tuesday"})
        return Said("All done: your ticket is on hold and the call is booked for Tuesday.")

    record, committed = await trial_of(desk, Session(send))
    assert [r.passed for r in committed] == [None, True]
    assert record.attempt == 1
    assert len(record.tool_calls) == 2


async def test_a_provider_that_asks_for_too_long_a_wait(desk):
    """A trial is not held for hours: where the provider asks for more than may be waited, it ends without verdict."""
    fault = ProviderFault("429", code="rate_limit", retry_after=3600)
    record, committed = await trial_of(desk, raising(fault))
    assert len(committed) == 1
    assert record.passed is None


async def test_the_budget_is_asked_only_for_attempts_that_are_made(desk):
    """The last attempt that is allowed takes nothing from the run's retry budget."""
    asked = []

    async def commit(record):
        pass

    await run_trial(
        plan(desk, raising(ProviderFault("down"))), desk.tasks[0], 0,
        first=0, may_retry=lambda: asked.append(1) or True, commit=commit,
    )  # fmt: skip
    assert len(asked) == QUICK.attempts - 1


async def test_retries_are_told_as_events_not_in_logs(desk, capsys, caplog):
    """Another attempt writes nothing to standard output or to the logs."""
    await trial_of(desk, raising(ProviderFault("down")))
    out, err = capsys.readouterr()
    assert (out, err, caplog.text) == ("", "", "")


async def test_no_retry_without_budget(desk):
    """Where no further attempt may be made, the trial ends without verdict after the first."""
    committed = []

    async def commit(record):
        committed.append(record)

    record = await run_trial(
        plan(desk, raising(ProviderFault("down"))), desk.tasks[0], 0, first=4, may_retry=lambda: False, commit=commit
    )
    assert [r.attempt for r in committed] == [4]
    assert record.passed is None


async def test_access_faults_stop(desk):
    """Quota, key and model faults are committed and raised: another attempt can't help."""
    with pytest.raises(AccessFault, match="no key"):
        await trial_of(desk, raising(AccessFault("no key", code="authentication")))


async def test_usage_errors_pass(desk):
    """A mistake in what was asked for is no trial's outcome: it passes."""
    with pytest.raises(UsageError, match="the mend"):
        await attempt_of(desk, raising(UsageError("the mend")))


async def test_session_that_can_not_be_opened_or_closed(desk):
    """An exception while the session is opened or closed is the agent's."""

    async def send(session, turn):
        return Ended("done")

    for agent in (Session(send, opening=ValueError("no")), Session(send, closing=ValueError("no"))):
        record, _ = await attempt_of(desk, agent)
        assert record.passed is False
        assert record.fault.message == "ValueError: no"


async def test_backend_that_can_not_be_opened(desk):
    """A sandbox that does not open is the sandbox's fault; one that does not close can't undo the verdict."""

    class Backend:
        grader = desk.backend.grader

        def __init__(self, *, opens):
            self.opens = opens

        @asynccontextmanager
        async def open(self, task):
            if not self.opens:
                raise OSError("no database")
            async with desk.backend.open(task) as sandbox:
                yield sandbox
            raise OSError("does not close")

    async def send(session, turn):
        return Ended("done")

    record, fault = await attempt_of(replace(desk, backend=Backend(opens=False)), Session(send))
    assert record.passed is None
    assert fault.owner == "sandbox"
    record, _ = await attempt_of(replace(desk, backend=Backend(opens=True)), Session(send))
    assert record.passed is False


async def test_grading_has_a_deadline(desk):
    """A grader that hangs leaves a trial without verdict."""

    class Backend:
        open = desk.backend.open

        def grader(self, task):
            return self

        async def grade(self, evidence):
            await asyncio.sleep(60)

    async def send(session, turn):
        return Ended("done")

    record, fault = await attempt_of(
        replace(desk, backend=Backend()), Session(send), limits=Limits(grading_seconds=0.1)
    )
    assert record.passed is None
    assert fault.owner == "grader"


async def test_brief_holds_the_policy_and_nothing_of_the_task(desk):
    """The agent is told the policy and an opaque id; with instructions="none" not even the policy."""
    task = desk.tasks[0]
    brief = plan(desk, raising(KeyError())).brief(task)
    assert brief.instructions == desk.policy
    assert task.id not in repr(brief)
    assert brief.id != plan(desk, raising(KeyError())).brief(task).id
    assert plan(desk, raising(KeyError()), instructions="none").brief(task).instructions is None


async def test_phases_are_timed_and_usage_is_kept(desk):
    """The record has the wall time of each phase and the model requests, of a failed attempt too."""

    async def send(session, turn):
        session.recorder.request_starts()
        session.recorder.model_request("m", Usage(7, 0, 3, 0))
        raise ValueError

    record, _ = await attempt_of(desk, Session(send))
    assert set(record.seconds) == {"setup", "agent", "grading", "total"}
    assert record.usage == Usage(7, 0, 3, 0)


async def test_a_verdict_that_could_not_be_reached_is_tried_again(desk):
    """A verdict that neither passes nor fails is no outcome: another attempt is made."""
    verdicts = [Verdict(None, None, reasons=("The judge is undecided.",)), Verdict(True, 1.0)]

    class Backend:
        open = desk.backend.open

        def grader(self, task):
            return self

        async def grade(self, evidence):
            return verdicts.pop(0)

    async def send(session, turn):
        return Ended("done")

    record, committed = await trial_of(replace(desk, backend=Backend()), Session(send))
    assert [r.passed for r in committed] == [None, True]
    assert record.passed is True
