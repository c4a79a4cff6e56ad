"""The command gate, as a script uses it: its exit code alone decides what the script does next."""

import contextlib
import os
import subprocess
import sys

import pytest
from synthetic_runs import keep, result_of

from tbadapters.cli import main

T, F, N = True, False, None
RUNS = {
    "now": [[T] * 8 + [F] * 2] * 20,
    "before": [[T] * 9 + [F]] * 20,
    "little": [[T] * 8 + [N] * 2] * 20,
    "swung": [[T] * 10] * 9 + [[T] * 5 + [F] * 5] * 6 + [[T] * 8 + [F] * 2] * 5,
}
SCRIPT = """#!/bin/sh
# Deploys only where the gate is open; says in words why not.
"$PYTHON" -m tbadapters gate "$@"
code=$?
case $code in
  0) echo "deployed" ;;
  1) echo "held back: not good enough" ;;
  3) echo "held back: run the missing trials first" ;;
  *) echo "held back: wrongly asked" ;;
esac
exit $code
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a folder with the run folders of RUNS."""
    out = tmp_path_factory.mktemp("runs")
    for name, outcomes in RUNS.items():
        keep(result_of(outcomes), out / name)
    (out / "deploy.sh").write_text(SCRIPT)
    return out


SCRIPTED = {
    "met": (["now", "--require", "pass@1>=0.8", "--require", "task:t*:pass@1>=75%"], 0, "deployed"),
    "not met": (["now", "--require", "pass@1>=0.8", "--require", "observed k/k>=0.5"], 1, "not good enough"),
    "a regression": (["now", "--against", "before", "--max-drop", "0.03"], 1, "not good enough"),
    "usage": (["now", "--require", "accuracy>=0.5"], 2, "wrongly asked"),
    "too little coverage": (["little", "--require", "pass@1>=0.5"], 3, "run the missing trials first"),
}


@pytest.mark.parametrize("command", [["gate", "now", "--require", "pass@1>=0"], ["report", "now", "--to", "r.md"]])
@pytest.mark.parametrize(("price", "code"), [("gpt-4o-mini=1,0.1,2", 0), ("openai:gpt-4o-mini=1,0.1,2", 2)])
def test_a_price_of_a_model_that_nobody_asked_is_refused(runs, capsys, command, price, code):
    """A model misspelt in --price does not keep its other price without a word; the sentence names the model meant."""
    with contextlib.chdir(runs), pytest.raises(SystemExit) as ended:
        main([*command, "--price", price])
    assert ended.value.code == code
    if code:
        assert "no asked model 'openai:gpt-4o-mini'. Did you mean 'gpt-4o-mini'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_script_is_told_by_the_exit_code(runs, name):
    """0 met, 1 not met or a regression, 2 usage, 3 coverage too low: a shell script does what each asks for."""
    arguments, code, said = SCRIPTED[name]
    done = subprocess.run(
        ["sh", "deploy.sh", *arguments], cwd=runs, env=os.environ | {"PYTHON": sys.executable},
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout.splitlines()[-1]
    assert len(done.stderr.splitlines()) == (code == 2)


CODES = {
    "one task not met": (["swung", "--require", "task:t1?:pass@1>=0.9"], 1),
    "a drop that may be chance": (["swung", "--against", "before", "--max-drop", "0.03"], 0),
    "a drop that is put up with": (["now", "--against", "before", "--max-drop", "0.2"], 0),
    "too little coverage of the baseline": (["now", "--against", "little"], 3),
    "a lower floor": (["little", "--require", "pass@1>=0.5", "--coverage-floor", "0.8"], 0),
    "nothing required": (["now"], 2),
    "no number": (["now", "--require", "pass@1>=high"], 2),
    "no run": (["never", "--require", "pass@1>=0.5"], 2),
    "no baseline": (["now", "--against", "never"], 2),
    "a drop from nowhere": (["now", "--require", "pass@1>=0.5", "--max-drop", "0.1"], 2),
    "no such floor": (["now", "--require", "pass@1>=0.5", "--coverage-floor", "95"], 2),
    "an unknown option": (["now", "--requires", "pass@1>=0.5"], 2),
}


@pytest.mark.parametrize("name", CODES)
def test_exit_codes(runs, name, monkeypatch, capsys):
    """Each way to ask for a gate ends with its code, and what is wrongly asked in words on standard error."""
    arguments, code = CODES[name]
    monkeypatch.chdir(runs)
    with pytest.raises(SystemExit) as left:
        main(["gate", *arguments])
    output, errors = capsys.readouterr()
    assert left.value.code == code, output + errors
    assert bool(errors) == (code == 2)
    assert ("Gate: " in output) == (code != 2)


def test_the_figures_behind_it_are_printed(runs, monkeypatch, capsys):
    """Each requirement is printed with what came of it, its figure, and the interval behind it."""
    monkeypatch.chdir(runs)
    with pytest.raises(SystemExit):
        main(["gate", "now", "--require", "pass@1>=0.9", "--require", "observed k/k<1", "--against", "before"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "my-agent on bank: 200 planned, 200 valid, 0 missing trials"
    assert lines[1].startswith("  not met  pass@1>=0.9: 0.8000 (95% interval 0.")
    assert lines[2].startswith("  met      observed k/k<1: 0.0000 (0 of 20 tasks)")
    assert lines[3].startswith("  not met  no drop of pass@1 beyond 0 points against the baseline: -10.0 points")
    assert lines[4:] == ["Gate: not met"]
