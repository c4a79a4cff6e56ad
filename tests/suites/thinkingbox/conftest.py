"""The small data folder, and the interpreters that can run its server."""

import shutil
import sys
from pathlib import Path

import pytest

from tbadapters import load_suite

SMALL = Path(__file__).parents[2] / "data" / "thinkingbox_small"
CACHE = Path(__file__).parents[3] / ".cache" / "tests"  # compiled servers, environments


@pytest.fixture
def data(tmp_path):
    """A copy of the small data folder that a test may change."""
    return Path(shutil.copytree(SMALL, tmp_path / "data"))


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    """Keep what is remembered of servers out of the user's cache, from one run of the tests to the next."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    monkeypatch.delenv("THINKINGBOX_DATA", raising=False)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture(scope="module")
def small():
    """The suite of the small data folder, its server run by this interpreter (mcp 2.x)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(CACHE))
        suite = load_suite("thinkingbox", data=SMALL, python=sys.executable, search="stand-in")
        assert suite.every_tool, "listed here: nobody waits for a server in a test's loop"
    return suite
