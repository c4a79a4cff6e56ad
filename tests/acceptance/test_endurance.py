"""Many runs in one process leave nothing behind, and concurrency changes no verdict."""

import asyncio
import gc
import os
import threading
from pathlib import Path

import pytest

from tbadapters import evaluate
from tbadapters.testing import Outcomes

FULL = os.environ.get("TBADAPTERS_FULL") == "1"
AGENTS = Path(__file__).parent.parent / "data" / "agents.py"
RUNS, WARM = 20, 10  # the first runs import, compile, fill caches and let the heap grow to its size
PAGE = os.sysconf("SC_PAGE_SIZE")


def held():
    """Return what this process holds: open files, threads, and megabytes of memory."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), resident


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="what a process holds is read from /proc")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stack", ["function", "langgraph", "openai-agents", "pydantic-ai"])
async def test_twenty_runs_hold_no_more_than_ten(play, desk, tmp_path, stack):
    """After the first ten runs, ten more hold no further file, thread or task, and memory stays flat."""
    if stack != "function" and not FULL:
        pytest.skip("only at full size")
    seen = []
    for _ in range(RUNS):
        if stack == "function":
            result = await evaluate(f"{AGENTS}:odd_even", suite=desk, trials=10, out=tmp_path, progress="off")
        else:
            result, *_ = await play(stack, tasks=5, trials=4)
        assert result.coverage.missing == 0
        del result
        files, threads, memory = held()
        seen.append((files, threads, len(asyncio.all_tasks()), memory))
    files, threads, tasks, memory = zip(*seen[WARM - 1 :], strict=True)
    print(f"\n{stack}, runs {WARM} to {RUNS}: files {files[0]} to {files[-1]}, threads {threads[0]} to {threads[-1]}, "  # noqa: T201  (figures)
          f"tasks {tasks[0]} to {tasks[-1]}, memory {memory[0]:.1f} to {memory[-1]:.1f} MB")  # fmt: skip
    assert max(files) <= files[0]
    assert max(threads) <= threads[0]
    assert max(tasks) <= tasks[0]
    assert memory[-1] - memory[0] < 0.05 * memory[0]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stack", ["function", "langgraph", "openai-agents", "pydantic-ai"])
async def test_concurrency_changes_no_verdict(play, desk, tmp_path, stack):
    """Verdicts, ends, effects and figures are the same one at a time, sixteen at a time and all at once."""
    if stack != "function" and not FULL:
        pytest.skip("only at full size")
    found = {}
    for concurrency in (1, 16, 200):
        if stack == "function":
            result = await evaluate(
                f"{AGENTS}:odd_even", suite=desk, trials=20, concurrency=concurrency, out=tmp_path, progress="off"
            )
        else:
            options = {"outcomes": Outcomes(pass_rate=0.6, seed=8), "tasks": 25, "trials": 4}
            result, *_ = await play(stack, concurrency=concurrency, **options)
        trials = [(r.task, r.index, r.passed, r.end_reason, r.verdict) for r in result.trials]
        found[concurrency] = (trials, result.figures.to_dict(every_k=True))
    assert found[1] == found[16] == found[200]
    assert {passed for _, _, passed, *_ in found[1][0]} == {True, False}
