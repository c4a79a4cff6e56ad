"""The command line: what it prints, and one sentence with a documented exit code for whatever is asked wrongly."""

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from tbadapters import __version__
from tbadapters.cli import main

DATA = Path(__file__).parent.parent / "data"
AGENTS, DESK = DATA / "agents.py", str(DATA / "desk.py")


def tbadapters(*arguments, **options):
    """Run the command line in a process of its own."""
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-m", "tbadapters", *arguments],
        env=environment, capture_output=True, text=True, timeout=50, check=False, **options,
    )  # fmt: skip


@pytest.fixture
def called(capsys, monkeypatch):
    """Return what runs the command line in this process: exit code, standard output and standard error."""
    monkeypatch.setenv("COLUMNS", "200")

    def called(*arguments):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        return SimpleNamespace(returncode=left.value.code, **capsys.readouterr()._asdict())

    return called


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a run of the half-right agent."""
    out = tmp_path_factory.mktemp("runs")
    done = tbadapters("run", f"{AGENTS}:odd_even", "--suite", DESK, "--trials", "2", "--out", str(out))
    assert done.returncode == 0, done.stderr
    (folder,) = out.iterdir()
    return folder


def test_run_prints_plan_figures_and_folder(tmp_path):
    """The plan goes to standard error before the first trial; figures and folder are printed; exit code 0."""
    done = tbadapters("run", f"{AGENTS}:odd_even", "--suite", DESK, "--trials", "2", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "6 trials planned (3 tasks x 2)" in done.stderr
    assert "pass@1" in done.stdout
    (folder,) = tmp_path.iterdir()
    assert f"Run folder: {folder}" in done.stdout
    assert json.loads((folder / "results.json").read_text())["coverage"]["valid"] == 6
    assert f"Page: {folder / 'report.html'}" in done.stdout
    (command,) = re.findall(r"A failed trial: tbadapters (show .+)", done.stdout)
    shown = tbadapters(*shlex.split(command))
    assert ": failed" in shown.stdout.splitlines()[0], shown.stderr


def test_tasks_and_limits_are_chosen(called, tmp_path):
    """--tasks takes ids, patterns and numbers, --limit takes name=value."""
    options = ["--suite", DESK, "--trials", "1", "--out", str(tmp_path), "--limit", "tool_calls=1", "--tasks"]
    done = called("run", f"{AGENTS}:good", *options, "hold/2,hold/3")
    assert done.returncode == 0, done.err
    (folder,) = tmp_path.iterdir()
    trials = json.loads((folder / "results.json").read_text())["trials"]
    assert [t["task"] for t in trials] == ["desk/hold/2", "desk/hold/3"]
    assert {t["end_reason"] for t in trials} == {"tool_calls"}


def test_compare_prints_the_pairs(called, tmp_path):
    """Compare runs named agents and prints how they differ and where the pages are."""
    named = [f"right={AGENTS}:good", f"half={AGENTS}:odd_even"]
    done = called("compare", *named, "--suite", DESK, "--trials", "2", "--out", str(tmp_path))
    assert done.returncode == 0, done.err
    assert "right" in done.out
    assert "half" in done.out
    assert len(re.findall(r"report\.html", done.out)) == 3


def test_options_of_a_suite_stay_with_the_run(called, tmp_path):
    """A suite's own options are given as name=value, and a resume loads the suite with them again."""
    done = called(
        "run", f"{AGENTS}:good", "--suite", DESK, "--suite-option", "size=1", "--trials", "1", "--out", str(tmp_path)
    )
    assert "1 task x 1 trial" in done.out
    (folder,) = tmp_path.iterdir()
    again = called("run", f"{AGENTS}:good", "--resume", str(folder))
    assert again.returncode == 0
    assert "1 task x 1 trial" in again.out
    assert "2 tasks" in called("tasks", DESK, "--suite-option", "size=2").out
    refused = called("tasks", DESK, "--suite-option", "size")
    assert "name=value is needed" in refused.err


def test_tasks_are_listed(called):
    """Tasks lists each task with its tags."""
    done = called("tasks", DESK)
    assert done.returncode == 0, done.err
    assert "desk/hold/1" in done.out
    assert "odd" in done.out


def test_a_server_that_does_not_start_is_no_bug(called, tmp_path, monkeypatch):
    """Where a suite's server can't be started, one sentence says which, and the exit code is not that of a bug."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = ["--suite-option", f"data={DATA / 'thinkingbox_small'}", "--suite-option", "python=/no/such/python"]
    done = called("run", f"{AGENTS}:good", "--suite", "thinkingbox/front_desk", *options, "--out", str(tmp_path))
    assert done.returncode == 2
    assert done.err.splitlines()[-1].endswith("can't be started by /no/such/python: No such file or directory.")
    assert "please report it" not in done.err


def test_a_task_is_listed_on_one_line(called, tmp_path):
    """An opening of several lines is listed on the line of its task."""
    (tmp_path / "lines.py").write_text(
        f"import sys\nsys.path.append({str(DATA)!r})\nfrom dataclasses import replace\nimport desk\n"
        "whole = desk.load()\n"
        "suite = replace(whole, tasks=tuple(replace(t, opening='One.\\n\\nTwo.') for t in whole.tasks))\n"
    )
    lines = called("tasks", str(tmp_path / "lines.py")).out.splitlines()
    assert [line.endswith("  One. Two.") for line in lines[1:]] == [True, True, True], lines


def test_check_says_whether_a_suite_is_right(called, tmp_path):
    """Check exits with 0 where all checks hold, with 1 and their names where not."""
    done = called("check", DESK, "--seeds", "0")
    assert done.returncode == 0, done.out
    assert "all checks hold" in done.out
    blind = tmp_path / "blind.py"  # grades no status: whoever forgets it passes
    rules = 'rules={"tickets": TableRules(volatile=frozenset({"status"})), '
    blind.write_text(Path(DESK).read_text().replace("rules={", rules))
    done = called("check", str(blind), "--seeds", "0")
    assert done.returncode == 1
    assert "not ok: dropped action" in done.out


def test_check_tells_once_what_fails_every_check(called, tmp_path, monkeypatch):
    """A golden action that can't be run fails each check of its task; what is wrong with it is told once."""
    monkeypatch.setenv("COLUMNS", "300")
    broken = tmp_path / "broken.py"
    broken.write_text(Path(DESK).read_text().replace('GoldenAction("set_status"', 'GoldenAction("set_statos"'))
    done = called("check", str(broken), "--seeds", "0")
    assert done.returncode == 1
    assert done.out.count("There is no tool 'set_statos'") == 1
    assert done.out.count("as above") > 3
    assert done.out.count("desk/hold/") == 1


def test_show_prints_a_trial(called, folder):
    """Show prints conversation and effects of a trial."""
    done = called("show", str(folder), "hold/1", "0")
    assert done.returncode == 0, done.err
    for part in ("T-1", "missing", "hold", "set_status"):
        assert part in done.out


def test_report_is_written_again(called, folder, tmp_path):
    """Report writes the files of a run folder again, or one where it is told to."""
    (folder / "report.html").unlink()
    done = called("report", str(folder))
    assert done.returncode == 0, done.err
    assert (folder / "report.html").is_file()
    assert called("report", str(folder), "--to", str(tmp_path / "r.json")).returncode == 0
    assert (tmp_path / "r.json").read_text() == (folder / "results.json").read_text()


WRONG = {
    "unknown suite": (["run", f"{AGENTS}:good", "--suite", "neobnk"], "Did you mean 'neobank'?"),
    "no suite": (["run", f"{AGENTS}:good"], "--suite is needed"),
    "unknown task": (["run", f"{AGENTS}:good", "--suite", DESK, "--tasks", "hold/9"], "Did you mean 'desk/hold/"),
    "unknown attribute": (["run", f"{AGENTS}:goood", "--suite", DESK], "good"),
    "unimportable module": (["run", "no_such_module:agent", "--suite", DESK], "no_such_module"),
    "no agent at all": (["run", f"{AGENTS}:CLAIM", "--suite", DESK], "can't be"),
    "unmarked factory": (["run", f"{AGENTS}:boxed", "--suite", DESK], "factory(boxed"),
    "no trials": (["run", f"{AGENTS}:good", "--suite", DESK, "--trials", "0"], "trials=0"),
    "text for trials": (["run", f"{AGENTS}:good", "--suite", DESK, "--trials", "many"], "integer"),
    "unwritable out": (["run", f"{AGENTS}:good", "--suite", DESK, "--out", "/proc/none"], "can't be created"),
    "unknown limit": (["run", f"{AGENTS}:good", "--suite", DESK, "--limit", "steps=3"], "tool_calls"),
    "limit without number": (["run", f"{AGENTS}:good", "--suite", DESK, "--limit", "seconds=x"], "seconds=120"),
    "bad price": (["run", f"{AGENTS}:good", "--suite", DESK, "--price", "m=1"], "model=input,cached,output"),
    "resume of nothing": (["run", f"{AGENTS}:good", "--resume", "/nowhere"], "no run folder"),
    "show of nothing": (["show", "/nowhere", "t", "0"], "no run folder"),
    "unknown command": (["runn"], "runn"),
    "no pattern": (["run", f"{AGENTS}:good", "--suite", DESK, "--tasks", ","], "at least one task"),
    "no ceiling": (["run", f"{AGENTS}:good", "--suite", DESK, "--max-cost", "nan"], "max_cost=nan"),
    "no time": (["run", f"{AGENTS}:good", "--suite", DESK, "--limit", "seconds=nan"], "Limits(seconds=nan)"),
    "half a call": (["run", f"{AGENTS}:good", "--suite", DESK, "--limit", "tool_calls=2.5"], "Limits(tool_calls=2.5)"),
    "endless grace": (["run", f"{AGENTS}:good", "--suite", DESK, "--limit", "grace=none"], "Limits(grace=None)"),
    "negative seeds": (["check", DESK, "--seeds", "-1"], "--seeds"),
    "one name twice": (["compare", f"{AGENTS}:good", "a.py:good", "--suite", DESK], "a name of its own"),
    "one agent compared": (["compare", f"{AGENTS}:good", "--suite", DESK], "At least 2 agents"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_asked_wrongly_is_one_sentence(called, name, tmp_path, monkeypatch):
    """Bad input exits with 2 and one clear sentence that names the thing, without a traceback."""
    arguments, named = WRONG[name]
    monkeypatch.chdir(tmp_path)
    done = called(*arguments)
    assert done.returncode == 2, done.out + done.err
    assert named in done.err
    assert "Traceback" not in done.err
    assert not list(tmp_path.iterdir())


def test_resume_with_other_settings(called, folder):
    """A resume with another number of trials is refused with 2 and names both."""
    done = called("run", f"{AGENTS}:odd_even", "--resume", str(folder), "--trials", "3")
    assert done.returncode == 2
    assert "trials: 2 then, 3 now" in done.err


def record_of_nothing(folder):
    with closing(sqlite3.connect(folder / "run.db")) as database, database:
        database.execute("UPDATE attempts SET record = '{}'")
        database.execute("DELETE FROM copies")


def manifest_with(**changes):
    def damage(folder):
        path = folder / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


DAMAGES = {
    "record without fields": record_of_nothing,
    "record no database": lambda folder: (folder / "run.db").write_text("garbage" * 1000),
    "manifest a list": lambda folder: (folder / "manifest.json").write_text("[]"),
    "manifest no JSON": lambda folder: (folder / "manifest.json").write_text("{"),
    "manifest not UTF-8": lambda folder: (folder / "manifest.json").write_bytes(b"\xff"),
    "manifest without tasks": manifest_with(tasks=[]),
    "manifest without settings": manifest_with(settings={}),
    "tasks of another kind": manifest_with(tasks=["desk/hold/1"]),
    "prices of another kind": manifest_with(prices={"m": [1, 2, 3]}),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_run_folder_is_one_sentence(called, folder, tmp_path, name):
    """Whatever is damaged in a run folder, report, show and resume name the folder in one sentence and exit with 2."""
    damaged = tmp_path / "damaged"
    shutil.copytree(folder, damaged)
    for beside in damaged.glob("run.db-*"):
        beside.unlink()
    DAMAGES[name](damaged)
    for command in (
        ["report", str(damaged)],
        ["show", str(damaged), "hold/1", "0"],
        ["run", f"{AGENTS}:odd_even", "--resume", str(damaged)],
    ):
        done = called(*command)
        assert done.returncode == 2, done.out + done.err
        assert str(damaged) in done.err
        assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("debug", [False, True])
def test_a_bug_of_ours_is_named(called, tmp_path, monkeypatch, debug):
    """An error that nobody foresaw exits with 70 and a sentence with the run folder; a traceback only where asked."""

    async def broken(*args, **options):
        raise ZeroDivisionError("a bug \x1b[31m")

    monkeypatch.setattr("tbadapters.core.runner.run_trial", broken)
    if debug:
        monkeypatch.setenv("TBADAPTERS_DEBUG", "1")
    done = called("run", f"{AGENTS}:good", "--suite", DESK, "--progress", "off", "--out", str(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert done.returncode == 70
    last = done.err.splitlines()[-1]
    assert "bug in tbadapters" in last
    assert "ZeroDivisionError: a bug" in last
    assert str(folder) in last
    assert "\x1b" not in last
    assert ("Traceback" in done.err) == debug
    assert debug or len(done.err.splitlines()) == 1


def test_a_run_is_resumed_from_any_folder(called, tmp_path, monkeypatch):
    """A suite's file that was named relative to the working directory is found again from another one."""
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for made in (home, elsewhere):
        made.mkdir()
    shutil.copy(DESK, home / "mine.py")
    monkeypatch.chdir(home)
    done = called("run", f"{AGENTS}:liar", "--suite", "mine.py", "--trials", "1", "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.err
    (folder,) = (tmp_path / "out").iterdir()
    monkeypatch.chdir(elsewhere)
    done = called("run", f"{AGENTS}:liar", "--resume", str(folder))
    assert done.returncode == 0, done.err


def test_a_stopped_comparison_names_every_folder(called, tmp_path):
    """A comparison that was stopped says for each agent how its run goes on, and that line works."""
    named = [f"mine={AGENTS}:priced", f"theirs={AGENTS}:priced"]
    options = ["--suite", DESK, "--trials", "2", "--concurrency", "1", "--progress", "off"]
    out = ["--out", str(tmp_path)]
    done = called("compare", *named, *options, *out, "--price", "m=1,1,1", "--max-cost", "2")
    assert done.returncode == 4, done.err
    assert ".." not in done.err
    folders = re.findall(r"--resume (\S+)", done.err)
    assert len(set(folders)) == 2
    for folder in folders:
        done = called("run", f"{AGENTS}:priced", "--resume", folder)
        assert done.returncode == 0, done.err
        assert "(function) on desk" in done.out


def test_a_providers_escape_sequences_are_not_printed(called, tmp_path):
    """What a provider's error says is printed with its control characters made visible."""
    done = called("run", f"{AGENTS}:refused", "--suite", DESK, "--trials", "1", "--out", str(tmp_path))
    assert done.returncode == 4
    assert "no credit" in done.err
    assert "\x1b" not in done.err


def test_unknown_trial_to_show(called, folder):
    """A trial that was not run is answered with those that were."""
    done = called("show", str(folder), "hold/1", "7")
    assert done.returncode == 2
    assert "7" in done.err


def test_interrupt_finishes_what_is_under_way(tmp_path):
    """The first Ctrl-C ends the trials under way, keeps them, says how to go on, and exits with 130."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tbadapters", "run", f"{AGENTS}:slow_mixed", "--suite", DESK, "--trials", "200",
         "--out", str(tmp_path), "--concurrency", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"SLOW_SECONDS": "0.05"},
    )  # fmt: skip
    while not list(tmp_path.glob("*/run.db-wal")):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "--resume" in errors
    assert "pass@1" in output
    (folder,) = tmp_path.iterdir()
    trials = json.loads((folder / "results.json").read_text())["coverage"]
    assert 0 < trials["valid"] < 600


def test_second_interrupt_says_what_is_kept(tmp_path):
    """The second Ctrl-C ends the run at once, and says in which folder what is finished is."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tbadapters", "run", f"{AGENTS}:slow_mixed", "--suite", DESK, "--out", str(tmp_path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"SLOW_SECONDS": "20"},
    )  # fmt: skip
    while not list(tmp_path.glob("*/run.db-wal")):
        assert process.poll() is None
        time.sleep(0.02)
    time.sleep(0.5)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 130, errors
    (folder,) = tmp_path.iterdir()
    assert f"What is finished is kept in {folder}. Go on with" in errors


def test_help_documents_exit_codes(called):
    """--help says what each exit code means."""
    done = called("--help")
    assert done.returncode == 0
    for code in ("0 done", "2 usage", "70 a bug", "130 interrupted"):
        assert code in " ".join(done.out.split())


def test_help_leads_with_what_is_needed_first(called):
    """--help lists the commands in the order of their use, each with a whole sentence; --version says which this is."""
    lines = called("--help").out.partition("Commands:")[2].partition("Exit codes:")[0].splitlines()
    told = dict(line.split(None, 1) for line in lines if re.match(r"  [a-z]", line))
    assert list(told)[:4] == ["demo", "tasks", "run", "compare"]
    assert [name for name, sentence in told.items() if not sentence.endswith(".")] == []
    assert called("--version").out.strip() == f"tbadapters {__version__}"


def test_report_compares_several_runs(called, folder, tmp_path):
    """Report takes several run folders, each under a name of its own, and writes their comparison where it is told to."""
    done = called("report", str(folder), f"again={folder}", "--to", str(tmp_path / "c.md"))
    assert done.returncode == 0, done.err
    assert "can't be told apart" in done.out
    assert "`again`" in (tmp_path / "c.md").read_text(encoding="utf-8")
    done = called("report", str(folder), str(folder))
    assert done.returncode == 2
    assert "a name of its own" in done.err


def test_report_takes_a_coverage_floor(called, folder):
    """A floor that the run does not reach takes its headline away, one out of range is refused."""
    assert "pass@1 is" in called("report", str(folder), "--coverage-floor", "1").out
    done = called("report", str(folder), "--coverage-floor", "2")
    assert done.returncode == 2
    assert "coverage_floor=2.0" in done.err
