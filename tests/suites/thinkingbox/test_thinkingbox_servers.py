"""The servers' own environment, and what a suite's servers do under each SDK that may be in it."""

import os
import re
import sys
import venv
from datetime import date, timedelta
from pathlib import Path

import pytest

from tbadapters import load_suite
from tbadapters.cli import main
from tbadapters.core.errors import UsageError
from tbadapters.core.task_info import TaskInfo
from tbadapters.suites.thinkingbox.environment import default_folder, find_environment, make_environment
from tbadapters.suites.thinkingbox.files import DataFolder

ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".cache" / "tests"
SMALL = ROOT / "tests" / "data" / "thinkingbox_small"
REAL = os.environ.get("THINKINGBOX_DATA")


@pytest.fixture(scope="session")
def environment():
    """The environment for servers that `make test` makes by the setup command (fastmcp 3.x, mcp 1.x)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(CACHE))
        found = find_environment(DataFolder(SMALL))
    if found is None and os.environ.get("TBADAPTERS_SERVERS") != "required":
        pytest.skip("there is no environment for servers: `make test` makes one")
    assert found is not None, "here the tests of the servers' environment may not be skipped"
    return found


def all_hold(suite, run):
    """Run the suite's own check and return its last line."""
    report = run(suite.check(suite))
    assert report.ok, report.rows()
    return report.summary


@pytest.fixture
def run():
    """Return what runs a coroutine to its end."""
    import anyio

    def run(work):
        async def awaited():
            return await work

        return anyio.run(awaited)

    return run


# -- versions ---------------------------------------------------------------------------------------------------------


def test_every_golden_call_passes_on_mcp_2(small, run):
    """Under plain mcp 2.x, the golden calls pass, nothing less does, and our comparison agrees each time."""
    assert "golden calls 9/9, no calls 1/9" in all_hold(small, run)


@pytest.mark.parametrize("sdk", ["fastmcp", "mcp"])
def test_every_golden_call_passes_in_the_servers_environment(sdk, data, environment, run):
    """The same holds under fastmcp 3.x and mcp 1.x, in the environment that setup makes."""
    path = data / "servers" / "servers.yaml"
    path.write_text(path.read_text() + f'      WORKSHOP_SDK: "{sdk}"\n')
    suite = load_suite("thinkingbox", data=data, python=environment.python, search="stand-in")
    assert "last writing call dropped 0/8, agreement 35/35; all hold" in all_hold(suite, run)


# -- conditions -------------------------------------------------------------------------------------------------------


def called(suite, run, tool, **arguments):
    """Call a tool in a sandbox of a suite's first task."""

    async def call():
        async with suite.backend.open(suite.tasks[0]) as sandbox:
            return (await sandbox.call(tool, arguments)).value

    return run(call())


@pytest.mark.parametrize(
    ("clock", "due"),
    [("policy", "2025-10-04"), ("2030-01-01T00:00:00+00:00", "2030-01-04"), ("wall", None)],
)
def test_servers_live_at_the_policys_date(clock, due, run):
    """The clock of a server stands still where it is told to, and goes where it is left alone."""
    suite = load_suite("thinkingbox/workshop.py:test_late_repair", data=SMALL, python=sys.executable, clock=clock)
    order = called(suite, run, "order_part", job_id="J-12", part_id="P-TUBE")
    days = {(date.today() + timedelta(days=n)).isoformat() for n in (2, 3, 4)}  # noqa: DTZ011  (midnight may pass)
    assert order["due"] in ({due} if due else days)


def test_servers_search_in_the_stand_in(small, run):
    """Where no Typesense answers, a server's search finds what its task's world holds."""
    found = called(small.select(["*/test_late_repair"]), run, "search_rules", query="repair waits, reduced")
    assert found[0]["source"] == "prices.md"


# -- setup ------------------------------------------------------------------------------------------------------------


def contents(folder):
    """Return every file below a folder, with its content."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_setup_makes_checks_and_remembers_an_environment(data, environment, capsys, monkeypatch):
    """One command makes the environment, checks it with a task of each domain and says so; load_suite finds it then."""
    monkeypatch.setenv("COLUMNS", "200")
    before = contents(data)
    with pytest.raises(SystemExit) as left:
        main(["thinkingbox", "setup", "--data", str(data), "--env", str(Path(environment.python).parents[1])])
    out = capsys.readouterr().out
    assert left.value.code == 0, out
    assert re.search(r"golden calls 2/2, no calls 0/2.*all hold", out)
    assert "Ready: load_suite('thinkingbox', data=" in out
    assert "Note: clock: frozen" in out
    assert contents(data) == before, "the checkout stays as it is"
    suite = load_suite("thinkingbox/front_desk", data=data)
    assert [tool.name for tool in suite.tool_list][1:] == ["get_job", "update_job"]


def test_packages_are_on_the_import_path_as_they_are(environment):
    """Nothing of a checkout is installed or copied: a path file names its folders."""
    (found,) = Path(environment.python).parents[1].rglob("tbadapters_thinkingbox.pth")
    (line,) = found.read_text().splitlines()
    assert Path(line).name == "workshop_servers"
    assert not list(found.parent.glob("workshop*"))


@pytest.mark.usefixtures("cache")
def test_an_environment_is_never_made_where_it_does_not_belong(data):
    """A folder inside the checkout, or one that holds something else, is refused before anything is made."""
    folder = DataFolder(data)
    for place, said in ((data / "env", "inside the checkout"), (data.parent, "something else than an environment")):
        with pytest.raises(UsageError, match=said):
            make_environment(folder, place, tell=lambda _: None)
    assert not (data / "env").exists()
    assert data.parent not in default_folder(folder).parents or "cache" in str(default_folder(folder))


@pytest.mark.usefixtures("cache")
def test_a_failed_step_says_what_it_printed(data, tmp_path):
    """Where the packages can't be installed, the command's own words are quoted, and nothing is remembered."""
    venv.create(tmp_path / "bare", with_pip=False)
    with pytest.raises(UsageError, match="No module named pip"):
        make_environment(DataFolder(data), tmp_path / "bare", tell=lambda _: None)
    assert find_environment(DataFolder(data)) is None


@pytest.mark.usefixtures("cache")
def test_an_environment_that_is_gone_is_not_found(data, environment):
    """A record of an environment that was deleted counts for nothing."""
    folder = DataFolder(data)
    record = default_folder(folder).with_suffix(".json")
    record.parent.mkdir(parents=True)
    for python, found in ((environment.python, True), (str(data / "no" / "python"), False)):
        record.write_text(f'{{"data": "{data}", "python": "{python}", "made": "now"}}')
        assert (find_environment(folder) is not None) is found


# -- the benchmark itself ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(REAL is None, reason="THINKINGBOX_DATA names no checkout")
def test_the_benchmark_is_what_it_was_published_as():
    """Of a real checkout: 507 tasks, 30 of which ask a judge, 3,102 golden calls, in five domains."""
    suite = load_suite("thinkingbox", data=REAL)
    parts = {part.name.partition("/")[2]: len(part.tasks) for part in suite.parts}
    assert parts == {"retail": 98, "travel": 104, "auto_insurance": 100, "neobank": 104, "consulting": 101}
    assert sum(task.needs_judge for task in suite.tasks) == 30
    assert sum(len(actions) for t in suite.tasks for actions in TaskInfo.of(t).end_states.values()) == 3102
    assert all(task.user.context for task in suite.tasks)
