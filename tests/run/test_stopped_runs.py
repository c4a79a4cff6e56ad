"""Runs that end early, at a ceiling, a refused key or a full disk, and what a resume makes of them."""

import json
import sys
from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters import Limits, Price, Retries, Usage, UsageError, load_result
from tbadapters.core.errors import AccessFault, ProviderFault, RunStopped, UnusableFolder
from tbadapters.core.store import Store

AGENTS = Path(__file__).parent.parent / "data" / "agents.py"


async def test_a_ceiling_without_a_price_is_not_ignored(run):
    """A cost ceiling over a model without a price stops the run and says what is missing, rather than watch nothing."""

    async def unpriced(message, ctx):
        ctx.record_usage("nobody-sells-this", Usage(1_000_000, 0, 0, 0))
        return "I'm sorry, that can't be done."

    result = await run(unpriced, max_cost=5, concurrency=1)
    assert len(result.trials) == 1
    assert "nobody-sells-this" in result.stopped
    assert "price" in result.stopped


async def test_cost_ceiling_begins_no_further_trial(run):
    """At the ceiling no trial is begun; those under way end, and the result says why it is not whole."""

    async def priced(message, ctx):
        ctx.record_usage("m", Usage(1_000_000, 0, 0, 0))
        return "I'm sorry, that can't be done."

    result = await run(priced, prices={"m": Price(1.0, 1.0, 1.0)}, max_cost=5, concurrency=2)
    assert 5 <= len(result.trials) <= 6
    assert "ceiling" in result.stopped
    assert result.coverage.missing == 12 - len(result.trials)


async def test_resume_runs_what_is_missing(run):
    """A resumed run runs exactly the trials without a verdict, and its figures are those of a whole run."""
    calls = []

    def failing(message, ctx):
        calls.append(ctx.id)
        if len(calls) == 5:
            raise ProviderFault("down", code="server_error")
        return "I'm sorry, that can't be done."

    quick = Retries(attempts=1)
    first = await run(failing, retries=quick, concurrency=1)
    assert (first.coverage.valid, first.coverage.missing) == (11, 1)
    planned = []
    again = await run(failing, retries=quick, resume=first.folder, on_event=planned.append)
    assert len(calls) == 13
    assert planned[0].done == 11
    assert again.coverage.missing == 0
    assert len(again.faulted) == 1
    assert again.folder == first.folder


async def test_resume_with_other_settings_is_refused(run):
    """A resume with other trials, agent or limits names the difference."""
    first = await run(f"{AGENTS}:liar")
    for options, named in (
        ({"trials": 5}, "trials"),
        ({"limits": Limits(tool_calls=3)}, "limits"),
        ({"instructions": "none"}, "instructions"),
        ({"tasks": 1}, "suite_digest"),
    ):
        with pytest.raises(UsageError, match=f"{named}: .* then, .* now"):
            await run(f"{AGENTS}:liar", resume=first.folder, **options)
    with pytest.raises(UsageError, match="agent: 'liar' then, 'good' now"):
        await run(f"{AGENTS}:good", resume=first.folder)


async def test_refused_key_stops_the_run_and_keeps_what_is_done(run, tmp_path):
    """A key that is refused stops the run with a sentence; what was finished is in the folder."""
    seen = []

    def agent(message, ctx):
        seen.append(1)
        if len(seen) > 5:
            raise AccessFault("the key is wrong", code="authentication")
        return "I'm sorry, that can't be done."

    with pytest.raises(RunStopped, match="resume"):
        await run(agent, concurrency=1)
    (folder,) = tmp_path.iterdir()
    result = await to_thread.run_sync(load_result, folder)
    assert result.coverage.valid == 5
    assert (folder / "report.html").is_file()
    assert "the key is wrong" in result.stopped
    assert json.loads((folder / "results.json").read_text())["stopped"] == result.stopped


async def test_a_full_disk_stops_the_run_and_keeps_what_is_done(run, tmp_path, monkeypatch):
    """A disk that fills in the middle of a run stops it; what was committed is kept, and the reason is said."""
    add = Store.add

    async def filling(self, record):
        if record.index == 2:
            raise UnusableFolder("run.db can't be used: database or disk is full.")
        await add(self, record)

    monkeypatch.setattr(Store, "add", filling)
    with pytest.raises(RunStopped, match="disk is full"):
        await run(f"{AGENTS}:liar", concurrency=1)
    (folder,) = tmp_path.iterdir()
    result = await to_thread.run_sync(load_result, folder)
    assert result.coverage.valid == 6
    assert "disk is full" in result.stopped


async def test_reports_that_can_not_be_written_are_no_usage_error(run, tmp_path, monkeypatch):
    """Where the disk is full for the reports, too, the run's own reason is what is raised; a whole run names its folder."""

    def full(result, folder):
        raise UnusableFolder("The report can't be written: no space left on device.")

    monkeypatch.setattr(sys.modules["tbadapters.campaign"], "write_run", full)
    with pytest.raises(RunStopped, match=r"no space left.*tbadapters report"):
        await run(f"{AGENTS}:liar")

    def refused(message, ctx):
        raise AccessFault("the key is wrong", code="authentication")

    with pytest.raises(RunStopped, match="the key is wrong"):
        await run(refused)


async def test_a_resumed_run_has_no_reason_of_old(run):
    """Why a run was stopped is read back from its folder, and forgotten when it is resumed to its end."""

    async def priced(message, ctx):
        ctx.record_usage("m", Usage(1_000_000, 0, 0, 0))
        return "I'm sorry, that can't be done."

    prices = {"m": Price(1.0, 1.0, 1.0)}
    first = await run(priced, prices=prices, max_cost=5, concurrency=1)
    read = await to_thread.run_sync(load_result, first.folder)
    assert "ceiling" in read.stopped
    assert read.to_dict() == first.to_dict()
    again = await run(priced, prices=prices, resume=first.folder)
    assert again.stopped is None
    assert (await to_thread.run_sync(load_result, first.folder)).stopped is None


async def test_a_ceiling_reached_before_runs_nothing(run):
    """A run that is resumed with its money spent begins no trial."""
    started = []

    async def priced(message, ctx):
        started.append(1)
        ctx.record_usage("m", Usage(1_000_000, 0, 0, 0))
        return "I'm sorry, that can't be done."

    options = {"prices": {"m": Price(1.0, 1.0, 1.0)}, "max_cost": 2}
    first = await run(priced, concurrency=1, **options)
    before = len(started)
    again = await run(priced, resume=first.folder, **options)
    assert len(started) == before
    assert "ceiling" in again.stopped
