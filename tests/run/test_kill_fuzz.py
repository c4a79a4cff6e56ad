"""A run that is killed again and again, at random moments, comes to what the uninterrupted run comes to."""

import os
import random
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
FULL = os.environ.get("TBADAPTERS_FULL") == "1"
KILLS, TASKS, TRIALS = (100, 50, 42) if FULL else (4, 6, 25)
AGENT = f"{DATA / 'agents.py'}:slow_mixed"
SUITE = f"{DATA / 'desk.py'}"


def command(*arguments):
    """Return a command line that runs the agent."""
    return [sys.executable, "-m", "tbadapters", "run", AGENT, "--progress", "off", *arguments]


def start(*arguments, seconds):
    """Start a run in a process group of its own; each of its trials takes so many seconds."""
    environment = os.environ | {"SLOW_SECONDS": str(seconds)}
    return subprocess.Popen(
        command(*arguments), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def committed(folder):
    """Return what is committed: (task, trial, attempt) -> record."""
    try:
        with closing(sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True)) as database:
            rows = database.execute("SELECT task, trial, attempt, record FROM attempts").fetchall()
    except sqlite3.OperationalError:  # it is being made
        return {}
    return {row[:3]: row[3] for row in rows}


def grown(folder, process, least):
    """Wait until more is committed than before; return whether the process still runs."""
    deadline = time.monotonic() + 60
    while len(committed(folder)) < least and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process.poll() is None


def without_times(result):
    """Return a result without what may differ between two runs of the same."""
    data = result.to_dict()
    for trial in data["trials"]:
        trial.pop("seconds")
    return data


def finished(process):
    """Wait for a run that nobody kills."""
    _, errors = process.communicate()
    assert process.returncode == 0, errors


@pytest.mark.timeout(3600)
def test_kills_at_random_moments_lose_and_double_nothing(tmp_path):
    """After each kill all that was committed is as it was; at the end the figures are those of the uninterrupted run."""
    planned, chance = TASKS * TRIALS, random.Random(11)
    new = ["--suite", SUITE, "--suite-option", f"size={TASKS}", "--trials", str(TRIALS), "--concurrency", "8"]
    finished(start(*new, "--out", str(tmp_path / "whole"), seconds=0))
    (whole,) = (tmp_path / "whole").iterdir()

    process = start(*new, "--out", str(tmp_path / "broken"), seconds=0.05)
    while not (found := list((tmp_path / "broken").glob("*/manifest.json"))):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    (folder,) = {path.parent for path in found}
    before, kills, early = {}, 0, 0
    while kills < KILLS:
        # Some kills hit the process while it starts or opens the folder, most while trials are under way.
        if chance.random() < 0.1:
            time.sleep(chance.random() * 2)
            early += 1
        else:
            step = max(1, (planned - len(before)) // (KILLS - kills + 1))
            assert grown(folder, process, len(before) + chance.randint(1, step)), process.stderr.read()
            time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        kills += 1
        now = committed(folder)
        assert {key: now.get(key) for key in before} == before
        before = now
        process = start("--resume", str(folder), seconds=0.05)
    finished(process)

    after = committed(folder)
    print(f"\n{kills} kills ({early} at any moment, the start included) over {planned} trials; {len(before)} committed "  # noqa: T201  (the figures of a full run)
          f"at the last kill; {len(after)} attempts of {len({key[:2] for key in after})} trials at the end")  # fmt: skip
    assert {key: after[key] for key in before} == before
    assert len(after) == len({key[:2] for key in after}) == planned
    assert without_times(load_result(folder)) == without_times(load_result(whole))
