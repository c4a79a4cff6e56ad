"""An agent that does not end when it is cancelled is left behind: by its trial, by the loop, and by the process."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tbadapters.core.abandoned import abandoned_tasks
from tbadapters.core.event_loop import run_to_end

DATA = Path(__file__).parent.parent / "data"
AGENT, DESK = f"{DATA / 'agents.py'}:undying", str(DATA / "desk.py")
SCRIPT = f"""
from tbadapters import Limits, evaluate_sync
limits = Limits(seconds=0.3, grace=0.1)
result = evaluate_sync({AGENT!r}, suite={DESK!r}, tasks=1, trials=2, limits=limits, progress="off", out=OUT)
print("abandoned:", result.abandoned)
"""


def ran(*command):
    """Run Python in a process of its own, which must end by itself."""
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=30, check=False)


def test_the_command_line_prints_and_exits(tmp_path):
    """The figures are printed with the number of abandoned attempts, and the process ends."""
    run = ["-m", "tbadapters", "run", AGENT, "--suite", DESK, "--tasks", "1", "--trials", "2", "--out", str(tmp_path)]
    done = ran(*run, "--limit", "seconds=0.3", "--limit", "grace=0.1")
    assert done.returncode == 0, done.stderr
    assert "Abandoned: 2 attempts" in " ".join(done.stdout.split())
    assert "Run folder:" in done.stdout


def test_a_program_goes_on_and_exits(tmp_path):
    """evaluate_sync() returns, and the program that called it ends without a complaint."""
    done = ran("-c", SCRIPT.replace("OUT", repr(str(tmp_path))))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "abandoned: 2\n"
    assert done.stderr == ""


def test_a_loop_ends_when_all_its_tasks_do():
    """What ends within its time is waited for, and its loop is closed; the work's own error comes through."""
    ended = []

    async def slow():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.05)
            ended.append(1)

    async def work():
        kept = asyncio.get_running_loop().create_task(slow())
        await asyncio.sleep(0)
        assert not kept.done()
        raise KeyError("the work's own")

    with pytest.raises(KeyError, match="own"):
        run_to_end(work())
    assert ended == [1]
    assert not abandoned_tasks()
