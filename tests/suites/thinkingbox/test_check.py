"""Promises of the benchmark's own check."""

from pathlib import Path

import pytest
from shelf import GROW, LOOK, MOVE, TESTS, shelf_suite, task
from typer.testing import CliRunner

from tbadapters.cli import app
from tbadapters.core.grading import GoldenAction
from tbadapters.suites.thinkingbox.check import check_thinkingbox

TASKS = (task("test_move", LOOK, MOVE, GROW), task("test_asks", MOVE), task("test_own", LOOK, MOVE))
NOTHING = task("test_move", LOOK)


async def test_a_suite_that_holds_is_said_to(tmp_path: Path) -> None:
    """Golden calls and their writing ones pass, nothing less does, and the comparison says the same every time."""
    report = await check_thinkingbox(shelf_suite(tmp_path, TASKS[0], task("test_asks", MOVE)))
    assert report.ok
    assert [(row.name, row.held, row.of) for row in report.rows()] == [
        ("golden calls", 2, 2),
        ("no calls", 0, 2),
        ("only writing calls", 2, 2),
        ("last writing call dropped", 0, 2),
        ("agreement", 8, 8),
    ]
    assert report.summary.startswith(
        "shelf: golden calls 2/2, no calls 0/2, only writing calls 2/2, last writing call dropped 0/2, agreement 8/8; "
        "all hold"
    )


async def test_a_task_in_which_nothing_is_to_be_done_passes_without_a_call(tmp_path: Path) -> None:
    """A task whose golden calls change nothing passes without them; it is named, and no call of it can be dropped."""
    report = await check_thinkingbox(shelf_suite(tmp_path, NOTHING))
    assert report.ok
    assert [(row.held, row.of) for row in report.rows()] == [(1, 1), (1, 1), (1, 1), (0, 0), (3, 3)]
    assert "no calls 1/1 (test_move)" in report.summary


async def test_a_write_that_the_hash_leaves_out_is_no_writing_call(tmp_path: Path) -> None:
    """A golden call that changes only what does not count can be dropped."""
    note = GoldenAction("note", {"item": "I1", "text": "n"})
    report = await check_thinkingbox(shelf_suite(tmp_path, task("test_move", MOVE, note)))
    assert report.ok
    assert report.rows()[3][1:3] == (0, 1)


@pytest.mark.parametrize(
    ("old", "new", "failing"),
    [
        ('assert effects["result_db_hash"] == effects["golden_db_hash"]', "assert False", "golden calls"),
        ('assert effects["result_db_hash"] == effects["golden_db_hash"], "The', 'assert True, "The', "no calls"),
        ('effects = x.effects["shelf"]', 'effects = x.effects["table"]', "golden calls"),
    ],
)
async def test_a_test_function_that_is_wrong_is_found(tmp_path: Path, old: str, new: str, failing: str) -> None:
    """A test that fails what is right, passes what is wrong or can't be executed fails the check, with task and reason."""
    assert old in TESTS
    report = await check_thinkingbox(shelf_suite(tmp_path, TASKS[0], tests=TESTS.replace(old, new)))
    assert not report.ok
    rows = {row.name: row for row in report.rows()}
    assert not rows[failing].ok
    assert "shelf/test_move" in rows[failing].note
    assert not rows["agreement"].ok
    assert "NOT OK" in report.summary


async def test_a_disagreement_is_counted(tmp_path: Path) -> None:
    """Where hash and comparison contradict each other, agreement does not hold."""
    report = await check_thinkingbox(shelf_suite(tmp_path, TASKS[0], tampered={"golden_db_hash": "1"}))
    agreement = report.rows()[-1]
    assert (agreement.held, agreement.of, agreement.ok) == (2, 4, False)


@pytest.mark.parametrize(("golden", "code"), [("A9", 0), ("A8", 1)])
def test_the_command_runs_a_suites_own_check(tmp_path: Path, golden: str, code: int) -> None:
    """``check`` runs what the suite offers, ends with its summary, and exits 0 only if all holds."""
    (tmp_path / "own.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from pathlib import Path\n"
        "from shelf import MOVE, TESTS, shelf_suite, task\n"
        f'tests = TESTS.replace(\'by_hash(x)\\n\', \'by_hash(x)\\n    assert x.effects["shelf"]["golden_db_state"]'
        f'["items"][0]["place"] == "{golden}"\\n\', 2)\n'
        f"suite = shelf_suite(Path({str(tmp_path)!r}), task('test_move', MOVE), tests=tests)\n"
    )
    done = CliRunner().invoke(app, ["check", str(tmp_path / "own.py")])
    assert done.exit_code == code, done.output
    last = done.output.strip().splitlines()[-1]
    assert last.startswith(f"shelf: golden calls {1 - code}/1, ")
    assert ("all hold" in last) == (code == 0)
