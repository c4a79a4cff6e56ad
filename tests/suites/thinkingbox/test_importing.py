"""Promises of the import of rows that the reference harness wrote."""

import json
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from shelf import MOVE, shelf_suite, task
from typer.testing import CliRunner

from tbadapters import RunResult
from tbadapters.cli import app
from tbadapters.core.cost import Price
from tbadapters.core.errors import ResumeMismatch, SandboxFault, UsageError
from tbadapters.core.records import AttemptRecord
from tbadapters.core.run_folder import load_result
from tbadapters.core.store import check_resume
from tbadapters.core.task_info import TaskInfo
from tbadapters.suites.thinkingbox.importing import Import, Results, explainer, model_of

SMALL = Path(__file__).parents[2] / "data" / "thinkingbox_small"
ROWS = Path(__file__).parents[2] / "data" / "thinkingbox_rows.jsonl"
REFUND, RESET = "thinkingbox/retail/test_refund", "thinkingbox/neobank/test_reset"
PRICES = {"some-model": Price(input=10.0, cached_input=1.0, output=100.0)}


async def imported(folder: Path, file: Path = ROWS, **options: Any) -> RunResult:
    results = await to_thread.run_sync(Results.of, file)
    rows = Import(results=results, name="theirs", model="some-model", prices=PRICES, **options)
    return await to_thread.run_sync(load_result, await rows.into(folder))


@pytest.fixture
async def result(tmp_path: Path) -> RunResult:
    return await imported(tmp_path)


def record(result: RunResult, task_id: str, index: int) -> AttemptRecord:
    return result.trial(task_id, index)


def test_every_row_is_a_trial_in_the_order_of_repetitions(result: RunResult) -> None:
    """Rows become trials by their repetition, whatever their order in the file; what is missing is planned all the same."""
    assert [info.id for info in result.tasks] == [REFUND, RESET]
    assert result.trials_per_task == 6
    assert [r.passed for r in result.records if r.task == REFUND] == [True, False, None, None]
    assert len([r for r in result.records if r.task == RESET]) == 6
    assert result.suite == "thinkingbox"


@pytest.mark.parametrize(
    ("task_id", "index", "owner", "said"),
    [
        (REFUND, 2, "judge", "JudgeException: Error getting Judge completion: timed out"),
        (REFUND, 3, "grader", "KeyError: 'result_db_hash'"),
        (RESET, 1, "user", "Error during user LLM simulation"),
        (RESET, 2, "provider", "Error during decoding turn 1"),
        (RESET, 3, "sandbox", "Error during decoding turn 1"),
        (RESET, 4, "harness", "Task cancelled"),
        (RESET, 5, "grader", "was not executed"),
    ],
)
def test_an_error_is_nobodys_failed_trial(result: RunResult, task_id: str, index: int, owner: str, said: str) -> None:
    """Errors of judge, test, user, model endpoint and tool server have no verdict, and the owner whose fault they are."""
    trial = record(result, task_id, index)
    assert trial.passed is None
    assert trial.end_reason == "fault"
    assert trial.fault is not None
    assert trial.fault.owner == owner
    assert said in trial.fault.message


def test_a_failed_trial_keeps_what_the_test_said(result: RunResult) -> None:
    """The first line of the assertion and its place are the reason of a fail."""
    verdict = record(result, REFUND, 1).verdict
    assert verdict is not None
    assert verdict.reasons == (
        "The test failed (line 40): Database hash after test execution does not match expected golden hash",
    )


def test_conversation_and_calls_are_kept(result: RunResult) -> None:
    """What the user saw, every call with its answer, and how it ended are as they were; what agents think is left out."""
    trial = record(result, REFUND, 1)
    assert [(e.kind, e.text) for e in trial.transcript] == [
        ("user", "Please refund order 7."),
        ("tool_call", "get_order"),
        ("tool_call", "refund"),
        ("tool_call", "notify"),
        ("agent", "Refunded. Anything else?"),
        ("user", "No."),
        ("agent", "Goodbye. <DONE>"),
    ]
    assert [(c.index, c.name, c.result.text, c.result.is_error) for c in trial.tool_calls] == [
        (0, "get_order", '{"total": 25}', False),
        (1, "refund", '{"error": "too late", "tool": "refund"}', True),
        (2, "notify", '{"sent": true}', False),
    ]
    assert trial.end_reason == "agent_ended"
    assert trial.seconds == {"agent": 3.0, "grading": 0.5, "total": 4.5}
    ended = record(result, RESET, 0)
    assert ended.end_reason == "end_turn_tool"
    assert ended.tool_calls[0].result.changes == ()
    assert [(j.question, j.answer, j.reasons) for j in ended.judgements] == [
        ("Is it polite?", True, ("It says please.",))
    ]
    refused = record(result, RESET, 5).tool_calls[0].result
    assert (refused.is_error, refused.changes) == (True, ())


def test_tokens_are_priced(result: RunResult) -> None:
    """Each model request keeps its tokens, cached and reasoning ones among them, and has its price."""
    trial = record(result, REFUND, 1)
    assert [r.usage.to_dict() for r in trial.requests if r.usage] == [
        {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 10, "reasoning_tokens": 5},
        {"input_tokens": 200, "cached_input_tokens": 150, "output_tokens": 20, "reasoning_tokens": 0},
    ]
    assert trial.cost == pytest.approx((110 * 10 + 190 * 1 + 30 * 100) / 1e6)


def test_an_imported_run_can_not_be_resumed_and_says_what_it_is(result: RunResult) -> None:
    """The manifest names the file, and a resume with whatever agent is refused."""
    assert "imported from thinkingbox_rows.jsonl" in result.manifest["notes"][0]
    assert result.folder is not None
    with pytest.raises(ResumeMismatch):
        check_resume(result.folder, {"agent": "mine", "framework": "function"})


async def test_a_file_that_was_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    """The half row at the end that a killed run leaves is left out, which a note says."""
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(ROWS.read_bytes()[:-200])
    result = await imported(tmp_path, cut)
    assert len(result.records) == 9
    assert "no whole row" in result.manifest["notes"][1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no row"),
        ("{}\n", "Line 1 of .* is no row of `tb infer` .uid: Field required"),
        ('{"uid": "a.py:b"}\nnonsense\n{"uid": "a.py:b"}\n', "Line 2 of .* is no row"),
        ('{"uid": "a.py:b", "messages": 3}\n', "messages: Input should be a valid list"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    """What is no file of rows is refused with its line and what is wrong there."""
    file = tmp_path / "some.jsonl"
    file.write_text(text)
    with pytest.raises(UsageError, match=said):
        Results.of(file)
    with pytest.raises(UsageError, match="can't be read"):
        Results.of(tmp_path / "none.jsonl")


def test_the_models_name_and_nothing_else_is_read_beside_the_rows(tmp_path: Path) -> None:
    """The agent's model is what the run's own metadata says; without them it is not known."""
    (tmp_path / "run_run_metadata.yaml").write_text(
        "setup_config:\n  orchestrator:\n    agent_model: {deployment: some-model, credential: {api_key: secret}}\n"
    )
    assert model_of(tmp_path / "run.jsonl") == "some-model"
    assert model_of(tmp_path / "other.jsonl") is None
    (tmp_path / "odd_run_metadata.yaml").write_text("setup_config: [")
    assert model_of(tmp_path / "odd.jsonl") is None


async def test_failed_trials_are_explained_by_replaying_them(tmp_path: Path) -> None:
    """Replayed, an imported failed trial has effects, the calls behind them and which calls wrote; a passed one is left."""
    suite = shelf_suite(tmp_path, task("test_move", MOVE))
    calls = [("look", {"item": "I1"}), ("move", {"item": "I1", "place": "A2"})]
    messages = [
        message
        for number, (name, arguments) in enumerate(calls)
        for message in (
            {"T": "ToolCall", "id": str(number), "name": name, "arguments": arguments},
            {"T": "ToolResponse", "id": str(number), "name": name, "content": "done"},
        )
    ]
    failed = {"result": False, "reward": 0.0, "tb": "AssertionError: The hashes differ.", "lineno": 7}
    rows = [
        {"uid": "shelf_tests.py:test_move", "messages": messages, "test_result": failed},
        {"uid": "shelf_tests.py:test_move", "messages": messages, "test_result": {"result": True, "reward": 1.0}},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    known = {"shelf_tests.py:test_move": TaskInfo.of(suite.tasks[0])}
    async with suite.backend.running():
        result = await imported(tmp_path, file, known=known, explain=explainer(suite))
    first, second = result.records
    assert first.verdict is not None
    assert [(e.kind, e.column, e.caused_by, e.golden) for e in first.verdict.effects] == [
        ("wrong_value", "place", 1, 0)
    ]
    assert first.verdict.reasons[-1] == "items I1 place is 'A2'; it should be 'A9'."
    assert [call.wrote for call in first.tool_calls] == [False, True]
    assert first.looked_clean
    assert second.passed
    assert suite.backend.calls.count("look") == 1


async def test_failed_trials_that_can_not_be_replayed_are_counted(tmp_path: Path) -> None:
    """What a replay could not explain keeps its verdict, and a note says how many trials that are."""

    async def explain(record: AttemptRecord) -> None:
        return None

    result = await imported(tmp_path, explain=explain)
    failed = [record for record in result.records if record.passed is False]
    assert failed
    assert f"failed trials that could not be replayed, whose effects are not known: {len(failed)}" in result.notes


def test_a_row_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    """A file that was put together of the same rows twice would count each trial twice, so it is refused with the line."""
    file = tmp_path / "twice.jsonl"
    file.write_text(ROWS.read_text() * 2)
    with pytest.raises(UsageError, match=r"Line 11 of .*twice\.jsonl is line 1 again: take out"):
        Results.of(file)


def test_the_command_writes_a_run_folder_with_its_reports(tmp_path: Path) -> None:
    """``import-thinkingbox`` prints the figures and leaves a folder that ``show`` and ``report`` read."""
    runner = CliRunner()
    done = runner.invoke(app, ["import-thinkingbox", str(ROWS), "--out", str(tmp_path), "--name", "theirs"])
    assert done.exit_code == 0, done.output
    assert "pass@1" in done.output
    (folder,) = tmp_path.iterdir()
    assert {"manifest.json", "run.db", "report.html", "results.json", "junit.xml"} <= {p.name for p in folder.iterdir()}
    shown = runner.invoke(app, ["show", str(folder), REFUND, "1"])
    assert "Please refund order 7." in shown.output
    assert runner.invoke(app, ["report", str(folder)]).exit_code == 0


def test_a_replay_needs_the_servers(tmp_path: Path) -> None:
    """``--replay`` without a checkout, or with servers that do not start, is refused before anything is written."""
    out = tmp_path / "runs"
    done = CliRunner().invoke(app, ["import-thinkingbox", str(ROWS), "--replay", "--out", str(out)])
    assert isinstance(done.exception, UsageError)
    file = tmp_path / "rows.jsonl"
    file.write_text('{"uid": "workshop.py:test_cancel", "test_result": {"result": false, "reward": 0.0}}\n')
    given = ["import-thinkingbox", str(file), "--data", str(SMALL), "--python", "/no/python", "--out", str(out)]
    done = CliRunner().invoke(app, [*given, "--replay"])
    assert isinstance(done.exception, SandboxFault)
    assert "can't be started by /no/python" in str(done.exception)
    assert not out.exists()
