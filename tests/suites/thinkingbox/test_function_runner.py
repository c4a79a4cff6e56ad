"""Promises of the process in which test functions are executed."""

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from tbadapters.core.errors import GraderFault, JudgeFault
from tbadapters.suites.thinkingbox import function_runner
from tbadapters.suites.thinkingbox.function_runner import FunctionRunner, Outcome
from tbadapters.suites.thinkingbox.grading_function import GradingFunction

X = {
    "response": "Moved. <DONE>",
    "effects": {"shelf": {"place": "A9"}},
    "init_result": {"shelf": {"opened": True}},
    "tool_calls": [{"id": "call_0", "name": "move", "arguments": {"item": "I1"}, "content": "done"}],
    "messages": [
        {"kind": "text", "role": "system", "text": "Be kind."},
        {"kind": "text", "role": "user", "text": "Move it."},
        {"kind": "text", "role": "assistant", "text": "Which one?"},
        {"kind": "text", "role": "user", "text": "I1."},
        {"kind": "call", "id": "call_0", "name": "move", "arguments": {"item": "I1"}, "content": "done"},
        {"kind": "response", "id": "call_0", "name": "move", "arguments": {"item": "I1"}, "content": "done"},
        {"kind": "text", "role": "assistant", "text": "Moved. <DONE>"},
    ],
}


async def yes(text: str, question: str) -> tuple[bool, str]:
    return True, "It does."


class Stage:
    """Executes the body of a test function, whichever is given."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.runner = FunctionRunner(seconds=seconds)
        self.folder = folder
        self.written = 0

    async def run(self, body: str, *, before: str = "", ask: Any = yes, signature: str = "x, judge") -> Outcome:
        self.written += 1
        path = self.folder / f"file_{self.written}.py"
        lines = "\n".join(f"    {line}" for line in body.splitlines())
        path.write_text(f'{before}\ndef test_it({signature}):\n    """! query: it"""\n{lines}\n')
        function = GradingFunction(path, "test_it")
        code = await to_thread.run_sync(lambda: function.code)
        return await self.runner.run(function, code, X, ask)


@pytest.fixture
async def stage(tmp_path: Path):
    stage = Stage(tmp_path, seconds=20)
    async with stage.runner.running():
        yield stage


async def test_a_test_that_ends_passes_with_what_it_returns(stage: Stage) -> None:
    """A number that a test returns is the reward; without one it is 1."""
    assert await stage.run("print('seen', x.response)") == Outcome(True, 1.0, printed="seen Moved. <DONE>\n")
    assert (await stage.run("return 0.25")).reward == 0.25


async def test_a_failed_assertion_is_a_fail_that_says_where(stage: Stage) -> None:
    """An AssertionError fails the trial, with its message, its line in the file and that line's text."""
    outcome = await stage.run("place = x.effects['shelf']['place']\nassert place == 'A1', f'it is at {place}'")
    assert (outcome.passed, outcome.reward, outcome.message) == (False, 0.0, "it is at A9")
    assert (outcome.line, outcome.source) == (5, "assert place == 'A1', f'it is at {place}'")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("x.nowhere", "raised AttributeError"),
        ("raise SystemExit(0)", "raised SystemExit"),
        ("return 'yes'", "it returned 'yes'"),
        ("return 1.5", "a number from 0 to 1"),
        ("import thinkingbox.cloud", "No module named 'thinkingbox.cloud'"),
    ],
)
async def test_any_other_exception_is_a_fault_of_the_test(stage: Stage, body: str, said: str) -> None:
    """Whatever a test raises beside an AssertionError, SystemExit too, gives no verdict and names test and error."""
    with pytest.raises(GraderFault, match=said) as raised:
        await stage.run(body)
    assert raised.value.code == "test_error"
    assert "test_it (file_1.py" in str(raised.value)


async def test_a_fixture_of_the_reference_is_named(stage: Stage) -> None:
    """A test that wants more than x and judge is a fault that names what it wants."""
    with pytest.raises(GraderFault, match="it wants rubric_judge"):
        await stage.run("pass", signature="x, judge, rubric_judge")


async def test_the_context_is_what_test_files_expect(stage: Stage) -> None:
    """A test sees response, effects, calls with their answers, messages in order, the transcript and init's answer."""
    body = """
assert x.query() == "Move it."
assert x.transcript() == "User: Move it.\\n\\nAssistant: Which one?\\n\\nUser: I1.\\n\\nAssistant: Moved. <DONE>"
assert x.transcript(limit=1) == "Assistant: Moved. <DONE>"
call, = x.tool_calls
assert (call.tool_call.name, call.tool_call.arguments) == ("move", {"item": "I1"})
assert call.tool_response.content == "done"
assert [m.T for m in x.messages] == ["Text"] * 4 + ["ParallelToolCall", "ToolResponse", "Text"]
assert isinstance(x.messages[0], Text) and x.messages[4].tool_calls[0].id == x.messages[5].id
assert x.init_result["shelf"] == {"opened": True}
assert x.tool_direct_responses == [] and x.metadata == {}
assert Text(role="user", content="a") == Text(role="user", content="a") != Text(role="user", content="b")
"""
    before = "from thinkingbox.common import Judge, TestContext\nfrom thinkingbox.common.chat_types import Text"
    assert (await stage.run(body.strip(), before=before)).passed


async def test_nothing_that_a_test_does_reaches_the_next_one(stage: Stage) -> None:
    """Globals, modules, environment and files that a test changes are as they were in the next one."""
    before = "import json, os, thinkingbox.common\nSEEN = []"
    body = """
assert not SEEN and not hasattr(json, "spoilt") and "SPOILT" not in os.environ
assert not hasattr(thinkingbox.common.Judge, "spoilt")
SEEN.append(1)
json.spoilt = thinkingbox.common.Judge.spoilt = True
os.environ["SPOILT"] = "1"
os.chdir("/")
"""
    for _ in range(3):
        assert (await stage.run(body.strip(), before=before)).passed


async def test_questions_travel_to_the_judge_and_back(stage: Stage) -> None:
    """Every kind of yes/no question of a test file is asked of the judge, who gets text and question."""
    asked = []

    async def ask(text: str, question: str) -> tuple[bool, str]:
        await anyio.lowlevel.checkpoint()
        asked.append((text, question))
        return "no" not in question, "Because."

    body = """
assert judge.text_yesno(x.response, "one") is True
assert judge.text_yesno(x.response, "no") is False
assert judge.text_yesno_with_motivation("a", "two") == {"answer": True, "motivation": "Because."}
assert judge.evaluate_bool(system="three", user="b") is True
assert judge.yesno("four") is True
assert judge.no_repeat("c", ["d", "e"]) is False
"""
    assert (await stage.run(body.strip(), ask=ask)).passed
    assert asked[:5] == [("Moved. <DONE>", "one"), ("Moved. <DONE>", "no"), ("a", "two"), ("b", "three"), ("", "four")]
    assert len(asked) == 6
    assert "c" in asked[5][0]
    assert "d" in asked[5][0]


async def test_a_text_of_its_own_can_not_be_asked_for(stage: Stage) -> None:
    """A question that is no yes/no question is a fault that says so."""
    with pytest.raises(GraderFault, match="only yes/no questions") as raised:
        await stage.run("judge._get_text_completion([])")
    assert raised.value.code == "unsupported_question"


async def test_a_fault_of_the_judge_stays_the_judges(stage: Stage) -> None:
    """Where the judge can't decide, its own fault is what is raised, not one of the test."""

    async def ask(text: str, question: str) -> tuple[bool, str]:
        raise JudgeFault("No idea.")

    with pytest.raises(JudgeFault, match="No idea"):
        await stage.run("judge.yesno('is it?')", ask=ask)


async def test_a_test_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """An endless loop and an endless wait meet the deadline, with all that they started, and the next test runs."""
    stage = Stage(tmp_path, seconds=1)
    pids = tmp_path / "pids"
    start = "import os, subprocess\nprocess = subprocess.Popen(['sleep', '600'])\n"
    start += f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} {{process.pid}} ')\n"
    async with stage.runner.running():
        for endless in ("while True: pass", "import time\ntime.sleep(600)"):
            with pytest.raises(GraderFault, match="did not end within 1 s") as raised:
                await stage.run(start + endless)
            assert raised.value.code == "test_deadline"
        assert (await stage.run("pass")).passed
        numbers = [int(pid) for pid in pids.read_text().split()]
        assert len(numbers) == 4
        with anyio.fail_after(5):
            for pid in numbers:
                while _is_running(pid):
                    await anyio.sleep(0.01)


async def test_the_deadline_is_that_of_the_whole_test(tmp_path: Path) -> None:
    """A test that is slow between its questions has no more time for asking them."""
    stage = Stage(tmp_path, seconds=2)
    async with stage.runner.running():
        with pytest.raises(GraderFault, match="did not end within 2 s"):
            await stage.run("import time\nfor _ in range(5):\n    time.sleep(0.8)\n    judge.yesno('now?')")


async def test_the_judges_time_does_not_count(tmp_path: Path) -> None:
    """A judge may take longer than the deadline of the test that asks it."""
    stage = Stage(tmp_path, seconds=2)

    async def ask(text: str, question: str) -> tuple[bool, str]:
        await anyio.sleep(2.5)
        return True, ""

    async with stage.runner.running():
        assert (await stage.run("assert judge.yesno('slow?')", ask=ask)).passed


async def test_a_test_that_ends_its_process_is_a_fault(stage: Stage) -> None:
    """A test that leaves without a word gives no verdict, and the next one runs."""
    with pytest.raises(GraderFault, match="ended before the test did") as raised:
        await stage.run("import os\nos._exit(0)")
    assert raised.value.code == "test_died"
    assert (await stage.run("pass")).passed


async def test_many_tests_run_at_once(stage: Stage) -> None:
    """Tests that wait for the judge at the same time do not wait for each other."""
    waiting = 0
    everybody = anyio.Event()

    async def ask(text: str, question: str) -> tuple[bool, str]:
        nonlocal waiting
        waiting += 1
        if waiting == 20:
            everybody.set()
        await everybody.wait()
        return True, ""

    outcomes = []

    async def one() -> None:
        outcomes.append(await stage.run("assert judge.yesno('all here?')", ask=ask))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    assert [outcome.passed for outcome in outcomes] == [True] * 20


async def test_a_process_that_dies_is_replaced_and_none_is_left(tmp_path: Path) -> None:
    """Where the process died between two tests, the next one is executed in a new one, and none is left in the end."""
    stage = Stage(tmp_path, seconds=20)
    async with stage.runner.running():
        first = int((await stage.run("import os\nprint(os.getppid())")).printed)
        os.kill(first, 9)
        second = int((await stage.run("import os\nprint(os.getppid())")).printed)
        assert first != second
    assert not _is_running(first)
    assert not _is_running(second)


async def test_a_process_whose_end_is_not_seen_yet_is_replaced(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that finds nobody to fork for it is executed in a new process, and gives its own outcome."""
    first = int((await stage.run("import os\nprint(os.getppid())")).printed)
    os.kill(first, 9)
    monkeypatch.setattr(function_runner._Process, "is_alive", True)
    assert (await stage.run("return 0.5")).reward == 0.5


def _is_running(pid: int) -> bool:
    """Say whether a process is there and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
