"""Scripted models pass the trials that they are to pass, and fail the others by the flaw that was drawn."""

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from policy_agent import policy_agent

from tbadapters import Limits, evaluate, load_suite
from tbadapters.core.context import TrialRef
from tbadapters.core.errors import SuiteError, UnknownName
from tbadapters.core.grading import EndState, Expectation, GoldenAction, Ref
from tbadapters.core.speech import CLAIMS, claim, read
from tbadapters.core.suite import Task, UserBrief, UserFact
from tbadapters.testing import (
    FLAWS,
    Call,
    GoldenPolicy,
    Injected,
    ModelTurn,
    OfferedTool,
    Outcomes,
    Script,
    TurnMessage,
)
from tbadapters.testing.position import Done
from tbadapters.testing.scripts import final_text, questions

LIMITS = Limits(model_requests=20, tool_calls=20)
EXPECTED = {
    "wrong_value": {"wrong_value"},
    "missing": {"missing"},
    "extra": {"unexpected"},
    "lie": {"missing"},
    "loop": {"missing"},
}


@pytest.fixture(scope="module")
def bank():
    return load_suite("neobank")


def offered(suite, *names):
    return tuple(
        OfferedTool(t.name, t.description, t.parameters) for t in suite.tool_list if not names or t.name in names
    )


def turn(task, tools, *messages, index=0, trial=True, **options):
    ref = TrialRef(task.id, index) if trial else None
    said = (TurnMessage("system", "policy"), TurnMessage("user", task.opening), *messages)
    return ModelTurn("m", said, tools, trial=ref, **options)


def talk(*texts):
    """Agent's and user's texts in turn."""
    return [TurnMessage("agent" if n % 2 == 0 else "user", text) for n, text in enumerate(texts)]


def acted(call, result):
    return [TurnMessage("agent", "", (call,)), TurnMessage("tool", result, (), call.id)]


async def run(agent, suite, tmp_path, trials=4):
    return await evaluate(agent, suite=suite, trials=trials, limits=LIMITS, progress="off", out=tmp_path)


# Outcomes


def test_outcomes_depend_on_seed_task_and_index_alone():
    """The same seed draws the same flaw for a trial, whatever was drawn before; another seed draws others."""
    one, same, other = Outcomes(seed=1), Outcomes(seed=1), Outcomes(seed=2)
    forward = [one.flaw(f"t/{n % 5}", n) for n in range(200)]
    backward = [same.flaw(f"t/{n % 5}", n) for n in reversed(range(200))]
    assert forward == backward[::-1]
    assert forward != [other.flaw(f"t/{n % 5}", n) for n in range(200)]


def test_outcomes_are_as_frequent_as_asked():
    """Rates of 0 and 1 are exact, others are met, each flaw has its share, and a task may have its own rate."""
    draw = lambda outcomes, task="t": [outcomes.flaw(task, n) for n in range(3000)]  # noqa: E731
    assert set(draw(Outcomes(pass_rate=1))) == {None}
    assert None not in draw(Outcomes(pass_rate=0))
    drawn = draw(Outcomes(pass_rate=0.7, by_task={"easy": 1.0}))
    assert 0.67 < drawn.count(None) / 3000 < 0.73
    assert all(0.04 < drawn.count(flaw) / 3000 < 0.08 for flaw in FLAWS)
    assert set(draw(Outcomes(pass_rate=0.7, by_task={"easy": 1.0}), "easy")) == {None}


@pytest.mark.parametrize("options", [{"pass_rate": 1.1}, {"by_task": {"t": -1}}, {"flaws": ()}, {"flaws": ("typo",)}])
def test_outcomes_that_make_no_sense(options):
    """A rate that is no probability and a flaw that does not exist are refused."""
    with pytest.raises(ValueError, match="Outcomes"):
        Outcomes(**options)


# Whole trials


async def test_right_trials_pass(desk, tmp_path):
    """Played right, every trial passes, and ends by the user's word."""
    result = await run(policy_agent(GoldenPolicy(desk)), desk, tmp_path)
    assert result.pass_at_1 == 1.0
    assert {record.end_reason for record in result.records} == {"settled"}


@pytest.mark.parametrize("flaw", FLAWS)
async def test_each_flaw_fails_in_its_own_way(desk, tmp_path, flaw):
    """A trial with a flaw fails with the flaw's class of effect, at the call or action that was made wrong."""
    policy = GoldenPolicy(desk, outcomes=Outcomes(pass_rate=0, flaws=(flaw,)))
    result = await run(policy_agent(policy), desk, tmp_path)
    for record in result.records:
        injected = policy.injected(record.task, record.index)
        effects = record.verdict.effects
        assert (injected.flaw, injected.drawn, record.passed) == (flaw, flaw, False)
        assert {effect.kind for effect in effects} == EXPECTED[flaw]
        if flaw in ("wrong_value", "extra"):
            call = record.tool_calls[injected.step]
            assert call.name == injected.tool
            assert injected.step in {effect.caused_by for effect in effects}
        if flaw == "wrong_value":
            assert call.arguments[injected.argument] == injected.wrong != injected.right
        if flaw == "missing":
            assert injected.golden in {effect.golden for effect in effects}
            assert injected.tool not in {call.name for call in record.tool_calls}
        assert record.end_reason == ("settled" if flaw != "loop" else "tool_calls")
        if flaw in ("lie", "loop"):
            assert not any(call.wrote for call in record.tool_calls)
    if flaw == "wrong_value":
        assert len({policy.injected(r.task, r.index).argument for r in result.records}) > 1


async def test_verdicts_are_the_injected_ones_trial_by_trial(bank, tmp_path):
    """Over the built-in bank, with refusals and escalations, each trial's verdict is the one that was drawn."""
    suite = bank.select(30)
    policy = GoldenPolicy(suite, outcomes=Outcomes(pass_rate=0.5, seed=11))
    result = await run(policy_agent(policy), suite, tmp_path, trials=2)
    drawn = [policy.outcomes.flaw(r.task, r.index) is None for r in result.records]
    assert [record.passed for record in result.records] == drawn
    assert 15 < sum(drawn) < 45


async def test_without_a_header_trials_count_by_arrival(desk, tmp_path):
    """An agent that does not say which trial it runs is told by the opening; outcomes come in the order of arrival."""
    policy = GoldenPolicy(desk, outcomes=Outcomes(pass_rate=0.5, seed=4))
    result = await run(policy_agent(policy, trial=False), desk, tmp_path, trials=6)
    for task in desk.tasks:
        passed = sorted(r.passed for r in result.records if r.task == task.id)
        assert passed == sorted(policy.outcomes.flaw(task.id, n) is None for n in range(6))


# Single turns


def test_asks_then_acts_then_claims(desk):
    """It asks for what only the user knows, makes the golden calls one by one, and claims the end with the facts."""
    policy, task, tools = GoldenPolicy(desk), desk.tasks[0], offered(desk)
    question = policy.respond(turn(task, tools)).text
    assert question == "Could you tell me the day of the call?"
    said = talk(question, "Tuesday suits me.")
    expected = [
        ("set_status", {"ticket_id": "T-1", "status": "hold"}),
        ("book_call", {"ticket_id": "T-1", "day": "Tuesday"}),
    ]
    for name, arguments in expected:
        (call,) = policy.respond(turn(task, tools, *said)).calls
        assert (call.name, call.arguments) == (name, arguments)
        said += acted(call, "{}")
    final = policy.respond(turn(task, tools, *said)).text
    assert "Tuesday" in final
    assert policy.respond(turn(task, tools, *said, *talk(final, "Thanks."))).text == final


def test_same_turn_same_reply(desk):
    """A policy keeps no state: the same turn is answered the same, whatever came between."""
    policy = GoldenPolicy(desk, outcomes=Outcomes(pass_rate=0.3))
    turns = [
        turn(task, offered(desk), *talk("Could you tell me the day of the call?", "x"), index=n)
        for task in desk.tasks
        for n in range(6)
    ]
    assert [policy.respond(t) for t in turns] == [policy.respond(t) for t in reversed(turns)][::-1]


def test_malformed_call_is_made_again(desk):
    """A call whose arguments did not arrive as JSON was not made, and is made again under another id."""
    policy, task = GoldenPolicy(desk), desk.tasks[0]
    said = talk(*questions(task), "Tuesday.")
    (call,) = policy.respond(turn(task, offered(desk), *said)).calls
    broken = Call(call.name, {}, call.id, malformed=True)
    (again,) = policy.respond(turn(task, offered(desk), *said, *acted(broken, "Invalid JSON."))).calls
    assert (again.name, again.arguments) == (call.name, call.arguments)
    assert again.id != call.id


def reading_task(suite):
    golden = GoldenPolicy(suite)
    reading = {tool.name for tool in suite.tool_list if tool.writes is False}
    for task in suite.tasks:
        steps = golden.script(task.id, 0).steps
        if len(steps) > 1 and {steps[0].tool, steps[1].tool} <= reading and not task.needs_asking:
            return task
    raise AssertionError("no task begins with two readings")


def test_readings_are_made_at_once_where_they_may(bank):
    """Reading calls that do not need one another are made together, one by one where the agent forbids it."""
    suite = bank
    task = reading_task(suite)
    together = GoldenPolicy(suite).respond(turn(task, offered(suite))).calls
    assert len(together) > 1
    assert len({call.id for call in together}) == len(together)
    assert GoldenPolicy(suite).respond(turn(task, offered(suite), parallel=False)).calls == together[:1]
    assert GoldenPolicy(suite, parallel=False).respond(turn(task, offered(suite))).calls == together[:1]


def test_a_reading_waits_for_what_it_needs(desk):
    """A reading call that takes a value out of another one's result is made after it."""
    first = GoldenAction("get_ticket", {"ticket_id": "T-1"})
    second = GoldenAction("get_ticket", {"ticket_id": Ref(0, "ticket_id")})
    suite = bare(desk, (first, second))
    policy, task = GoldenPolicy(suite), suite.tasks[0]
    said = talk(*questions(task), "Tuesday.")
    (call,) = policy.respond(turn(task, offered(desk), *said)).calls
    (other,) = policy.respond(turn(task, offered(desk), *said, *acted(call, '{"ticket_id": "T-9"}'))).calls
    assert (call.arguments, other.arguments) == ({"ticket_id": "T-1"}, {"ticket_id": "T-9"})


def test_refs_are_read_from_the_conversation():
    """A ``Ref`` takes its value out of an earlier result, also inside lists, and makes something up where it can't."""
    arguments = {
        "to": Ref(0, "rows.1.id"),
        "all": [Ref(0, "rows"), {"note": Ref(1, "")}],
        "none": Ref(0, "none"),
        "lost": Ref(0, "x.y"),
        "early": Ref(2, ""),
    }
    step = GoldenAction("move", arguments)
    script = Script((), (GoldenAction("a", {}), GoldenAction("b", {}), step), "")
    done = [Done("a", '{"rows": [{"id": 1}, {"id": 2}], "none": null}'), Done("b", "plain text")]
    assert script.arguments(step, done) == {
        "to": 2,
        "all": [[{"id": 1}, {"id": 2}], {"note": "plain text"}],
        "none": None,
        "lost": "unknown",
        "early": "unknown",
    }


def test_unknown_requests_are_refused(desk):
    """A request that belongs to no task is an error with the known names, not an invented answer."""
    policy = GoldenPolicy(desk)
    with pytest.raises(UnknownName):
        policy.respond(ModelTurn("m", (TurnMessage("user", "What is the weather?"),), offered(desk)))
    with pytest.raises(UnknownName):
        policy.script("desk/none/1", 0)


def test_opening_is_found_in_other_words_around_it(desk):
    """Without a header, the task is found by its opening, also inside a longer message."""
    policy, task = GoldenPolicy(desk), desk.tasks[1]
    wrapped = TurnMessage("user", f"The customer wrote: <{task.opening}>")
    assert policy.respond(ModelTurn("m", (wrapped,), offered(desk))).text == questions(task)[0]


# What it says


def tell(facts, *, tags=(), needs=()):
    return Task("t", "hi", UserBrief("", facts), Expectation((EndState("done"),)), tags=tags, needs_asking=needs)


def test_questions_are_understood():
    """A question holds one of the phrases by which the user knows what is asked."""
    known = UserFact("the colour of the card", "Blue.", ("colour",))
    other = UserFact("how it arrived", "By post.", ("delivery method",))
    task = tell((known, other), needs=(known.topic, other.topic, "the weather"))
    assert questions(task) == (
        "Could you tell me the colour of the card?",
        "Could you tell me how it arrived: delivery method?",
        "Could you tell me the weather?",
    )


@pytest.mark.parametrize("tags", [(), ("refusal",), ("escalation",)])
def test_claims_are_understood(tags):
    """The closing claim is read as one: settled, refused or escalated."""
    assert claim(read(final_text(tell((), tags=tags)))) in CLAIMS


# Flaws that have no place


def only(suite, task):
    return replace(suite, tasks=(task,))


def bare(desk, actions, facts=()):
    task = desk.tasks[0]
    return only(desk, replace(task, expectation=Expectation((EndState("done", actions),), facts)))


def test_a_flaw_without_a_place_gives_way(desk):
    """Where nothing is written no value can be wrong: another flaw is played, and it says so."""
    read_only = bare(
        desk, (GoldenAction("get_ticket", {"ticket_id": "T-1"}),), desk.tasks[0].expectation.required_facts
    )
    policy = GoldenPolicy(read_only, outcomes=Outcomes(pass_rate=0, flaws=("wrong_value", "lie")))
    drawn = {policy.injected(read_only.tasks[0].id, n).drawn for n in range(20)}
    assert drawn == {"wrong_value", "lie"}
    assert {policy.injected(read_only.tasks[0].id, n).flaw for n in range(20)} == {"lie"}
    script = policy.script(read_only.tasks[0].id, 0)
    assert "Tuesday" not in script.final


def test_a_task_that_nothing_can_fail_is_an_error(desk):
    """A task without writing action, reading action and required fact can't be failed, and that is said."""
    suite = replace(bare(desk, ()), tool_list=())
    policy = GoldenPolicy(suite, outcomes=Outcomes(pass_rate=0))
    with pytest.raises(SuiteError, match="no flaw can be played"):
        policy.script(suite.tasks[0].id, 0)
    assert GoldenPolicy(suite).injected(suite.tasks[0].id, 0) == Injected(None)


class Waiting:
    """A backend that waits for something before it opens, as one over a network does."""

    def __init__(self, backend):
        self.backend, self.rules = backend, backend.rules

    @asynccontextmanager
    async def open(self, task):
        await asyncio.sleep(0)
        async with self.backend.open(task) as sandbox:
            yield sandbox

    def grader(self, task):
        return self.backend.grader(task)


@pytest.mark.parametrize("flaw", FLAWS)
def test_backends_that_wait(desk, flaw):
    """The flaws of a suite whose backend waits are the same, and what goes wrong there is told."""
    outcomes = Outcomes(pass_rate=0, flaws=(flaw,))
    suite = replace(desk, backend=Waiting(desk.backend))
    task = suite.tasks[0]
    assert GoldenPolicy(suite, outcomes=outcomes).script(task.id, 0) == GoldenPolicy(desk, outcomes=outcomes).script(
        task.id, 0
    )
    if flaw != "loop":
        broken = bare(suite, (GoldenAction("set_status", {"ticket_id": "none", "status": "hold"}),))
        with pytest.raises(SuiteError, match="none"):
            GoldenPolicy(broken, outcomes=outcomes).script(task.id, 0)
