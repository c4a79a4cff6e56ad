"""Simulated user and judge in whole runs: whose faults, whose time, whose money."""

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest
from scripted_llm import scripted_llm

from tbadapters import Limits, LLMJudge, LLMUser, Price, Retries, TbAdaptersError, Tool, evaluate
from tbadapters.core.errors import InvalidOption, ResumeMismatch
from tbadapters.core.grading import Verdict
from tbadapters.core.messages import Usage
from tbadapters.core.records import AttemptRecord
from tbadapters.core.users import UserReply

AGENTS = Path(__file__).parent.parent / "data" / "agents.py"
GOOD = f"{AGENTS}:good"
TUESDAY = {"decision": "answer", "message": "Tuesday suits me."}
THANKS = {"decision": "finished", "message": "Thank you."}
QUESTION = "Is the user told when to expect the call?"


@pytest.fixture
def run(desk, tmp_path):
    """Return evaluate() of one trial of one task of the desk suite."""

    async def run(agent, **options):
        quick = Retries(attempts=2, wait_initial=0, wait_max=0)
        defaults = {"suite": desk, "tasks": 1, "trials": 1, "out": tmp_path, "progress": "off", "retries": quick}
        return await evaluate(agent, **defaults | options)

    return run


class SlowUser:
    """A user that takes its time."""

    def __init__(self, seconds):
        self._seconds = seconds

    async def reply(self, said):
        await anyio.sleep(self._seconds)
        return UserReply("Tuesday.", "settled" if "booked" in said else None)

    async def approve(self, call):
        return True


@dataclass
class AskingGrader:
    """Passes a trial where the judge says yes of the agent's last message."""

    async def grade(self, evidence):
        judgement = await evidence.judge.ask(evidence.messages[-1].text, QUESTION)
        return Verdict(judgement.answer, float(judgement.answer), (), () if judgement.answer else (str(judgement),))


class JudgedBackend:
    """The desk's sandboxes, graded by a judge in the tasks that need one."""

    def __init__(self, backend):
        self._backend = backend

    def open(self, task):
        return self._backend.open(task)

    def grader(self, task):
        return AskingGrader() if task.needs_judge else self._backend.grader(task)


@pytest.fixture
def judged(desk):
    """The desk suite, its second task graded by a judge."""
    tasks = tuple(replace(task, needs_judge=number == 1) for number, task in enumerate(desk.tasks))
    return replace(desk, tasks=tasks, backend=JudgedBackend(desk.backend))


# -- the user -----------------------------------------------------------------------------------------------------


async def test_what_the_user_takes_is_not_the_agents(run):
    """Its tokens and its money are recorded apart, read back, and meet no limit of the agent."""
    async with scripted_llm(TUESDAY, THANKS) as (model, server):
        result = await run(
            GOOD, user=LLMUser(model), prices={"some-llm": Price(1.0, None, 2.0)}, limits=Limits(tokens=1)
        )
    (record,) = result.trials
    assert (record.passed, record.end_reason) == (True, "settled")
    assert record.usage == Usage()
    assert record.requests == ()
    assert record.user.usage == server.totals
    assert record.user.cost == pytest.approx((server.totals.input_tokens + 2 * server.totals.output_tokens) / 1e6)
    assert record.spent == record.user.cost
    assert AttemptRecord.from_dict(record.to_dict()) == record
    assert result.manifest["settings"]["user"] == "some-llm"


async def test_a_model_may_be_passed_as_it_is(run):
    """``user=`` takes a model without any wrapping."""
    async with scripted_llm(TUESDAY, THANKS) as (model, _):
        assert (await run(GOOD, user=model)).pass_at_1 == 1.0


async def test_a_record_from_before_there_were_models_reads_back(run):
    """A run folder that knows nothing of such spending is read: nothing was spent."""
    (record,) = (await run(GOOD)).trials
    data = record.to_dict()
    del data["user"], data["judge"]
    assert AttemptRecord.from_dict(data) == record
    assert (record.user.cost, record.judge.cost, record.spent) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("fault", "owner"), [("rate_limit", "provider"), ("server_error", "provider"), ("overloaded", "provider")]
)
async def test_an_endpoint_that_fails_the_user_is_never_the_agents_fault(run, fault, owner):
    """Further attempts are made; when they run out the trial has no verdict."""
    async with scripted_llm(TUESDAY, faults=lambda _: fault) as (model, server):
        result = await run(GOOD, user=LLMUser(model))
    (record,) = result.trials
    assert (record.passed, record.fault.owner) == (None, owner)
    assert "simulated user" in record.fault.message
    assert len(result.faulted) == 1
    assert len(server.requests) == 2


async def test_a_user_that_makes_things_up_is_never_the_agents_fault(run):
    """What no try mends ends the attempt as the user's."""
    async with scripted_llm({"decision": "answer", "message": "Friday, call 555-0199."}) as (model, _):
        (record,) = (await run(GOOD, user=LLMUser(model))).trials
    assert (record.passed, record.fault.owner, record.fault.code) == (None, "user", "objection")
    assert "555-0199" in record.fault.message
    assert record.user.usage.total_tokens > 0


async def test_the_users_time_is_not_the_agents(run):
    """An agent's deadline does not run while its user thinks."""
    (record,) = (await run(GOOD, user=lambda _: SlowUser(0.4), limits=Limits(seconds=0.3))).trials
    assert (record.passed, record.end_reason) == (True, "settled")


async def test_a_user_that_does_not_answer_is_at_fault(run):
    """It has a deadline of its own."""
    (record,) = (await run(GOOD, user=lambda _: SlowUser(60), limits=Limits(user_seconds=0.2))).trials
    assert (record.passed, record.fault.owner, record.fault.code) == (None, "user", "deadline")


async def test_a_fault_that_the_user_got_over_is_nobodys(run):
    """A user that speaks with its endpoint by itself and survives an error leaves the agent's record clean."""
    async with scripted_llm(TUESDAY, faults=lambda _: "server_error") as (model, _):

        class Stubborn(SlowUser):
            async def reply(self, said):
                with pytest.raises(Exception, match="500"):
                    await model.client.chat.completions.create(model="m", messages=[{"role": "user", "content": said}])
                return await super().reply(said)

        (record,) = (await run(GOOD, user=lambda _: Stubborn(0))).trials
    assert (record.passed, record.fault) == (True, None)


async def test_the_cost_ceiling_counts_every_role(run):
    """What the user spends is money, too; where its price is unknown the ceiling can't be watched."""
    async with scripted_llm(TUESDAY, THANKS) as (model, _):
        options = {"trials": 3, "max_cost": 0.001, "concurrency": 1, "user": LLMUser(model)}
        dear = await run(GOOD, prices={"some-llm": Price(1000.0, None, 1000.0)}, **options)
        assert dear.stopped.startswith("The cost ceiling of $0.001 is reached")
    async with scripted_llm(TUESDAY, THANKS) as (model, _):
        assert "no price is known of some-llm" in (await run(GOOD, **options | {"user": LLMUser(model)})).stopped


async def test_a_free_text_is_played_by_a_stand_in_that_is_named(run, desk):
    """Without a model the task's free text is handed over at the first question, and the reader is told."""
    brief = replace(desk.tasks[0].user, goal="", facts=(), context="You can be called on Tuesday.\nRules: Be brief.")
    suite = replace(desk, tasks=(replace(desk.tasks[0], user=brief),))
    result = await run(GOOD, suite=suite)
    assert [m.text for m in result.trials[0].messages][2] == "This is what I know. I can be called on Tuesday."
    assert result.pass_at_1 == 1.0
    assert any("not canonical" in note for note in result.notes)


@pytest.mark.parametrize("user", ["scriptd", "no-provider:x", 7])
async def test_a_user_that_is_none_is_refused(run, user):
    """The option is named before anything is run."""
    with pytest.raises(InvalidOption, match="user"):
        await run(GOOD, user=user)


# -- the judge ----------------------------------------------------------------------------------------------------


async def test_without_a_judge_the_tasks_that_need_one_are_not_planned(run, judged):
    """The run is named so, and its coverage counts what was planned."""
    result = await run(GOOD, suite=judged, tasks=None)
    assert len(result.trials) == 2
    assert (result.coverage.planned, result.coverage.valid) == (2, 2)
    assert any(note.startswith("Judge-free, 2 of 3 tasks") for note in result.notes)


async def test_a_run_of_nothing_but_judged_tasks_needs_a_judge(run, judged):
    """An empty run is refused with the option that mends it."""
    with pytest.raises(InvalidOption, match="need a judge: say judge="):
        await run(GOOD, suite=judged, tasks=[judged.tasks[1].id])


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_what_the_judge_decides_is_the_verdict_and_is_kept(run, judged, answer):
    """Votes and reasons are in the record, the decision in the verdict's reasons, the money apart."""
    async with scripted_llm({"reason": "It names Tuesday.", "answer": answer}) as (model, server):
        judge = LLMJudge(model, votes=3)
        result = await run(GOOD, suite=judged, tasks=None, judge=judge, prices={"some-llm": Price(1.0, None, 1.0)})
    assert result.notes == ()
    assert len(result.trials) == 3
    record = result.trial(judged.tasks[1].id, 0)
    (judgement,) = record.judgements
    assert (record.passed, judgement.answer) == (answer == "yes", answer == "yes")
    assert (judgement.question, judgement.votes, judgement.agreement) == (QUESTION, (answer == "yes",) * 3, 1.0)
    assert record.verdict.reasons == (() if answer == "yes" else (str(judgement),))
    assert record.judge.usage == server.totals
    assert record.judge.cost == pytest.approx(server.totals.total_tokens / 1e6)
    assert record.usage == Usage()
    assert result.manifest["settings"]["judge"] == "some-llm, 3 votes"


async def test_a_judge_that_fails_leaves_no_verdict(run, judged):
    """An answer that is none is the judge's fault."""
    async with scripted_llm("Yes!") as (model, _):
        result = await run(GOOD, suite=judged, tasks=[judged.tasks[1].id], judge=LLMJudge(model, votes=1, tries=2))
    (record,) = result.trials
    assert (record.passed, record.fault.owner, record.fault.code) == (None, "judge", "malformed")
    assert record.judge.usage.total_tokens > 0


async def test_a_run_is_resumed_with_its_own_judge(run, judged):
    """Another judge would be another measure."""
    async with scripted_llm({"reason": "So.", "answer": "yes"}) as (model, _):
        options = {"suite": judged, "tasks": None}
        first = await run(GOOD, judge=LLMJudge(model), **options)
        assert (await run(GOOD, judge=LLMJudge(model), resume=first.folder, **options)).pass_at_1 == 1.0
        with pytest.raises(ResumeMismatch, match="judge"):
            await run(GOOD, judge=LLMJudge(model, votes=1), resume=first.folder, **options)


# -- end-turn tools -----------------------------------------------------------------------------------------------


async def test_an_agent_that_swallows_its_end_has_ended(run, desk):
    """What it says and calls after that is not heard."""
    end = Tool("hand_over", "Hand over.", {"type": "object"}, ends_turn=True)

    async def stubborn(message, ctx):
        for name, arguments in (("hand_over", {}), ("set_status", {"ticket_id": "T-1", "status": "resolved"})):
            with suppress(TbAdaptersError):
                await ctx.call(name, **arguments)
        return "Which day?"

    (record,) = (await run(stubborn, suite=replace(desk, tool_list=(*desk.tool_list, end)))).trials
    assert (record.end_reason, record.fault, record.passed) == ("end_turn_tool", None, False)
    assert [call.name for call in record.tool_calls] == ["hand_over"]
    assert [message.role for message in record.messages] == ["user"]
