"""The doors: what evaluate() and compare() promise, on a small suite and agents without a framework."""

import asyncio
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from tbadapters import (
    Comparison,
    Limits,
    Retries,
    SuiteError,
    UsageError,
    compare,
    evaluate,
    evaluate_sync,
    load_result,
)
from tbadapters.core.errors import InvalidOption, ProviderFault, UnknownName
from tbadapters.core.events import AttemptFaulted, RunEnded, RunPlanned, TrialEnded, TrialStarted
from tbadapters.core.grading import EndState, Expectation, GoldenAction, Verdict

AGENTS = Path(__file__).parent.parent / "data" / "agents.py"


async def test_right_agent_passes_every_trial(run):
    """An agent that does what the policy asks passes every trial of every task."""
    result = await run(f"{AGENTS}:good")
    assert result.pass_at_1 == 1.0
    assert (result.observed_all.count, result.observed_all.of) == (3, 3)
    assert result.coverage.valid == 12


async def test_lying_agent_fails_every_trial(run):
    """An agent that only claims fails every trial, each ended by itself."""
    result = await run(f"{AGENTS}:liar")
    assert result.pass_at_1 == 0.0
    assert {r.end_reason for r in result.trials} == {"settled"}
    assert result.pass_at(4) == 0.0


async def test_verdicts_are_the_same_for_any_concurrency(run):
    """Concurrency changes no verdict."""
    verdicts = []
    for concurrency in (1, 3, 50):
        result = await run(f"{AGENTS}:odd_even", concurrency=concurrency)
        verdicts.append([(r.task, r.index, r.passed) for r in result.trials])
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert {task: passed for task, _, passed in verdicts[0]} == {
        "desk/hold/1": False,
        "desk/hold/2": True,
        "desk/hold/3": False,
    }


async def test_two_runs_in_one_loop_never_mix(run):
    """Two evaluate() calls at once give what each gives alone, and each sandbox saw its own calls only."""
    good, liar = await asyncio.wait_for(_both(run(f"{AGENTS}:good"), run(f"{AGENTS}:liar")), 30)
    assert (good.pass_at_1, liar.pass_at_1) == (1.0, 0.0)
    for record in good.trials:
        assert {call.arguments["ticket_id"] for call in record.tool_calls} == {f"T-{record.task[-1]}"}


async def _both(first, second):
    results = {}

    async def keep(name, work):
        results[name] = await work

    async with asyncio.TaskGroup() as group:
        group.create_task(keep(1, first))
        group.create_task(keep(2, second))
    return results[1], results[2]


async def test_run_folder_holds_the_run(run):
    """Everything is in the run folder, and the result read back from there is the same."""
    result = await run(f"{AGENTS}:odd_even")
    folder = result.folder
    assert {p.name for p in folder.iterdir()} >= {"manifest.json", "run.db", "results.json", "report.html", "junit.xml"}
    again = await to_thread.run_sync(load_result, folder)
    assert again.to_dict() == json.loads((folder / "results.json").read_text()) == result.to_dict()
    assert again.manifest["settings"]["agent"] == "odd_even"


async def test_results_json_has_the_documented_shape(run):
    """The top of results.json has the documented keys."""
    data = (await run(f"{AGENTS}:odd_even")).to_dict()
    assert data["coverage"]["planned"] == data["coverage"]["valid"] == 12
    assert data["coverage"]["missing"] == 0
    assert data["trials_per_task"] == 4
    assert data["figures"]["observed k/k"]["count"] == 1
    assert data["figures"]["observed k/k"]["of"] == 3
    assert data["figures"]["pass@1"]["value"] == pytest.approx(1 / 3)
    assert [(t["id"], t["valid"], t["passed"]) for t in data["tasks"]] == [
        ("desk/hold/1", 4, 0),
        ("desk/hold/2", 4, 4),
        ("desk/hold/3", 4, 0),
    ]
    trial = data["trials"][0]
    assert trial.keys() >= {"task", "index", "verdict", "reward", "end_reason", "effects", "usage", "seconds"}
    assert trial["verdict"] == "failed"
    assert set(data["by_tag"]) == {"odd", "even"}


async def test_result_prints_as_a_table(run):
    """print(result) names suite, agent and figures."""
    text = str(await run(f"{AGENTS}:odd_even"))
    for part in ("desk", "odd_even", "pass@1", "33.3"):
        assert part in text


async def test_events_tell_the_run(run):
    """on_event hears the plan first, every trial, and the end."""
    events = []
    await run(f"{AGENTS}:good", trials=2, on_event=events.append)
    assert isinstance(events[0], RunPlanned)
    assert (events[0].planned, events[0].tasks, events[0].done) == (6, 3, 0)
    assert sum(isinstance(e, TrialStarted) for e in events) == sum(isinstance(e, TrialEnded) for e in events) == 6
    assert isinstance(events[-1], RunEnded)


async def test_tasks_are_selected(run):
    """Tasks are named by id, pattern, tag or number; what matches nothing is refused with the nearest names."""
    assert len((await run(f"{AGENTS}:good", tasks="hold/2")).tasks) == 1
    assert len((await run(f"{AGENTS}:good", tasks=["tag:odd"])).tasks) == 2
    assert len((await run(f"{AGENTS}:good", tasks=2)).tasks) == 2
    with pytest.raises(UnknownName, match="desk/hold/"):
        await run(f"{AGENTS}:good", tasks="hold/9")


@pytest.mark.parametrize(
    "options",
    [
        {"trials": 0},
        {"trials": -1},
        {"trials": 1.5},
        {"concurrency": 0},
        {"max_cost": 0},
        {"tasks": 0},
        {"instructions": "replace"},
        {"progress": "loud"},
        {"user": "nobody"},
        {"trials": True},
        {"concurrency": "4"},
        {"max_cost": float("nan")},
        {"max_cost": float("inf")},
        {"max_cost": "5"},
        {"tasks": []},
        {"tasks": True},
        {"tasks": 2.5},
        {"tasks": [3]},
        {"limits": None},
        {"retries": None},
        {"resume": 5},
        {"out": 5},
        {"prices": {"m": (1, 2, 3)}},
        {"seed": "0"},
        {"on_event": "print"},
        {"suite": 3},
    ],
)
async def test_senseless_options_are_refused(run, options, tmp_path):
    """An option that makes no sense is one sentence that names it, and nothing is written."""
    with pytest.raises(InvalidOption, match=next(iter(options))):
        await run(f"{AGENTS}:good", **options)
    assert not list(tmp_path.iterdir())


async def test_unknown_suite(tmp_path):
    """An unknown suite is answered with the nearest names."""
    with pytest.raises(UnknownName, match="neobank"):
        await evaluate(f"{AGENTS}:good", suite="neobnk", out=tmp_path, progress="off")


def test_limits_and_retries_make_sense():
    """Limits and retries that make no sense are refused when they are made."""
    with pytest.raises(InvalidOption, match="tool_calls"):
        Limits(tool_calls=0)
    with pytest.raises(InvalidOption, match="attempts"):
        Retries(attempts=0)
    with pytest.raises(InvalidOption, match="negative"):
        Retries(wait_initial=-1)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (Limits, {"seconds": float("nan")}),
        (Limits, {"seconds": "5"}),
        (Limits, {"cost": float("inf")}),
        (Limits, {"tool_calls": 2.5}),
        (Limits, {"model_requests": True}),
        (Limits, {"grace": None}),
        (Limits, {"setup_seconds": None}),
        (Retries, {"attempts": 1.5}),
        (Retries, {"wait_max": float("nan")}),
        (Retries, {"budget": -1}),
    ],
)
def test_senseless_limits_are_refused(make, options):
    """A limit that nothing could be counted or timed against is refused by its name."""
    with pytest.raises(InvalidOption, match=next(iter(options))):
        make(**options)


async def test_a_suite_may_be_a_path(run):
    """A suite's file may be given as a Path."""
    assert (await run(f"{AGENTS}:liar", suite=AGENTS.parent / "desk.py", trials=1)).suite == "desk"


async def test_compare_needs_names(desk):
    """What is no mapping of names to agents is refused in one sentence."""
    for agents in ([f"{AGENTS}:good", f"{AGENTS}:liar"], {1: f"{AGENTS}:good", 2: f"{AGENTS}:liar"}):
        with pytest.raises(InvalidOption, match="dict of agents"):
            await compare(agents, suite=desk)


async def test_evaluate_sync_inside_a_loop(desk):
    """Inside a loop evaluate_sync() says what to write instead."""
    with pytest.raises(UsageError, match="await evaluate"):
        evaluate_sync(f"{AGENTS}:good", suite=desk)


def test_evaluate_sync(desk, tmp_path):
    """Outside a loop it does the same as evaluate()."""
    result = evaluate_sync(f"{AGENTS}:good", suite=desk, trials=2, out=tmp_path, progress="off")
    assert result.pass_at_1 == 1.0


def test_evaluate_sync_keeps_its_loop(desk, tmp_path):
    """Calls one after the other run on one loop, so that a client that an agent keeps works in all of them."""
    loops = []

    async def agent(message, ctx):
        loops.append(asyncio.get_running_loop())
        return "I'm sorry, that can't be done."

    for _ in range(2):
        evaluate_sync(agent, suite=desk, trials=1, tasks=1, out=tmp_path, progress="off")
    assert loops[0] is loops[1]


async def test_compare_interleaves_and_pairs(desk, tmp_path):
    """compare() runs the agents interleaved, writes one folder an agent and one for the comparison."""
    started = []

    def hear(event):
        if isinstance(event, TrialStarted):
            started.append(event.run)

    comparison = await compare(
        {"good": f"{AGENTS}:good", "half": f"{AGENTS}:odd_even"},
        suite=desk, trials=3, out=tmp_path, progress="off", concurrency=1, on_event=hear,
    )  # fmt: skip
    assert isinstance(comparison, Comparison)
    assert started == ["good", "half"] * 9
    assert comparison.results["good"].pass_at_1 == 1.0
    assert comparison.results["half"].pass_at_1 == pytest.approx(1 / 3)
    assert (comparison.folder / "report.html").is_file()
    assert len(list(tmp_path.iterdir())) == 3
    assert "good" in str(comparison)


async def test_a_run_of_a_comparison_is_resumed_alone(desk, run, tmp_path):
    """The folder of a compared agent is resumed by evaluate(), under the name that the comparison gave it."""
    half = await compare(
        {"mine": f"{AGENTS}:good", "theirs": f"{AGENTS}:liar"},
        suite=desk, trials=1, out=tmp_path, progress="off",
    )  # fmt: skip
    again = await run(f"{AGENTS}:good", trials=1, resume=half.results["mine"].folder)
    assert again.agent == "mine"
    with pytest.raises(UsageError, match="agent: 'liar' then, 'good' now"):
        await run(f"{AGENTS}:good", trials=1, resume=half.results["theirs"].folder)


async def test_compare_needs_two(desk, tmp_path):
    """One agent alone is not compared."""
    with pytest.raises(InvalidOption, match="evaluate"):
        await compare({"good": f"{AGENTS}:good"}, suite=desk, out=tmp_path)


async def test_a_verdict_that_decides_nothing_is_run_again(run, desk):
    """A grader's verdict without a yes or no is no verdict: a resume runs the trial again."""

    class Undecided:
        async def grade(self, evidence):
            return Verdict(None, None, (), ("nobody knows",), None)

    class Backend:
        def open(self, task):
            return desk.backend.open(task)

        def grader(self, task):
            return Undecided()

    planned = []
    suite = replace(desk, backend=Backend())
    quick = Retries(attempts=1)
    first = await run(f"{AGENTS}:liar", suite=suite, retries=quick)
    assert first.coverage.valid == 0
    again = await run(f"{AGENTS}:liar", suite=suite, retries=quick, resume=first.folder, on_event=planned.append)
    assert planned[0].done == 0
    assert len(again.faulted) == 12


async def test_faulted_attempts_are_told_and_kept_apart(run):
    """Attempts that end in a provider's fault are told, kept, and count neither as pass nor as fail."""
    calls = {}

    def flaky(message, ctx):
        calls[ctx.id] = True
        if len(calls) % 2:
            raise ProviderFault("down", code="server_error")
        return "I'm sorry, that can't be done."

    events = []
    result = await run(
        flaky, trials=2, concurrency=1, retries=Retries(wait_initial=0, wait_max=0), on_event=events.append
    )
    assert result.coverage.missing == 0
    assert len(result.faulted) == sum(isinstance(e, AttemptFaulted) for e in events) == 6


async def test_retry_budget_is_the_runs(run):
    """The run's retry budget ends the retries of all its trials."""

    def down(message, ctx):
        raise ProviderFault("down", code="server_error")

    result = await run(down, retries=Retries(attempts=5, wait_initial=0, wait_max=0, budget=3), concurrency=1)
    assert len(result.faulted) == 3
    assert result.coverage.valid == 0
    assert result.pass_at_1 is None


async def test_broken_suite_grades_nobody(run, desk):
    """A golden action that errors stops the run: nobody is graded by a wrong suite."""
    wrong = EndState("held", (GoldenAction("set_status", {"ticket_id": "T-404", "status": "hold"}),))
    task = replace(desk.tasks[0], expectation=Expectation((wrong,)))
    with pytest.raises(SuiteError, match="T-404"):
        await run(f"{AGENTS}:good", suite=replace(desk, tasks=(task,)))


async def test_the_coverage_floor_stays_with_the_run(run):
    """The coverage floor that a run was given decides its headline when it is read back, unless another is named."""

    async def read(folder, **options):
        return await to_thread.run_sync(partial(load_result, folder, **options))

    found = await run(f"{AGENTS}:good", trials=1, coverage_floor=0.5)
    assert found.coverage.floor == (await read(found.folder)).coverage.floor == 0.5
    assert (await read(found.folder, coverage_floor=1.0)).coverage.floor == 1.0
    again = await run(f"{AGENTS}:good", trials=1, resume=found.folder, coverage_floor=0.7)
    assert again.coverage.floor == (await read(found.folder)).coverage.floor == 0.7
    for floor in (1.5, -0.1, "all", True):
        with pytest.raises(InvalidOption, match="coverage_floor"):
            await read(found.folder, coverage_floor=floor)
    with pytest.raises(InvalidOption, match=r"such as 0\.95"):
        await run(f"{AGENTS}:good", coverage_floor=95)
