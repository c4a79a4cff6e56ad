"""Promises of the grader of the benchmark's tasks."""

from pathlib import Path
from typing import Any

import pytest
from shelf import GROW, LOOK, MOVE, shelf_suite, task

from tbadapters import Suite, evaluate
from tbadapters.core.errors import GraderFault, SandboxFault
from tbadapters.core.grading import Evidence, GoldenAction, Verdict
from tbadapters.core.judge import Judgement
from tbadapters.core.messages import Message
from tbadapters.core.state import State
from tbadapters.core.tools import ToolCall, ToolResult


class Answering:
    """A judge that always says the same."""

    def __init__(self, answer: bool) -> None:
        self.answer = answer

    async def ask(self, text: str, question: str) -> Judgement:
        return Judgement(question, self.answer, (self.answer,), ("It says so.",))


async def graded(suite: Suite, *calls: tuple[str, dict[str, Any]], judge: Any = None) -> Verdict:
    """Grade a trial of the suite's first task in which these calls were made."""
    task = suite.tasks[0]
    async with suite.backend.running(), suite.backend.open(task) as session:
        made = [
            ToolCall(index, name, arguments, await session.call(name, arguments))
            for index, (name, arguments) in enumerate(calls)
        ]
        messages = (Message("Move it."), Message("Done.", "agent"))
        evidence = Evidence(
            State({}), await session.state(), tuple(made), messages, **({"judge": judge} if judge else {})
        )
        return await suite.backend.grader(task).grade(evidence)


MOVED = ("move", {"item": "I1", "place": "A9"})
MISPLACED = ("move", {"item": "I1", "place": "A2"})


async def test_a_test_that_holds_is_a_pass_without_effects(tmp_path: Path) -> None:
    """A trial that left the golden state passes by its own test, and nothing is replayed."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))
    assert await graded(suite, MOVED) == Verdict(True, 1.0, end_state="golden")
    assert suite.backend.calls == ["move"]


async def test_a_failed_trial_names_the_calls_behind_each_effect(tmp_path: Path) -> None:
    """Of a failed trial each effect has the call that did it and the golden call whose effect is missing or wrong."""
    suite = shelf_suite(tmp_path, task("test_move", LOOK, MOVE, GROW))
    verdict = await graded(
        suite,
        ("look", {"item": "I1"}),
        ("move", {"item": "I1", "place": "A5"}),
        ("add", {"item": "I7"}),
        MISPLACED,
        ("note", {"item": "I1", "text": "moved"}),
    )
    assert (verdict.passed, verdict.reward) == (False, 0.0)
    found = {(e.kind, e.key, e.column): (e.caused_by, e.golden) for e in verdict.effects}
    assert found == {
        ("wrong_value", "I1", "place"): (3, 1),
        ("missing", "I2", "size.height"): (None, 2),
        ("unexpected", "I7", None): (2, None),
    }
    assert verdict.reasons[0].startswith("The test failed (shelf_tests.py, line 7): The hashes differ.")
    assert "Result" not in verdict.reasons[0]
    assert "items I1 place is 'A2'; it should be 'A9'." in verdict.reasons


async def test_which_calls_wrote_is_told_of_a_failed_trial(tmp_path: Path) -> None:
    """What each call of a failed trial changed is told, what reads changed nothing, and what the hash leaves out counts."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))
    verdict = await graded(suite, ("look", {"item": "I1"}), MISPLACED, ("note", {"item": "I1", "text": "n"}))
    told = {index: [(c.table, c.key, c.column) for c in changes] for index, changes in verdict.changes.items()}
    assert told == {0: [], 1: [("items", "I1", "place")], 2: [("items", "I1", "note")]}


async def test_a_removed_and_an_added_row_have_their_call(tmp_path: Path) -> None:
    """A row that should not be gone has the call that removed it, also where its fields were wrong before."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))
    verdict = await graded(suite, MISPLACED, ("remove", {"item": "I1"}))
    found = {(e.kind, e.column): (e.caused_by, e.golden) for e in verdict.effects}
    assert found == {("unexpected", None): (1, None), ("missing", "place"): (None, 0)}


async def test_without_probes_the_effects_tell_what_a_call_changed(tmp_path: Path) -> None:
    """Causes are found from the effects after each call where the server can't be asked, and no hash is contradicted."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE), probes=False)
    verdict = await graded(suite, ("note", {"item": "I1", "text": "n"}), MISPLACED)
    (effect,) = (e for e in verdict.effects if e.column == "place")
    assert (effect.kind, effect.caused_by, effect.golden) == ("wrong_value", 1, 0)
    assert (await graded(suite, MOVED, ("note", {"item": "I1", "text": "n"}))).passed


async def test_the_golden_calls_are_replayed_once_a_task(tmp_path: Path) -> None:
    """What does not depend on the trial is worked out once."""
    suite = shelf_suite(tmp_path, task("test_move", GROW, MOVE))
    await graded(suite, MISPLACED)
    before = suite.backend.calls.count("grow")
    await graded(suite, MISPLACED)
    assert suite.backend.calls.count("grow") == before == 1


async def test_a_call_that_went_otherwise_the_second_time_is_no_cause(tmp_path: Path) -> None:
    """Where the replay does not leave what the trial left, no call is named."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))
    async with suite.backend.running(), suite.backend.open(suite.tasks[0]) as session:
        await session.call(*MISPLACED)
        made = (ToolCall(0, "move", {"item": "I1", "place": "A3"}, ToolResult("done", changes=None)),)
        verdict = await suite.backend.grader(suite.tasks[0]).grade(Evidence(State({}), await session.state(), made, ()))
    assert [(e.kind, e.caused_by) for e in verdict.effects] == [("wrong_value", None)]


async def test_a_replay_that_fails_leaves_the_verdict(tmp_path: Path) -> None:
    """A failed trial stays failed, with its effects, where its calls can't be replayed."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))
    async with suite.backend.running(), suite.backend.open(suite.tasks[0]) as session:
        made = (ToolCall(0, "break", {}, ToolResult("done", changes=None)),)
        verdict = await suite.backend.grader(suite.tasks[0]).grade(Evidence(State({}), await session.state(), made, ()))
    assert verdict.passed is False
    assert [(e.kind, e.golden) for e in verdict.effects] == [("missing", 0)]
    assert verdict.changes == {}


async def test_a_judges_no_fails_without_effects(tmp_path: Path) -> None:
    """Equal states and a judge's no are a failed trial, and no disagreement."""
    suite = shelf_suite(tmp_path, task("test_asks", MOVE))
    verdict = await graded(suite, MOVED, judge=Answering(False))
    assert (verdict.passed, verdict.effects) == (False, ())
    assert "It does not say where." in verdict.reasons[0]
    assert verdict.changes[0]
    assert (await graded(suite, MOVED, judge=Answering(True))).passed


@pytest.mark.parametrize(
    ("tampered", "said"),
    [
        ({"result_db_hash": "1", "golden_db_hash": "2"}, "unequal"),
        ({"result_db_hash": "1", "golden_db_hash": "1"}, "equal"),
    ],
)
async def test_a_disagreement_is_a_fault_of_the_grader(tmp_path: Path, tampered: dict[str, str], said: str) -> None:
    """Where hash and comparison contradict each other, there is no verdict but a fault that says how."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE), tampered=tampered)
    with pytest.raises(GraderFault, match=f"they are {said}, the comparison by key finds") as raised:
        await graded(suite, MOVED if said == "unequal" else MISPLACED)
    assert raised.value.code == "disagreement"


async def test_a_test_that_goes_by_the_hash_can_not_pass_on_unequal_states(tmp_path: Path) -> None:
    """A test that looks at the hash and passes all the same is contradicted by the comparison."""
    suite = shelf_suite(tmp_path, task("test_blind", MOVE))
    with pytest.raises(GraderFault, match="the test passes, the comparison by key finds 1 differences") as raised:
        await graded(suite, MISPLACED)
    assert raised.value.code == "disagreement"


async def test_a_test_that_looks_for_itself_is_the_verdict(tmp_path: Path) -> None:
    """A test that does not go by the hash passes whatever else differs, and sees what init answered."""
    suite = shelf_suite(tmp_path, task("test_own", MOVE))
    assert (await graded(suite, MOVED, ("add", {"item": "I8"}))).passed


async def test_a_server_that_can_not_tell_its_effects_is_the_sandboxes_fault(tmp_path: Path) -> None:
    """An error instead of effects is nobody's failed trial."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE), tampered={"status": "error", "message": "no records"})
    with pytest.raises(SandboxFault, match="no records"):
        await graded(suite, MOVED)


async def test_a_run_records_which_calls_wrote(tmp_path: Path) -> None:
    """A failed trial that called a writing tool and ended by itself is one that looked clean."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))

    async def agent(message: str, ctx: Any) -> str:
        await ctx.call("look", item="I1")
        await ctx.call("move", item="I1", place="A2")
        return "It is done."

    result = await evaluate(agent, suite=suite, trials=1, out=tmp_path, progress="off")
    (record,) = result.records
    assert record.passed is False
    assert [call.wrote for call in record.tool_calls] == [False, True]
    assert record.looked_clean
    assert record.verdict is not None
    assert [effect.caused_by for effect in record.verdict.effects] == [1]


async def test_a_failed_trial_whose_last_call_failed_did_not_look_clean(tmp_path: Path) -> None:
    """An error that the servers answer unmarked is read as it is by the agent, and as an error by the record."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))
    read = []

    async def agent(message: str, ctx: Any) -> str:
        await ctx.call("move", item="I1", place="A2")
        read.append(await ctx.call("fail"))
        return "It is done."

    result = await evaluate(agent, suite=suite, trials=1, out=tmp_path, progress="off")
    (record,) = result.records
    assert [(call.wrote, call.result.is_error) for call in record.tool_calls] == [(True, False), (False, True)]
    assert not record.looked_clean
    assert read == ['{"error": "no such place", "tool": "fail"}']


async def test_a_run_keeps_a_disagreement_without_verdict(tmp_path: Path) -> None:
    """A disagreement is recorded with its owner, and the trial has no verdict."""
    suite = shelf_suite(
        tmp_path, task("test_move", GoldenAction("look", {"item": "I1"})), tampered={"golden_db_hash": "2"}
    )

    async def agent(message: str, ctx: Any) -> str:
        return "It is done."

    result = await evaluate(agent, suite=suite, trials=1, out=tmp_path, progress="off")
    (record,) = result.records
    assert record.passed is None
    assert record.fault is not None
    assert (record.fault.owner, record.fault.code) == ("grader", "disagreement")
