"""Whatever an agent's process does, it is that agent's failed trial, ends in time, and touches nothing else."""

import asyncio
import json
import os
import re
import socket
import time
from pathlib import Path

import pytest
from isolation_stage import running
from trial_stage import attempt_of

from tbadapters import Limits, Retries, evaluate
from tbadapters.isolation.processes import Process, Processes
from tbadapters.isolation.wire import Pipe

pytestmark = pytest.mark.asyncio(loop_scope="module")
SHORT = Limits(seconds=2, grace=0.5)


def is_gone(pid):
    """Whether a process has ended: it is gone, or waits for nothing but its parent's look."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture
def pids(monkeypatch):
    """Collect the ids of the processes of attempts."""
    seen = []
    born = Process.born

    def noted(self, pid):
        seen.append(pid)
        born(self, pid)

    monkeypatch.setattr(Process, "born", noted)
    return seen


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        ("exits", "ended with exit code 3"),
        ("killed", r"SIGKILL \(out of memory\?\)"),
        ("crashes", "SIGSEGV"),
        ("leaves", "SystemExit: enough"),
        ("huge", "200000000 characters"),
        ("floods", "more than 64 MiB"),
        ("notes", "model_requests"),
        ("calls", "tool_calls"),
        ("calls_at_once", "tool_calls"),
        ("garbage", "16 MiB is the most"),
        ("no_json", "no message"),
        ("wrong_type", "no message"),
        ("unknown_type", "no message"),
        ("extra_field", "no message"),
        ("deep", "too many parts"),
        ("long_length", "16 MiB is the most"),
        ("out_of_turn", "out of turn"),
        ("no_request", "never began"),
        ("not_a_model", "asks no model"),
        ("no_url", "no URL"),
        ("waits_for_ever", "asked twice"),
        ("waits_often", "more than 1000 model requests"),
        ("remarks", "more than 20,000 messages"),
        ("empty", "no message"),
        ("asks_of_nothing", "too many parts"),
        ("lists_of_nothing", "too many parts"),
        ("texts_of_nothing", "too many parts"),
        ("deep_arguments", "no JSON"),
        ("no_arguments", "no JSON"),
        ("pickled", "no message"),
        ("interrupts", "ended with exit code 1"),
        ("terminates", "SIGTERM"),
        ("raises_interrupt", "ended with exit code 1"),
        ("closes_half", "closed its pipe"),
        ("closes_all", "closed its pipe"),
        ("half_a_message", "ended with exit code 0"),
        ("two_answers", "out of turn|without being asked"),
        ("stops_its_loop", "ended with exit code 1"),
        ("unreadable", "Unreadable: its message can't be read"),
        ("too_long_an_error", "characters left out"),
    ],
)
async def test_is_the_agents_failed_trial(attempt, pids, behaviour, says):
    """A process that dies, sends what is no message, too much, or at the wrong time, has failed its trial and is gone."""
    record, fault = await attempt(behaviour)
    assert (record.passed, fault.owner) == (False, "agent")
    assert record.abandoned is False
    assert re.search(says, str(fault)), fault
    assert [await _gone(pid) for pid in pids] == [True]


async def _gone(pid):
    for _ in range(100):
        if is_gone(pid):
            return True
        await asyncio.sleep(0.05)
    return False


@pytest.mark.parametrize("behaviour", ["blocks", "swallows"])
async def test_a_hanging_process_is_ended(attempt, pids, behaviour):
    """An agent that blocks its loop or swallows its cancellation is ended within deadline and grace, not abandoned."""
    began = time.monotonic()
    record, fault = await attempt(behaviour, limits=SHORT)
    assert (record.passed, fault.code, record.abandoned) == (False, "seconds", False)
    assert len(record.tool_calls) == 1  # it had begun
    assert time.monotonic() - began < 10
    assert [await _gone(pid) for pid in pids] == [True]


async def test_a_pipe_that_is_closed_before_the_session_is_open(desk):
    """An agent whose factory closes the pipe and goes on has failed its trial: its process was started."""
    async with running("unruly.py:shut") as agent:
        record, fault = await attempt_of(desk, agent, limits=Limits(seconds=10, grace=1))
    assert (record.passed, fault.owner, fault.code) == (False, "agent", "process_ended")


@pytest.mark.parametrize("pid", [0, 1, -1, 2**31, 10**30, 1e999])
async def test_ids_that_the_fork_server_makes_up(desk, pid, monkeypatch):
    """Whatever id an agent's module says that a process has, none is ended but a child of the fork server."""
    killed = []
    monkeypatch.setattr(os, "killpg", lambda *signalled: killed.append(signalled))
    ours, theirs = socket.socketpair()
    with theirs:
        process = Process(await Pipe.over(ours, limited=True), server=os.getpid())
        processes = Processes.__new__(Processes)
        processes._waiting = {0: process}
        processes._hear(json.dumps({"job": 0, "pid": pid}).encode())
        process.end()
        processes._hear(json.dumps({"job": 0, "pid": pid}).encode())
    assert process.pid is None
    assert killed == []


async def test_parts_that_are_compared(attempt):
    """A model request of very many parts holds nobody up."""
    began = time.monotonic()
    record, _ = await attempt("compares_for_ever")
    assert time.monotonic() - began < 15
    assert record.passed is not True


async def test_arguments_that_are_too_long(attempt):
    """As in this process, they are answered with an error, and the agent may go on."""
    record, _ = await attempt("long_arguments")
    assert "more than 1,000,000 characters are not taken" in record.messages[1].text
    assert record.end_reason == "settled"


async def test_a_cancelled_agent_cleans_up(attempt, tmp_path):
    """An agent that is cancelled at its deadline has a part of the grace for its own clean-up."""
    tidied = tmp_path / "tidied"
    await attempt("tidies", tidied, limits=Limits(seconds=3, grace=8))
    assert tidied.read_text() == "yes"


async def test_answers_that_nobody_asked_for(attempt):
    """Answers sent ahead, for turns to come, are a failed trial."""
    record, fault = await attempt("twice")
    assert (record.passed, fault.code) == (False, "protocol")


async def test_only_agent_and_provider_are_believed(attempt):
    """An agent that blames the sandbox has failed; one that blames its provider has no verdict, as in this process."""
    record, fault = await attempt("sandbox_fault")
    assert (record.passed, fault.owner) == (False, "agent")
    record, fault = await attempt("provider_fault")
    assert (record.passed, fault.owner) == (None, "provider")


async def test_nothing_is_remembered(attempt):
    """Each attempt has a process that nobody used before, and an opaque id instead of its task's."""
    for _ in range(2):
        record, _ = await attempt("remembers")
        assert record.messages[1].text.startswith("1 ")
    record, _ = await attempt("names_trial")
    assert "desk" not in record.messages[1].text
    assert record.task == "desk/hold/1"


async def test_what_it_prints_is_harmless(attempt, capsys):
    """What it prints comes out on standard error, marked and without control characters."""
    await attempt("prints")
    for _ in range(100):
        err = capsys.readouterr().err
        if err:
            break
        await asyncio.sleep(0.05)
    assert err == "agent | ␛[2Jpass@1 is 100.0%\n"


async def test_what_it_started_ends_with_the_run(desk, chosen, tmp_path):
    """Processes that the agent started, also those in a session of their own, have ended when the run has."""
    bred = tmp_path / "bred"
    async with running("unruly.py:agent") as agent:
        chosen.write_text(f"breeds\n{bred}")
        record, _ = await attempt_of(desk, agent)
        children = [int(line) for line in bred.read_text().splitlines()]
        assert record.end_reason == "settled"
        assert [await _gone(children[0]), is_gone(children[1])] == [True, False]
    assert [await _gone(child) for child in children] == [True, True]


async def test_where_nothing_can_be_forked(desk):
    """An agent whose module starts a thread is played in processes that are started afresh, with nothing remembered."""
    async with running("threaded.py:agent") as agent:
        records = [(await attempt_of(desk, agent))[0] for _ in range(2)]
    assert [record.passed for record in records] == [True, True]
    assert [record.messages[-1].text[-4:] for record in records] == ["(1).", "(1)."]


async def test_a_dead_fork_server_is_the_harnesss(desk, chosen):
    """Where the fork server is gone, trials have no verdict, and the run ends."""
    chosen.write_text("remembers")
    async with running("unruly.py:agent") as agent:
        os.kill(agent._processes._server.pid, 9)
        await asyncio.sleep(0.1)
        record, fault = await attempt_of(desk, agent)
    assert (record.passed, fault.owner, fault.code) == (None, "harness", "fork_server")


async def test_what_it_inherits(desk, chosen, tmp_path, monkeypatch):
    """An agent's process has the environment of the run, and none of its files."""
    monkeypatch.setenv("MY_OWN_SETTING", "as it was")
    chosen.write_text("lists_files")
    result = await evaluate(
        f"{Path(__file__).parent.parent}/data/isolated/unruly.py:agent", suite=desk, tasks=1, trials=1,
        isolation="process", out=tmp_path, progress="off",
    )  # fmt: skip
    opened, setting = json.loads(result.records[0].messages[1].text)
    assert setting == "as it was"
    assert [name for name in opened if name.startswith("/") and name != "/dev/null" and "/fd" not in name] == []
    assert len([name for name in opened if name.startswith("socket:")]) == 3  # the pipe, and the loop's own two


async def test_others_are_untouched(desk, chosen, tmp_path):
    """While some trials of a run end by force, the others' verdicts are those of an agent that does right."""
    chosen.write_text("by_ticket")
    result = await evaluate(
        f"{Path(__file__).parent.parent}/data/isolated/unruly.py:agent", suite=desk, trials=4, isolation="process",
        limits=Limits(seconds=5, grace=1), retries=Retries(attempts=1), out=tmp_path, progress="off",
    )  # fmt: skip
    assert {task: r.rate for task, r in result.by_task.items()} == {
        "desk/hold/1": 0.0, "desk/hold/2": 1.0, "desk/hold/3": 0.0,
    }  # fmt: skip
