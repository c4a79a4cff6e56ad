"""Promises of the mutations that suites are checked by, and that scripted policies play as flaws."""

from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tbadapters.core.errors import UsageError
from tbadapters.core.golden import replay
from tbadapters.core.grading import EndState, Evidence, GoldenAction, Ref
from tbadapters.core.messages import Message
from tbadapters.suites import load_suite
from tbadapters.testing.mutations import Mutator, without_waiting
from tbadapters.testing.steps import Step, dependents, playable, steps_of

SUITE = load_suite(Path(__file__).parents[1] / "data" / "library.py")
REFUSED = next(task for task in SUITE.tasks if task.expectation.end_states[0].name == "refused")
RENEWED = next(task for task in SUITE.tasks if task.expectation.end_states[0].name == "renewed")
FEES = SUITE.task("fees/0")


@pytest.fixture
def mutator():
    return Mutator(SUITE)


async def played(task, mutation):
    """Return what playing a mutation's actions from the clean backend gives, and its verdict."""
    done = await replay(SUITE.backend.open, task, mutation.actions)
    said = tuple(Message(fact.any_of[0], "agent") for fact in task.expectation.required_facts)
    verdict = await SUITE.backend.grader(task).grade(Evidence(done.initial, done.final, done.calls, said))
    return done, verdict


async def every(mutator, task):
    return [
        *await mutator.dropped(task),
        *await mutator.altered(task, per_argument=3),
        *await mutator.extra(task),
        *await mutator.reordered(task),
        *await mutator.reworded(task),
    ]


@pytest.mark.parametrize("task", [REFUSED, RENEWED, FEES], ids=lambda task: task.id)
async def test_what_a_mutation_says_is_what_playing_it_gives(mutator, task):
    """Playing a mutation's actions gives no error and exactly the verdict and the classes that it carries."""
    mutations = await every(mutator, task)
    assert {m.flaw for m in mutations} >= {"dropped", "altered", "extra"}
    for mutation in mutations:
        done, verdict = await played(task, mutation)
        assert done.error is None
        assert verdict == mutation.verdict
        assert {effect.kind for effect in verdict.effects} == mutation.effects
        if mutation.index is not None:
            assert mutation.actions[mutation.index].tool == mutation.tool


async def test_only_writing_actions_are_dropped(mutator):
    """Each action that changes state is dropped once, with those that refer to its result."""
    dropped = await mutator.dropped(REFUSED)
    assert [(m.tool, m.golden_index, len(m.actions)) for m in dropped] == [("open_ticket", 1, 1), ("add_note", 2, 2)]
    assert [sorted(m.effects) for m in dropped] == [["missing"], ["missing"]]


async def test_altered_arguments_are_values_or_selectors(mutator):
    """An argument that names the record is a selector, one that a field is set to is a value, own words are neither."""
    altered = await mutator.altered(REFUSED)
    assert {(m.tool, m.argument): m.kind for m in altered} == {
        ("open_ticket", "member_id, loan_id"): "selector",
        ("open_ticket", "loan_id"): "selector",
        ("open_ticket", "reason"): "value",
        ("add_note", "team"): "value",
    }
    for mutation in altered:
        given = mutation.actions[mutation.index].arguments
        changed = mutation.after if isinstance(mutation.after, dict) else {mutation.argument: mutation.after}
        assert mutation.before != mutation.after
        assert {name: given[name] for name in changed} == changed


async def test_what_can_not_be_altered_alone_is_altered_together(mutator):
    """A member alone can't be exchanged, as the loan would be another's: both are; what has no other value is listed."""
    (both,) = [m for m in await mutator.altered(REFUSED) if m.argument == "member_id, loan_id"]
    assert both.before.keys() == both.after.keys() == {"member_id", "loan_id"}
    assert both.effects >= {"missing", "unexpected"}
    assert mutator.unaltered[REFUSED.id, 0] == ["action 2, ticket_id"]


async def test_a_record_that_an_earlier_action_made_is_exchanged_for_another_of_its_table(mutator):
    """A reference to a new ticket is altered to a ticket that was there before, where the tools accept it."""
    tables = REFUSED.world["tables"]
    old = {"ticket_id": "TKT-1", "member_id": tables["members"][0]["member_id"], "reason": "fee", "body": "x"}
    task = replace(REFUSED, world={**REFUSED.world, "tables": {**tables, "tickets": [old]}})
    (other,) = [m for m in await mutator.altered(task) if m.argument == "ticket_id"]
    assert (other.tool, other.kind, other.after) == ("add_note", "selector", "TKT-1")
    assert other.effects >= {"missing", "unexpected"}
    assert mutator.unaltered[task.id, 0] == []


async def test_an_alteration_can_take_several_values(mutator):
    """As many other values of an argument are tried as asked for, all different."""
    dates = [m for m in await mutator.altered(RENEWED, per_argument=3) if m.argument == "due"]
    assert len({m.after for m in dates}) == 3


async def test_an_extra_action_touches_another_record(mutator):
    """The additional action comes last, changes something, and nothing that the golden actions change."""
    for task in SUITE.tasks:
        (extra,) = await mutator.extra(task)
        golden = await mutator.golden(task)
        assert extra.actions[:-1] == task.expectation.end_states[0].actions
        done, _ = await played(task, extra)
        right = {(c.table, c.key) for call in golden.done.calls for c in call.result.changes}
        kept = {(c.table, c.key) for c in done.calls[-1].result.changes if c.key in golden.done.initial.tables[c.table]}
        assert done.calls[-1].wrote
        assert not right & kept
        assert extra.effects == {"unexpected"}


async def test_no_extra_action_touches_what_the_golden_actions_touch(mutator):
    """Of many additional actions none changes the loan that the golden actions change."""
    loan = RENEWED.world["tables"]["loans"][0]["loan_id"]
    extras = await mutator.extra(RENEWED, count=30)
    loans = {e.actions[-1].arguments["loan_id"] for e in extras if e.tool in ("renew_loan", "waive_fee")}
    assert len(loans) > 1
    assert loan not in loans


async def test_several_extra_actions_differ(mutator):
    """Asked for several, the mutator finds different ones."""
    extras = await mutator.extra(FEES, count=4)
    assert len({repr(extra.actions[-1]) for extra in extras}) == 4


async def test_only_commuting_actions_are_reordered(mutator):
    """Two tickets are exchanged; a note is not put before the ticket that it refers to."""
    assert [(m.golden_index, m.index) for m in await mutator.reordered(FEES)] == [(1, 0), (2, 1)]
    assert await mutator.reordered(REFUSED) == []


async def test_actions_that_overwrite_each_other_do_not_commute(mutator):
    """Two renewals of one loan, accepted in either order, leave another date: they are not exchanged."""
    loan = RENEWED.world["tables"]["loans"][0]["loan_id"]
    actions = [GoldenAction("renew_loan", {"loan_id": loan, "due": f"2026-05-0{day}"}) for day in (1, 2)]
    end = replace(RENEWED.expectation.end_states[0], actions=tuple(actions))
    task = replace(RENEWED, expectation=replace(RENEWED.expectation, end_states=(end,)))
    assert len((await mutator.golden(task)).writing) == 2
    assert await mutator.reordered(task) == []


async def test_an_alteration_that_leads_to_another_allowed_end_is_none(mutator):
    """Where two dates are allowed, changing one into the other is no mistake; any third date is."""
    loan = RENEWED.world["tables"]["loans"][0]["loan_id"]
    ends = tuple(
        EndState(day, (GoldenAction("renew_loan", {"loan_id": loan, "due": f"2026-05-0{day}"}),)) for day in ("1", "2")
    )
    task = replace(RENEWED, expectation=replace(RENEWED.expectation, end_states=ends))
    for place, other in enumerate(("2026-05-02", "2026-05-01")):
        dates = [m for m in await mutator.altered(task, end_state=place, per_argument=9) if m.argument == "due"]
        assert dates
        assert other not in {m.after for m in dates}
        assert {m.verdict.passed for m in dates} == {False}


async def test_reworded_text_is_other_text(mutator):
    """All text of the agent's own words is replaced, and nothing else."""
    (reworded,) = await mutator.reworded(REFUSED)
    golden = REFUSED.expectation.end_states[0].actions
    changed = {
        (place, name)
        for place, (one, other) in enumerate(zip(golden, reworded.actions, strict=True))
        for name in one.arguments
        if one.arguments[name] != other.arguments[name]
    }
    assert changed == {(1, "body"), (2, "body")}
    assert reworded.verdict.passed


async def test_mutations_are_the_same_for_the_same_seed():
    """The seed decides what is tried first: the same one gives the same mutations, whatever was asked before."""
    one, two, other = Mutator(SUITE, seed=1), Mutator(SUITE, seed=1), Mutator(SUITE, seed=2)
    await one.extra(RENEWED)
    assert await every(one, FEES) == await every(two, FEES)
    assert await every(one, FEES) != await every(other, FEES)


def test_mutations_can_be_had_without_a_loop(mutator):
    """Sync code gets the same mutations, since a suite on SQLite waits for nothing."""
    assert without_waiting(mutator.dropped(REFUSED)) == anyio.run(mutator.dropped, REFUSED)


def test_what_waits_can_not_be_had_without_a_loop():
    """A coroutine that waits is refused in one sentence."""

    async def waiting():
        await anyio.lowlevel.checkpoint()

    async def in_a_loop():
        with pytest.raises(UsageError, match="await its mutations instead"):
            without_waiting(waiting())

    anyio.run(in_a_loop)


def test_refs_are_adjusted_when_steps_move():
    """A Ref follows the step that it points at; one that would point forward makes the steps unplayable."""
    first, second = GoldenAction("a", {}), GoldenAction("b", {})
    steps = steps_of([first, second, GoldenAction("c", {"x": [Ref(0, "id")]})])
    assert playable([steps[1], steps[0], steps[2]])[2].arguments == {"x": [Ref(1, "id")]}
    assert playable([steps[0], steps[2]])[1].arguments == {"x": [Ref(0, "id")]}
    assert playable([steps[2], steps[0]]) is None
    assert playable([steps[1], steps[2]]) is None


def test_dependents_are_found_over_several_hops():
    """What can't be played without a step includes what refers to what refers to it."""
    steps = [
        Step(0, GoldenAction("a", {})),
        Step(1, GoldenAction("b", {"x": Ref(0, "id")})),
        Step(2, GoldenAction("c", {"y": {"z": Ref(1, "id")}})),
        Step(3, GoldenAction("d", {})),
    ]
    assert dependents(steps, {0}) == {0, 1, 2}
    assert dependents(steps, {3}) == {3}
