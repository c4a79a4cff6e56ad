"""Nothing is left after a run: files, threads, tasks, processes, temporary folders, memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data"
RUNS = 20
SCRIPT = f"""
import asyncio, gc, json, os, sys, tempfile, threading
from pathlib import Path
from tbadapters import evaluate, load_suite
from tbadapters.isolation.offspring import offspring

isolation, runs, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
tempfile.tempdir = out + "/temporary"
os.mkdir(tempfile.tempdir)
desk = load_suite({str(DATA / "desk.py")!r})

def left():
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {{
        "files": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "processes": len(offspring(os.getpid())),
        "temporary": len(os.listdir(tempfile.tempdir)),
        "megabytes": pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
    }}

async def main():
    found = []
    for number in range(runs):
        agent = {str(DATA / "agents.py")!r} + (":good_sync" if number % 2 else ":good")
        result = await evaluate(agent, suite=desk, trials=2, isolation=isolation, out=out + "/runs", progress="off")
        assert result.pass_at_1 == 1.0
        found.append(left())
    print(json.dumps(found))

asyncio.run(main())
"""


@pytest.mark.timeout(220)
@pytest.mark.parametrize(
    ("isolation", "runs"), [("none", RUNS), ("process", 5 if not os.environ.get("TBADAPTERS_FULL") else RUNS)]
)
def test_many_runs_in_one_process(tmp_path, isolation, runs):
    """After each of many runs there are as many files, threads, tasks, processes and temporary files as after the second."""
    command = [sys.executable, "-W", "error", "-c", SCRIPT, isolation, str(runs), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    for noun in ("files", "threads", "tasks", "processes", "temporary"):
        assert len({left[noun] for left in found[1:]}) == 1, [left[noun] for left in found]
    assert found[-1]["processes"] == 0
    assert found[-1]["temporary"] == 0
    assert found[-1]["tasks"] == 1  # the one that asks
    # What the first runs load stays; after them an agent's run may keep next to nothing.
    assert found[-1]["megabytes"] - found[len(found) // 2]["megabytes"] < 5, [left["megabytes"] for left in found]
