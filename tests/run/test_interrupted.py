"""A run that its disk, its user or another process interrupts ends in a sentence, and goes on later."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tbadapters import load_result

DATA = Path(__file__).parent.parent / "data"
AGENT, SUITE = f"{DATA / 'agents.py'}:slow_mixed", str(DATA / "desk.py")
NEW = ["--suite", SUITE, "--trials", "40", "--concurrency", "4"]


def start(*arguments, seconds=0.05, agent=AGENT, **options):
    """Start a command line in a process of its own; each trial takes so many seconds."""
    return subprocess.Popen(
        [sys.executable, "-m", "tbadapters", "run", agent, "--progress", "off", *arguments],
        env=os.environ | {"SLOW_SECONDS": str(seconds)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        **options,
    )  # fmt: skip


def folder_in(out, process):
    """Return the run folder as soon as a trial may be committed there."""
    while not (found := list(out.glob("*/run.db-wal"))):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    return found[0].parent


def ended(process):
    """Return exit code, standard output and standard error of a run that ends by itself."""
    output, errors = process.communicate(timeout=50)
    return process.returncode, output, errors


def resumed(folder, valid):
    """Resume to the end; return the result, of which so many trials were there before."""
    code, _, errors = ended(start("--resume", str(folder), seconds=0))
    assert code == 0, errors
    result = load_result(folder)
    assert (result.coverage.valid, result.coverage.missing) == (120, 0)
    assert len(result.faulted) == 0
    assert valid > 0
    return result


def test_a_disk_that_fills_stops_the_run_and_loses_nothing(tmp_path):
    """When no file may grow any more, the run stops with a sentence; what was committed is read and the rest is run."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300 * 1024, 300 * 1024))

    process = start(*NEW, "--out", str(tmp_path), seconds=0.01, preexec_fn=limited)
    code, _, errors = ended(process)
    assert code == 4, errors
    assert "Nothing can be recorded any more" in errors
    assert "Traceback" not in errors
    (folder,) = tmp_path.iterdir()
    valid = load_result(folder).coverage.valid
    assert 0 < valid < 120
    resumed(folder, valid)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own that holds 2 MB, where this may be made."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("a file system can't be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk(small_disk):
    """On a disk that is full the run stops; when there is room again it goes on where it stopped."""
    filler = small_disk / "filler"
    filler.write_bytes(bytes(1_300_000))
    process = start(*NEW, "--out", str(small_disk / "runs"), seconds=0.01)
    code, _, errors = ended(process)
    assert code == 4, errors
    assert "full" in errors
    (folder,) = (small_disk / "runs").iterdir()
    valid = load_result(folder).coverage.valid
    assert 0 < valid < 120
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    resumed(folder, valid)


def test_the_first_interrupt_ends_what_is_under_way_the_second_ends_at_once(tmp_path):
    """After two Ctrl-C the process ends without waiting for its trials; what is committed stays."""
    process = start(*NEW, "--out", str(tmp_path), seconds=0.05)
    folder = folder_in(tmp_path, process)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    code, output, errors = ended(process)
    assert code == 130, errors
    assert "Finishing the trials under way" in errors
    valid = load_result(folder).coverage.valid
    assert f"{valid}" in output

    slow = start("--resume", str(folder), seconds=30)
    while (folder / "stopped.txt").exists():  # it is forgotten when the run goes on
        assert slow.poll() is None
        time.sleep(0.01)
    time.sleep(0.5)
    slow.send_signal(signal.SIGINT)
    time.sleep(0.3)
    slow.send_signal(signal.SIGINT)
    began = time.monotonic()
    code, _, errors = ended(slow)
    assert code == 130, errors
    assert time.monotonic() - began < 15
    assert "Traceback" not in errors
    assert load_result(folder).coverage.valid == valid


def test_two_processes_on_one_folder(tmp_path):
    """While one process runs in a folder, another one is refused with a sentence, and disturbs nothing."""
    first = start(*NEW, "--out", str(tmp_path), seconds=0.2)
    folder = folder_in(tmp_path, first)
    code, _, errors = ended(start("--resume", str(folder), seconds=0))
    assert code == 2
    assert "in use by another process" in errors
    assert len(errors.splitlines()) == 1
    assert first.poll() is None
    code, _, errors = ended(first)
    assert code == 0, errors
    results = json.loads((folder / "results.json").read_text())
    assert results["coverage"]["valid"] == 120
