import json
import runpy
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone

import pytest

from tbadapters.core.errors import InvalidOption
from tbadapters.sandboxes.preparations import CLOCK
from tbadapters.suites.thinkingbox.clock import POLICY_TIME, clock_note, clock_options, frozen_at

SERVER = """
import asyncio, json, os, runpy, sys, time
from datetime import date, datetime, timezone
prepared = runpy.run_path(sys.argv[1])
prepared["before_import"](json.loads(sys.argv[2]))

def seen():
    async def deadline():
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(0.02):
                await asyncio.sleep(5)
        except TimeoutError:
            return asyncio.get_running_loop().time() - began
    waited = asyncio.run(deadline())
    return [date.today().isoformat(), datetime.now().isoformat(), time.time(), 0.02 <= waited < 5]

print(json.dumps(seen()), flush=True)
if os.fork() == 0:
    time.sleep(0.01)
    print(json.dumps(seen()), flush=True)
    os._exit(0)
os.wait()
"""


def run_server(options, *flags):
    return subprocess.run(
        [sys.executable, *flags, "-c", SERVER, str(CLOCK), json.dumps(options)],
        capture_output=True, text=True, timeout=30, env={"TZ": "JST-9"}, check=False,
    )  # fmt: skip


def test_frozen_everywhere():
    """A frozen clock stands still in the server and in its forks, in UTC, while deadlines still fire."""
    done = run_server(clock_options(POLICY_TIME))
    assert done.returncode == 0, done.stderr
    parent, child = map(json.loads, done.stdout.splitlines())
    assert parent == child == ["2025-10-01", "2025-10-01T13:00:00", POLICY_TIME.timestamp(), True]


def test_wall_clock_is_left_alone():
    """Without a moment the server sees the clock on the wall."""
    done = run_server(clock_options(None))
    parent, _ = map(json.loads, done.stdout.splitlines())
    assert abs(parent[2] - datetime.now(UTC).timestamp()) < 60


def test_missing_package_is_named():
    """An environment without time-machine is refused with the package's name and the other choice."""
    done = run_server(clock_options(POLICY_TIME), "-S")
    assert done.returncode != 0
    assert "lacks the package time-machine" in done.stderr
    assert "clock='wall'" in done.stderr


@pytest.mark.parametrize("text", ["yesterday", "2025-10-01T13:00:00", 7])
def test_no_moment_is_refused(text):
    """What is no moment with an offset is refused before anything is frozen."""
    with pytest.raises(RuntimeError, match="a moment with its offset"):
        runpy.run_path(str(CLOCK))["before_import"]({"clock": text})


def test_choices_of_the_suite():
    """The suite freezes at the policies' date unless the wall clock or another moment is asked for."""
    tokyo = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    assert [frozen_at("policy"), frozen_at("wall")] == [POLICY_TIME, None]
    assert clock_options(frozen_at(tokyo)) == {"clock": "2026-01-01T00:00:00+00:00"}
    assert clock_note(frozen_at("wall")) is None
    assert "2025-10-01T13:00:00Z" in clock_note(frozen_at("policy"))


@pytest.mark.parametrize("clock", ["Policy", None, datetime(2025, 10, 1)])  # noqa: DTZ001  (that is what is refused)
def test_other_clocks_are_refused(clock):
    """A clock that is none of the choices is refused with the choices."""
    with pytest.raises(InvalidOption, match="'policy', 'wall', or a moment with its offset"):
        frozen_at(clock)
