"""The command line's --user and --judge."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tbadapters.testing import Reply, ScriptedModelServer

DATA = Path(__file__).parent.parent / "data"
GOOD, DESK = f"{DATA / 'agents.py'}:good", str(DATA / "desk.py")


def tbadapters(*arguments, url="http://127.0.0.1:9"):
    """Run the command line in a process of its own, its models at this address."""
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "any"}
    command = [sys.executable, "-m", "tbadapters", *arguments, "--progress", "off"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=55, check=False)


def user(turn):
    """Play the desk's user."""
    done = any("is booked" in message.text for message in turn.messages)
    answer = ("finished", "Thank you.") if done else ("answer", "Tuesday suits me.")
    return Reply(tool_calls=[(turn.tools[0].name, dict(zip(("decision", "message"), answer, strict=True)))])


def test_a_model_by_name_plays_the_user_and_does_so_when_the_run_goes_on(tmp_path):
    """Its tokens and price are printed apart from the agent's; a resume takes user and judge from the manifest."""
    with ScriptedModelServer(user) as server:
        options = ("--suite", DESK, "--trials", "1", "--out", str(tmp_path), "--user", "openai:gpt-5-mini")
        done = tbadapters("run", GOOD, *options, "--judge", "openai:gpt-5", url=server.url)
        assert done.returncode == 0, done.stderr
        assert f"The user: {server.totals.total_tokens:,} tokens, cost $" in " ".join(done.stdout.split())
        (folder,) = tmp_path.iterdir()
        settings = json.loads((folder / "manifest.json").read_text())["settings"]
        assert (settings["user"], settings["judge"]) == ("openai:gpt-5-mini", "openai:gpt-5")
        assert tbadapters("run", GOOD, "--resume", str(folder), url=server.url).returncode == 0


def test_a_user_that_is_none_is_refused_in_one_sentence(tmp_path):
    """Nothing is run, nothing is left behind."""
    done = tbadapters("run", GOOD, "--suite", DESK, "--out", str(tmp_path / "runs"), "--user", "scriptd")
    assert done.returncode == 2
    assert "user='scriptd': 'scripted' is needed, or a model such as 'openai:gpt-5-mini'." in done.stderr
    assert not (tmp_path / "runs").exists()
