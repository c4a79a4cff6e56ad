"""What may be passed as an agent that runs in another process, and what is refused with the line that works."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import shapes

from tbadapters import UsageError, evaluate, factory
from tbadapters.cli import main
from tbadapters.core.errors import InvalidOption, UnknownAgentType
from tbadapters.core.store import read_manifest
from tbadapters.isolation.spec import importable

DATA = Path(__file__).parent.parent / "data"
FILE = DATA / "isolated" / "shapes.py"


@pytest.fixture
def run(desk, tmp_path):
    """Return evaluate() in processes on the desk suite."""

    async def run(agent, **options):
        options = {"suite": desk, "tasks": 1, "trials": 1, "out": tmp_path, "isolation": "process"} | options
        return await evaluate(agent, **options, progress="off")

    return run


@pytest.mark.parametrize(
    ("agent", "spec"),
    [
        (shapes.plain, "shapes:plain"),
        (shapes.marked, "shapes:make"),
        (factory(shapes.make), "shapes:make"),
        (shapes.decorated, "shapes:decorated"),
        ("shapes:asking", "shapes:asking"),
    ],
    ids=["function", "marked", "factory", "decorated", "text"],
)
def test_what_a_module_has_at_its_top(agent, spec):
    """A function and a factory are found by the name that they have in their module, and resolve to the same."""
    found = importable(agent)
    assert found.spec == spec
    assert found.resolve().name in ("plain", "make", "decorated", "asking")


@pytest.mark.parametrize("agent", [shapes.closure, lambda message, ctx: "hi", shapes.asking, factory(lambda tools: 1)])
def test_what_can_not_be_handed_over(agent):
    """A closure, a lambda and an object are refused with a sentence that shows what works."""
    with pytest.raises(UnknownAgentType, match=r'"module:attr" or "file.py:attr"'):
        importable(agent)


async def test_a_bare_factory_runs(run):
    """factory(make) of a module's own function is called in each attempt's process."""
    result = await run(factory(shapes.make))
    assert (result.agent, result.framework, result.pass_at_1) == ("make", "function", 1.0)


async def test_approvals_and_notes(run, desk):
    """An agent's questions for approval are answered here, and its remarks are in the record, in order."""
    (record,) = (await run(f"{FILE}:asking")).records
    assert [e.text for e in record.transcript if e.kind == "approval"] == ["Approved: set_status", "Denied: resolve"]
    assert record.messages[-1].text.startswith("{'a': True, 'b': False}")
    notes = [e.text for e in record.transcript if e.kind == "note"]
    assert notes == [f"opened {len(desk.policy)} 100", "closed"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (f"{FILE}:nobody", "has no 'nobody'"),
        ("no_such_module:agent", "there is no module"),
        (f"{FILE}:make", "builds an agent"),
        (f"{FILE}:CLAIM", "can't be run as an agent|can't be imported"),
    ],
)
async def test_what_is_wrong_is_said_before_the_first_trial(run, tmp_path, spec, says):
    """What the other process can't import or run is refused in one sentence, and no run folder is made."""
    with pytest.raises(UsageError, match=says):
        await run(spec)
    assert list(tmp_path.iterdir()) == []


async def test_a_factory_that_fails_is_named(run):
    """A factory's own mistake is said before the first trial."""
    with pytest.raises(UsageError, match="broken failed: LookupError: no model"):
        await run(factory(shapes.broken))


async def test_an_unknown_kind_is_refused(run):
    """Isolation is none or process."""
    with pytest.raises(InvalidOption, match="'none', 'process'"):
        await run(f"{FILE}:plain", isolation="container")


def test_a_script_that_does_not_guard_its_call(tmp_path):
    """A script whose own agent is evaluated without a guard is told where the guard goes."""
    script = tmp_path / "script.py"
    script.write_text(
        "from tbadapters import evaluate_sync\n"
        "async def agent(message, ctx):\n    return 'hi'\n"
        f"evaluate_sync(agent, suite={str(DATA / 'desk.py')!r}, isolation='process', out={str(tmp_path)!r})\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=50)
    assert "put that under `if __name__ == '__main__':`" in done.stderr.splitlines()[-1]


@pytest.mark.timeout(120)
async def test_the_same_verdicts_for_any_concurrency(run):
    """Verdicts are the same, trial by trial, for any concurrency with isolation and without."""
    told = []
    for isolation, concurrency in (("none", 16), ("process", 1), ("process", 16), ("process", 200)):
        result = await run(
            f"{DATA / 'agents.py'}:odd_even", tasks=None, trials=4, isolation=isolation, concurrency=concurrency
        )
        told.append([(r.task, r.index, r.passed, r.end_reason, r.messages) for r in result.records])
    assert told[0] == told[1] == told[2] == told[3]
    assert Counter(passed for _, _, passed, *_ in told[0]) == {True: 4, False: 8}


def test_the_command_line_and_its_resume(tmp_path, capsys):
    """--isolation is kept with the run, and a resume goes by it."""
    run = ["run", f"{DATA / 'agents.py'}:good", "--suite", str(DATA / "desk.py"), "--tasks", "1", "--trials", "1"]
    with pytest.raises(SystemExit) as left:
        main([*run, "--isolation", "process", "--out", str(tmp_path), "--progress", "off"])
    assert left.value.code == 0
    (folder,) = tmp_path.iterdir()
    assert read_manifest(folder)["isolation"] == "process"
    with pytest.raises(SystemExit) as left:
        main(["run", f"{DATA / 'agents.py'}:good", "--resume", str(folder), "--progress", "off"])
    assert left.value.code == 0
    assert "100.0%" in capsys.readouterr().out
