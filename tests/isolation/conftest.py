"""Agents in processes of their own; one fork server and one event loop for all tests of a module."""

import os
import sys
from pathlib import Path

import pytest
import pytest_asyncio

sys.path.append(str(Path(__file__).parents[1] / "core"))
sys.path.append(str(Path(__file__).parents[1] / "data" / "isolated"))

from isolation_stage import running
from trial_stage import attempt_of

from tbadapters import Limits

LIMITS = Limits(seconds=20, grace=2)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory):
    """Return the file in which the agent of ``unruly.py`` reads what it is to do."""
    path = tmp_path_factory.mktemp("chosen") / "behaviour"
    os.environ["BEHAVIOUR"] = str(path)
    yield path
    del os.environ["BEHAVIOUR"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def unruly(chosen):
    """The agent of ``unruly.py``, running."""
    async with running("unruly.py:agent") as agent:
        yield agent


@pytest.fixture
def attempt(desk, unruly, chosen):
    """Return what plays one attempt in which the agent does what is named; record and fault."""

    async def attempt(behaviour, *arguments, **options):
        chosen.write_text("\n".join([behaviour, *map(str, arguments)]))
        return await attempt_of(desk, unruly, **{"limits": LIMITS} | options)

    return attempt
