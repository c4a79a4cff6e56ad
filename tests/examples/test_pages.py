"""What README and docs show is what there is: blocks of Python run, names are importable, commands have their options."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
import yaml
from page_blocks import blocks_of

from tbadapters.cli import app

ROOT = Path(__file__).parents[2]
PAGES = {str(path.relative_to(ROOT)): path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]}
RUN = {  # page -> what running its blocks prints
    "README.md": ["pass@1 is 100.0%", "agent True 4\nagent True 4", "make True 4", "my_agent False 3"],
    "docs/recipes.md": ["test_lost_cards_are_blocked", "remote_desk False 1", "short and careful can't be told apart"],
    "docs/running.md": [],
    "docs/own_suite.md": ["checked"],
}


@pytest.mark.timeout(240)  # a process of its own, which imports whole frameworks
@pytest.mark.parametrize("page", RUN)
def test_blocks_of_a_page_run(page, tmp_path):
    """A reader who types a page's blocks one after the other gets agents that run, tests that pass and a right suite."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LANGSMITH_", "LANGCHAIN_"))}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("page_blocks.py"), PAGES[page]],
        cwd=tmp_path, env={**clean, "COLUMNS": "120"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [part for part in RUN[page] if part not in done.stdout] == [], done.stdout


@pytest.mark.parametrize("page", PAGES)
def test_names_that_a_page_imports_are_there(page):
    """Every block of Python is well formed, and every name that it imports from tbadapters exists."""
    for block in blocks_of(PAGES[page]):
        code = compile(block, page, "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(code):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("tbadapters"):
                module = importlib.import_module(str(node.module))
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_a_page_shows_have_their_options(page):
    """Every option behind a command's name on a page is one of that command."""
    commands = typer.main.get_command(app).commands
    text = PAGES[page].read_text(encoding="utf-8").replace("\\\n", " ")
    for name, rest in re.findall(r"tbadapters ([a-z][a-z-]*)\b([^`#\n]*)", text):
        if name in commands and not hasattr(commands[name], "commands"):
            known = {option for parameter in commands[name].params for option in parameter.opts}
            assert [option for option in re.findall(r"--[a-z-]+", rest) if option not in known] == [], rest


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    """A link to a file of the project names a file, and a heading of it where it names one."""
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page].read_text(encoding="utf-8")):
        if target.startswith(("http:", "https:")):
            continue
        name, _, heading = target.partition("#")
        found = (PAGES[page].parent / name).resolve() if name else PAGES[page]
        assert found.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in [re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles], target


def test_the_workflow_is_well_formed():
    """The workflow that the recipes show is YAML with the steps of a job."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGES["docs/recipes.md"].read_text(encoding="utf-8"), re.DOTALL)
    steps = yaml.safe_load(text)["jobs"]["evaluate"]["steps"]
    assert sum("run" in step for step in steps) == 4
