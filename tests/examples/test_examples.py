"""Every example runs as its reader would run it, and its figures are those that the stand-in was told to play."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tbadapters import load_result, load_suite
from tbadapters.core.errors import UsageError
from tbadapters.reports.terminal import show_trial
from tbadapters.testing import GoldenPolicy, Outcomes, ScriptedModelServer
from tbadapters.testing.stand_in import OUTCOMES, SCRIPTED_NOTICE, model_endpoint

EXAMPLES = Path(__file__).parents[2] / "examples"
ONE_AGENT = {  # example -> suite, framework, tasks, trials of each
    "evaluate_langgraph": ("neobank", "langgraph", 3, 5),
    "openai_agents_triage": ("neobank", "openai-agents", 2, 3),
    "pydantic_ai_agent": ("neobank", "pydantic-ai", 3, 3),
    "custom_agent": ("neobank", "function", 3, 3),
    "own_suite": (EXAMPLES / "own_suite.py", "pydantic-ai", 2, 5),
}
pytestmark = pytest.mark.timeout(240)  # a process of its own, which imports whole frameworks


def run(example: str, folder: Path, **variables: str) -> str:
    """Run an example in an empty folder and return what it printed."""
    ours = ("TBADAPTERS_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{example}.py"],
        cwd=folder, env={**clean, **variables, "COLUMNS": "120"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Callable[[str], tuple[str, Path]]:
    """Return what an example printed with the stand-in, and the folder in which it ran; each is run once."""

    @cache
    def once(example: str) -> tuple[str, Path]:
        folder = tmp_path_factory.mktemp(example)
        return run(example, folder), folder

    return once


def results(folder: Path) -> dict[str, dict]:
    """Return the results of the run folders in ``folder``, by the agent's name."""
    found = [json.loads(path.read_text()) for path in folder.glob("runs/*/results.json")]
    return {data["agent"]: data for data in found if "trials" in data}


def verdicts(data: dict) -> dict[tuple[str, int], str]:
    return {(trial["task"], trial["index"]): trial["verdict"] for trial in data["trials"]}


def played(suite, trials: dict[tuple[str, int], str]) -> dict[tuple[str, int], str]:
    """Return what the stand-in was to make of these trials."""
    policy = GoldenPolicy(load_suite(suite), outcomes=OUTCOMES)
    return {trial: "failed" if policy.injected(*trial).flaw else "passed" for trial in trials}


@pytest.mark.parametrize("example", ONE_AGENT)
def test_an_example_shows_what_the_stand_in_played(example, ran):
    """The verdicts of every trial are the injected ones, the printed rate agrees, and it says who plays the model."""
    suite, framework, tasks, trials = ONE_AGENT[example]
    printed, folder = ran(example)
    (data,) = results(folder).values()
    found = verdicts(data)
    assert found == played(suite, found)
    assert "failed" in found.values()
    assert len(found) == tasks * trials
    passed = sum(verdict == "passed" for verdict in found.values())
    assert f"pass@1 is {100 * passed / len(found):.1f}%" in printed
    assert f"({framework})" in printed
    assert SCRIPTED_NOTICE in printed


def test_the_readme_shows_a_trial_as_it_is_printed(ran):
    """Each line of the trial that README shows is one that ``show`` prints of the example's run, in that order."""
    (shown,) = re.findall(r"```text\n(.*?)```", (EXAMPLES.parent / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    result = load_result(next(ran("evaluate_langgraph")[1].glob("runs/*")))
    printed = iter(show_trial(result.trial("card_lost/0", 1), result.task("card_lost/0").task).splitlines())
    assert [line for line in shown.splitlines() if line not in printed] == []
    others = [trial.passed for trial in result.task("card_lost/0").trials if trial.index != 1]
    assert others == [True] * 4


def test_the_own_suite_is_sound(ran):
    """The example's suite holds all checks of a suite, and says so before anybody is graded by it."""
    assert "The suite holds its checks." in ran("own_suite")[0]


def test_triage_is_shown_by_agent(ran):
    """The triage example prints the tokens of each of its three agents, and each of them took part."""
    lines = ran("openai_agents_triage")[0].splitlines()
    tokens = dict(line.removesuffix(" tokens").replace(",", "").split(": ") for line in lines[-3:])
    assert list(tokens) == ["triage", "cards", "payments"]
    assert min(map(int, tokens.values())) > 0


def test_three_stacks_with_one_model_come_out_the_same(ran):
    """With the same scripted model the three frameworks' verdicts are the same, trial by trial."""
    printed, folder = ran("compare_three")
    found = {name: verdicts(data) for name, data in results(folder).items()}
    assert set(found) == {"langgraph", "openai-agents", "pydantic-ai"}
    (first, *others) = found.values()
    assert first == played("neobank", first)
    assert others == [first, first]
    assert "+0.0 points" in printed


@pytest.mark.parametrize("example", ["compare_three", "custom_agent"])
def test_a_real_endpoint_is_used_where_the_environment_names_one(example, tmp_path):
    """With model, key and base URL in the environment every request goes to that endpoint, under that model's name."""
    policy = GoldenPolicy(load_suite("neobank"), outcomes=Outcomes(pass_rate=1.0))
    with ScriptedModelServer({"named-model": policy}, api_key="a-key", keep_bodies=False) as server:
        url = server.url
        printed = run(example, tmp_path, TBADAPTERS_MODEL="named-model", OPENAI_API_KEY="a-key", OPENAI_BASE_URL=url)
        assert len(server.requests) >= 6 * 4
    assert f"The model is named-model at {url}." in printed
    assert SCRIPTED_NOTICE not in printed
    assert {verdict for data in results(tmp_path).values() for verdict in verdicts(data).values()} == {"passed"}


class TestModelEndpoint:
    async def test_a_key_alone_spends_nothing(self, desk):
        """A key that the shell happens to carry does not switch to a real model."""
        async with model_endpoint(desk, environ={"OPENAI_API_KEY": "a-key"}) as endpoint:
            assert endpoint.scripted
            assert endpoint.base_url.startswith("http://127.0.0.1:")

    async def test_a_named_model_goes_to_openai_unless_told_otherwise(self, desk):
        """A model and a key suffice for OpenAI itself."""
        environ = {"TBADAPTERS_MODEL": "some-model", "OPENAI_API_KEY": "a-key"}
        async with model_endpoint(desk, environ=environ) as endpoint:
            assert not endpoint.scripted
            assert (endpoint.model, endpoint.base_url, endpoint.api_key) == (
                "some-model",
                "https://api.openai.com/v1",
                "a-key",
            )
            assert "a-key" not in endpoint.notice

    async def test_an_own_endpoint_needs_no_key(self, desk):
        """A local server is used without a key."""
        environ = {"TBADAPTERS_MODEL": "some-model", "OPENAI_BASE_URL": "http://localhost:8000/v1"}
        async with model_endpoint(desk, environ=environ) as endpoint:
            assert (endpoint.base_url, endpoint.api_key) == ("http://localhost:8000/v1", "none")

    async def test_a_model_without_key_or_endpoint_is_refused(self, desk):
        """A model that can't be reached is refused in one sentence."""
        with pytest.raises(UsageError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
            async with model_endpoint(desk, environ={"TBADAPTERS_MODEL": "some-model"}):
                pass
