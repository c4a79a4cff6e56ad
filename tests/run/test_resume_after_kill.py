"""A process that is killed in the middle of a run loses no committed trial, and none is run twice."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tbadapters import load_result

DATA = Path(__file__).parent.parent / "data"
RUN = [sys.executable, "-m", "tbadapters", "run", f"{DATA / 'agents.py'}:slow_mixed", "--progress", "off"]
NEW = ["--suite", str(DATA / "desk.py"), "--trials", "40", "--concurrency", "4"]


def start(arguments, **environment):
    """Start a command line in a process of its own."""
    return subprocess.Popen(
        [*RUN, *arguments],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def committed(out):
    """Return what is committed in the only run folder below ``out``: (task, trial, attempt) -> record."""
    found = list(out.glob("*/run.db"))
    if not found:
        return {}
    try:
        with closing(sqlite3.connect(f"file:{found[0]}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT task, trial, attempt, record FROM attempts").fetchall()
    except sqlite3.OperationalError:  # it is being made
        return {}
    return {row[:3]: row[3] for row in rows}


def kill_when(process, out, trials):
    """Kill the process without warning as soon as so many trials are committed."""
    deadline = time.monotonic() + 30
    while len(committed(out)) < trials:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()


@pytest.mark.timeout(120)
def test_killed_run_resumes_to_the_same_result(tmp_path):
    """After three kills and resumes every committed record is as it was, and the figures are the uninterrupted ones."""
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    process = start([*NEW, "--out", str(whole)], SLOW_SECONDS="0")
    _, errors = process.communicate()
    assert process.returncode == 0, errors

    kill_when(start([*NEW, "--out", str(broken)]), broken, 10)
    before = committed(broken)
    (folder,) = broken.iterdir()
    for more in (30, 60):
        kill_when(start(["--resume", str(folder)]), broken, more)
        now = committed(broken)
        assert {key: now[key] for key in before} == before
        before = now
    process = start(["--resume", str(folder)], SLOW_SECONDS="0")
    _, errors = process.communicate()
    assert process.returncode == 0, errors

    after = committed(broken)
    assert {key: after[key] for key in before} == before
    assert len(after) == len({key[:2] for key in after}) == 120
    (reference,) = whole.iterdir()
    assert _comparable(load_result(folder)) == _comparable(load_result(reference))


def _comparable(result):
    data = result.to_dict()
    for trial in data["trials"]:
        trial.pop("seconds")
    return data
