"""Agents under injected tool faults: who is safe to retry, who does things twice, who gives up."""

import json
from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters import ToolFaults, UsageError, evaluate, load_result, load_suite
from tbadapters.cli import main
from tbadapters.core.errors import ResumeMismatch
from tbadapters.reports.markdown import markdown
from tbadapters.reports.terminal import render

TILL = Path(__file__).parent.parent / "data" / "till.py"
ALL = ToolFaults(
    transient_error=0.1, late_timeout=0.15, stale_read=0.1, duplicate_delivery=0.1, slow=0.1, slow_seconds=0.001
)


@pytest.fixture
def run(tmp_path):
    suite = load_suite(TILL, size=6)

    async def run(agent, **options):
        defaults = {"suite": suite, "trials": 8, "out": tmp_path, "progress": "off"}
        return await evaluate(f"{TILL}:{agent}", **defaults | options)

    return run


def by_kind(result):
    return {found.kind: found for found in result.tool_faults}


async def test_who_looks_before_repeating_keeps_all_its_success(run):
    """An agent that looks before it repeats passes every trial whose answers were lost, and does nothing twice."""
    found = by_kind(await run("careful", faults=ToolFaults(late_timeout=0.2, transient_error=0.1)))
    assert found["late_timeout"].trials > 5
    assert [found[kind].retained for kind in found] == [1.0, 1.0]
    assert sum(each.duplicates for each in found.values()) == 0


async def test_who_repeats_blindly_does_things_twice(run):
    """An agent that repeats blindly loses success to lost answers, by effects that are counted as duplicates."""
    result = await run("blind", faults=ToolFaults(late_timeout=0.2, transient_error=0.1, tools=("charge",)))
    found = by_kind(result)
    lost = found["late_timeout"]
    assert lost.passed == 0
    assert lost.retained == 0.0
    # Every further time that the answer was lost charged once more.
    assert lost.duplicates == lost.calls
    assert lost.trials_with_duplicates == lost.trials
    assert lost.difference.interval.high <= 0
    assert found["transient_error"].duplicates == 0


def kinds(record):
    return {call.result.fault for call in record.tool_calls if call.result.fault}


async def test_who_gives_up_loses_success_without_doing_harm(run):
    """An agent that gives up at an error loses success to transient errors, and does nothing twice."""
    found = by_kind(await run("giving_up", faults=ToolFaults(transient_error=0.3)))
    assert found["transient_error"].passed == 0
    assert found["transient_error"].duplicates == 0


async def test_a_delivery_that_came_twice_is_told_from_an_agent_that_repeats(run):
    """What a duplicate delivery did twice is counted under that kind, though the agent called once."""
    result = await run("giving_up", faults=ToolFaults(duplicate_delivery=0.5, tools=("charge",)))
    (found,) = result.tool_faults
    assert (found.kind, found.passed) == ("duplicate_delivery", 0)
    assert found.duplicates == found.calls == found.trials > 0


async def test_what_is_the_same_when_repeated_harms_nobody(run):
    """A call that sets a value does no harm when it is delivered twice or repeated."""
    faults = ToolFaults(duplicate_delivery=0.4, late_timeout=0.3, tools=("set_tier",))
    result = await run("blind", faults=faults)
    assert result.pass_at_1 == 1.0
    assert {found.duplicates for found in result.tool_faults} == {0}


async def test_the_same_faults_for_any_concurrency(run):
    """Every call of every trial meets the same fault again, and verdicts are the same, whatever runs beside it."""

    def met(result):
        return [[(c.name, c.result.fault) for c in r.tool_calls] for r in result.trials], [
            r.passed for r in result.trials
        ]

    one, many = await run("blind", faults=ALL, concurrency=1), await run("blind", faults=ALL, concurrency=16)
    assert met(one) == met(many)
    assert {fault for calls in met(one)[0] for _, fault in calls} >= {"late_timeout", "slow", "transient_error"}


async def test_faults_are_told_everywhere(run):
    """Injected faults stand in the transcript, the record, results.json, the notes and the printed result."""
    result = await run("careful", faults=ALL)
    assert result.notes == (ALL.note,)
    record = next(r for r in result.trials if "late_timeout" in kinds(r))
    notes = [entry.text for entry in record.transcript if entry.kind == "note"]
    assert any("Injected fault: the call was executed, its answer was lost (late_timeout)" in note for note in notes)
    again = await to_thread.run_sync(load_result, result.folder)
    assert again.tool_faults == result.tool_faults
    written = await to_thread.run_sync((result.folder / "results.json").read_text)
    told = json.loads(written)["tool_faults"]
    assert told == [found.to_dict() for found in result.tool_faults]
    page = await to_thread.run_sync((result.folder / "report.html").read_text)
    for shown in (render(result, width=150), markdown(result), page):
        assert "Injected tool faults" in shown
        assert all(found.kind.replace("_", " ") in shown for found in result.tool_faults)


async def test_without_faults_there_is_nothing_to_tell(run):
    """A run without faults has no figures of them."""
    result = await run("blind")
    assert (result.pass_at_1, result.tool_faults, result.notes) == (1.0, (), ())
    assert "Injected" not in str(result)


async def test_a_resume_meets_the_same_faults_or_none_of_it(run):
    """A run that met faults can't go on with others."""
    result = await run("blind", faults=ALL)
    await run("blind", faults=ALL, resume=result.folder)
    with pytest.raises(ResumeMismatch, match="tool_faults"):
        await run("blind", faults=ToolFaults(slow=0.1), resume=result.folder)
    with pytest.raises(ResumeMismatch, match="tool_faults"):
        await run("blind", resume=result.folder)


async def test_other_things_are_no_faults(run):
    """Whatever else is given as faults is refused before anything runs."""
    with pytest.raises(UsageError, match=r"ToolFaults\(\.\.\.\)"):
        await run("blind", faults={"slow": 0.1})


def test_on_the_command_line(tmp_path, capsys):
    """The command line injects what ``--faults`` says, shows it, and a resume goes on with it unasked."""
    base = ["run", f"{TILL}:blind", "--tasks", "1", "--trials", "3", "--progress", "off"]
    with pytest.raises(SystemExit, match="0"):
        main([*base, "--suite", str(TILL), "--out", str(tmp_path), "--faults", "late_timeout=0.5,tools=charge,seed=2"])
    assert "Injected tool faults" in capsys.readouterr().out
    (folder,) = tmp_path.iterdir()
    with pytest.raises(SystemExit, match="0"):
        main(["run", f"{TILL}:blind", "--resume", str(folder), "--progress", "off"])
    with pytest.raises(SystemExit, match="2"):
        main([*base, "--suite", str(TILL), "--out", str(tmp_path), "--faults", "late_timeout=often"])
    assert "late_timeout=often" in capsys.readouterr().err
