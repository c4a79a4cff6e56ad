"""No scripted attack raises a verdict where the agent has a process of its own; docs/isolation.md lists the others."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters import Limits, Retries, RunStopped, evaluate, load_result, load_suite

ROOT = Path(__file__).parents[2]
ATTACKS = ROOT / "tests" / "data" / "isolated" / "attacks.py"
FULL = os.environ.get("TBADAPTERS_FULL") == "1"


@pytest.fixture(scope="module")
def names():
    """Return the attacks' names."""
    import attacks

    return list(attacks.ATTACKS)


def admitted():
    """Return the attacks that docs/isolation.md lists as those that succeed without isolation."""
    page = (ROOT / "docs" / "isolation.md").read_text()
    return re.findall(r"^\| `(.+?)` \|", page.partition("## What succeeds without isolation")[2], re.MULTILINE)


@pytest.fixture(scope="module")
def besieged(names):
    """Return a suite with a task for each attack."""
    return load_suite(ROOT / "tests" / "data" / "desk.py", size=len(names))


async def test_no_attack_raises_a_verdict(names, besieged, tmp_path):
    """Of at least 50 attacks none passes its trial, in the result, in the files, and on the page."""
    result = await evaluate(
        f"{ATTACKS}:agent", suite=besieged, trials=1, isolation="process", concurrency=8,
        limits=Limits(seconds=40), retries=Retries(attempts=1), out=tmp_path, progress="off",
    )  # fmt: skip
    passed = [names[int(r.task.rpartition("/")[2]) - 1] for r in result.records if r.passed]
    assert len(names) >= 50
    assert len(result.records) == len(names)
    assert passed == []
    assert result.pass_at_1 == 0.0
    assert (await to_thread.run_sync(load_result, result.folder)).pass_at_1 == 0.0
    assert json.loads((result.folder / "results.json").read_text())["figures"]["pass@1"]["value"] == 0.0
    page = (result.folder / "report.html").read_text()
    assert "<script>document.title" not in page
    assert "\x1b" not in page + str(result)


@pytest.mark.parametrize(
    "name", ["forges_the_record", "adds_a_record", "deletes_the_record", "forges_the_manifest", "writes_the_report"]
)
async def test_what_is_written_into_the_run_folder(desk, tmp_path, monkeypatch, name):
    """Whoever writes into the run folder while the run is under way changes no figure of it, and is told of."""
    monkeypatch.setenv("ATTACKED", str(tmp_path))
    monkeypatch.setenv("FOLDER_ATTACK", name)
    run = evaluate(
        f"{ATTACKS}:folder_agent",
        suite=desk,
        trials=2,
        isolation="process",
        concurrency=1,
        out=tmp_path,
        progress="off",
    )
    if name == "writes_the_report":  # each file is written anew
        assert (await run).pass_at_1 == 0.0
    else:
        with pytest.raises(RunStopped, match=r"changed under the run's hands|Nothing can be recorded"):
            await run
    (folder,) = tmp_path.iterdir()
    told = json.loads((folder / "results.json").read_text())
    assert told["figures"]["pass@1"]["value"] == 0.0
    assert len(told["tasks"]) == 3
    assert bool(told["stopped"]) == (name != "writes_the_report")
    assert "pass@1 is 100.0%" not in (folder / "report.html").read_text()


@pytest.mark.skipif(not FULL, reason="one process an attack: TBADAPTERS_FULL=1")
@pytest.mark.timeout(900)
def test_what_succeeds_without_isolation(names, tmp_path):
    """In one process with the agent, exactly the attacks that the documentation lists succeed."""
    done = subprocess.run([sys.executable, ATTACKS, tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == admitted(), done.stderr
    assert set(admitted()) < set(names)
