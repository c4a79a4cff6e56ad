"""Promises of the grader of state."""

import json
from contextlib import asynccontextmanager

import pytest

from tbadapters.core.errors import SandboxFault, SuiteError
from tbadapters.core.golden import resolved
from tbadapters.core.grading import EndState, Evidence, Expectation, GoldenAction, Ref, RequiredFact
from tbadapters.core.messages import Message
from tbadapters.core.state import State, TableRules
from tbadapters.core.state_grader import StateGrader
from tbadapters.core.suite import Task, UserBrief
from tbadapters.core.tools import Change, ToolCall, ToolResult

RULES = {
    "orders": TableRules(key=("id",)),
    "tickets": TableRules(natural_key=("order",), key=("id",), references={"order": "orders"}),
}


class Shop:
    """A sandbox by hand: orders that can be cancelled or changed, tickets that can be opened."""

    def __init__(self):
        self.tables = {"orders": {k: {"id": k, "status": "open", "slot": 1} for k in "ABC"}, "tickets": {}}
        self.tools = ()

    async def state(self):
        return State({name: {key: dict(row) for key, row in rows.items()} for name, rows in self.tables.items()})

    async def call(self, name, arguments):
        if name == "explode":
            raise SandboxFault("gone")
        if name == "open_ticket":
            key = f"T{len(self.tables['tickets']) + 1}"
            self.tables["tickets"][key] = {"id": key, **arguments}
            return ToolResult(
                json.dumps({"id": key}), {"id": key, "all": [key]}, changes=(Change("tickets", key, None),)
            )
        order = self.tables["orders"].get(arguments["order"])
        if order is None:
            return ToolResult("There is no such order.", is_error=True)
        changed = [c for c, v in arguments.items() if c != "order" and order[c] != v]
        order.update({column: arguments[column] for column in changed})
        return ToolResult("{}", {}, changes=tuple(Change("orders", arguments["order"], c) for c in changed))


opened = []


@asynccontextmanager
async def open_shop(task):
    opened.append(task.id)
    yield Shop()


def act(tool, **arguments):
    return GoldenAction(tool, arguments)


def grader(*ends, facts=()):
    task = Task("shop/t/0", "hi", UserBrief("g"), Expectation(tuple(ends), tuple(facts)))
    return StateGrader(task, open_shop, RULES)


async def evidence(*actions, said=""):
    shop, calls = Shop(), []
    initial = await shop.state()
    for index, action in enumerate(actions):
        calls.append(ToolCall(index, action.tool, action.arguments, await shop.call(action.tool, action.arguments)))
    return Evidence(initial, await shop.state(), tuple(calls), (Message(said, "agent"),))


CANCEL = EndState("cancelled", (act("get", order="A"), act("set", order="A", status="cancelled")))


async def test_the_golden_actions_pass():
    """An attempt that leaves what the golden actions leave passes with reward 1 and names the end state."""
    verdict = await grader(CANCEL).grade(await evidence(act("set", order="A", status="cancelled")))
    assert (verdict.passed, verdict.reward, verdict.effects, verdict.reasons) == (True, 1.0, (), ())
    assert verdict.end_state == "cancelled"


async def test_a_missing_effect_names_the_golden_action():
    """A missing effect names the golden action that would have made it, and no tool call."""
    verdict = await grader(CANCEL).grade(await evidence())
    (effect,) = verdict.effects
    assert (verdict.passed, verdict.reward) == (False, 0.0)
    assert (effect.kind, effect.golden, effect.caused_by) == ("missing", 1, None)
    assert verdict.reasons == ("orders A status is still 'open'; it should have become 'cancelled'.",)


async def test_an_unexpected_effect_names_the_last_call_that_touched_the_field():
    """Of several calls the last one that changed this very field is the cause."""
    verdict = await grader(CANCEL).grade(
        await evidence(
            act("set", order="A", status="cancelled"),
            act("set", order="B", slot=2),
            act("set", order="B", slot=3),
            act("set", order="B", status="held"),
        )
    )
    causes = {(e.key, e.column): (e.kind, e.caused_by, e.golden) for e in verdict.effects}
    assert causes == {("B", "slot"): ("unexpected", 2, None), ("B", "status"): ("unexpected", 3, None)}


async def test_a_wrong_value_names_both():
    """A wrong value names the call that wrote it and the golden action that would have been right."""
    verdict = await grader(CANCEL).grade(await evidence(act("get", order="A"), act("set", order="A", status="held")))
    (effect,) = verdict.effects
    assert (effect.kind, effect.caused_by, effect.golden) == ("wrong_value", 1, 1)


async def test_created_rows_are_attributed_across_their_ids():
    """A created row with a wrong value names its own call and its own golden action, whatever the ids are."""
    end = EndState("told", (act("open_ticket", order="A", team="x"), act("open_ticket", order="B", team="y")))
    done = await evidence(act("open_ticket", order="B", team="y"), act("open_ticket", order="A", team="z"))
    (effect,) = (await grader(end).grade(done)).effects
    assert (effect.kind, effect.key, effect.column) == ("wrong_value", "T2", "team")
    assert (effect.caused_by, effect.golden) == (1, 0)


async def test_whole_rows_are_attributed():
    """A created row too many names the call that created it, a missing one its golden action."""
    end = EndState("told", (act("get", order="A"), act("open_ticket", order="A", team="x")))
    verdict = await grader(end).grade(await evidence(act("get", order="A"), act("open_ticket", order="B", team="x")))
    assert {(e.kind, e.key, e.caused_by, e.golden) for e in verdict.effects} == {
        ("missing", "T1", None, 1),
        ("unexpected", "T1", 1, None),
    }
    assert "tickets T1 should have been created." in verdict.reasons


async def test_a_call_whose_changes_are_unknown_causes_nothing():
    """Where the sandbox can't tell what a call changed, no cause is named."""
    done = await evidence(act("set", order="B", status="held"))
    calls = tuple(ToolCall(c.index, c.name, c.arguments, ToolResult("", changes=None)) for c in done.tool_calls)
    verdict = await grader(CANCEL).grade(Evidence(done.initial, done.final, calls, done.messages))
    assert {e.caused_by for e in verdict.effects} == {None}


async def test_the_nearest_of_several_end_states_counts():
    """Any allowed end state passes; a failed trial is described against the one that takes the fewest effects."""
    held = EndState("held", (act("set", order="A", status="held", slot=5), act("set", order="B", slot=5)))
    both = grader(CANCEL, held)
    assert (await both.grade(await evidence(*held.actions))).end_state == "held"
    assert (await both.grade(await evidence(*CANCEL.actions))).passed
    near = await both.grade(await evidence(act("set", order="A", status="held", slot=5)))
    assert (near.passed, near.end_state, len(near.effects)) == (False, "held", 1)


async def test_declared_rows_are_laid_over_the_golden_actions():
    """Declared columns must hold, and a row declared None must be gone; neither has a golden action."""
    end = EndState("x", CANCEL.actions, {"orders": {"B": {"slot": 7}, "C": None}})
    verdict = await grader(end).grade(await evidence(*CANCEL.actions))
    assert {(e.kind, e.key, e.column, e.golden) for e in verdict.effects} == {
        ("missing", "B", "slot", None),
        ("missing", "C", None, None),
    }
    assert "orders C should have been deleted." in verdict.reasons


async def test_a_required_fact_must_be_said():
    """The right records without the fact said fail, with a reason and without an effect."""
    facts = (RequiredFact("the amount", ("25.00", "twenty-five")),)
    right = await evidence(*CANCEL.actions, said="Cancelled.")
    verdict = await grader(CANCEL, facts=facts).grade(right)
    assert (verdict.passed, verdict.effects) == (False, ())
    assert verdict.reasons == ("The agent did not say: the amount (25.00 or twenty-five).",)
    assert (await grader(CANCEL, facts=facts).grade(await evidence(*CANCEL.actions, said="$25 back"))).passed


async def test_refs_take_values_from_earlier_results():
    """A Ref is replaced by the field of an earlier result, by a dotted path, inside lists and mappings, too."""
    results = [ToolResult("", {"id": "T1", "items": [{"n": 4}]})]
    arguments = {"a": Ref(0, "id"), "b": [Ref(0, "items.0.n")], "c": {"d": Ref(0, "items.0")}, "e": 1}
    assert resolved(arguments, results, "x") == {"a": "T1", "b": [4], "c": {"d": {"n": 4}}, "e": 1}


@pytest.mark.parametrize("ref", [Ref(0, "nothing"), Ref(0, "all.9"), Ref(0, "id.x"), Ref(1, "id"), Ref(-1, "id")])
async def test_a_ref_that_points_nowhere_is_a_fault_of_the_suite(ref):
    """A Ref to a field or an action that is not there is named, and nobody is graded."""
    end = EndState("x", (act("open_ticket", order="A", team="x"), act("set", order=ref, slot=2)))
    with pytest.raises(SuiteError, match="shop/t/0, action 1: Ref"):
        await grader(end).grade(await evidence())


async def test_a_golden_action_that_errors_fails_closed():
    """A golden action that is answered with an error gives no verdict, even to an attempt that changed nothing."""
    end = EndState("x", (act("set", order="Z", slot=2),))
    with pytest.raises(SuiteError, match=r"golden action 0 \(set\) is answered with an error: There is no such order"):
        await grader(end).grade(await evidence())


async def test_a_sandbox_that_fails_under_golden_actions_fails_closed():
    """A fault of the backend during the golden actions is a fault of the suite."""
    with pytest.raises(SuiteError, match="the sandbox failed: gone"):
        await grader(EndState("x", (act("explode"),))).grade(await evidence())


async def test_a_task_without_an_end_state_is_not_graded():
    """A task that allows no end state can't be passed or failed."""
    with pytest.raises(SuiteError, match="allows no end state"):
        await grader().grade(await evidence())


async def test_the_expected_states_are_worked_out_once():
    """However many trials are graded, the golden actions are executed once."""
    opened.clear()
    one = grader(CANCEL)
    for _ in range(5):
        await one.grade(await evidence())
    assert opened == ["shop/t/0"]


@pytest.mark.parametrize("table", ["notes", "tickets"])
async def test_a_declared_row_that_is_created_is_compared_by_what_is_declared(table):
    """Of a row that only the task declares, the declared columns decide, matched by key or by natural key."""
    end = EndState("opened", rows={table: {"T1": {"order": "A", "kind": "fee"}}})
    shop = Shop()
    shop.tables["notes"] = {}
    initial = await shop.state()

    async def judged(**columns):
        shop.tables[table] = {"T1": {"id": "T1", "opened": 7, **columns}}
        return await grader(end).grade(Evidence(initial, await shop.state(), (), ()))

    assert (await judged(order="A", kind="fee")).passed
    (effect,) = (await judged(order="A", kind="card")).effects
    assert (effect.kind, effect.column, effect.final, effect.expected) == ("wrong_value", "kind", "card", "fee")
    assert not (await grader(end).grade(Evidence(initial, initial, (), ()))).passed


async def test_declared_rows_that_share_a_natural_key_are_paired_by_what_is_declared():
    """Undeclared columns do not decide which of several created rows is the declared one."""
    end = EndState("opened", rows={"tickets": {"T1": {"order": "A", "kind": "fee"}, "T2": {"order": "A"}}})
    shop = Shop()
    initial = await shop.state()
    shop.tables["tickets"] = {
        "T1": {"id": "T1", "order": "A", "kind": "card", "slot": 1, "size": 1},
        "T2": {"id": "T2", "order": "A", "kind": "fee", "slot": 2, "size": 2},
    }
    assert (await grader(end).grade(Evidence(initial, await shop.state(), (), ()))).passed
