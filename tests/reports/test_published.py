"""The published models stand beside a canonical run of the same tasks and trials, and nowhere else."""

from dataclasses import replace

import large_run
import pytest
from synthetic_runs import record

from tbadapters.core.comparison import Comparison
from tbadapters.core.result import RunResult
from tbadapters.reports.html import comparison_page, run_page
from tbadapters.reports.published import beside, published


def run_of(**changes) -> RunResult:
    outcomes = {passed: replace(record("t", 0, passed), transcript=(), requests=()) for passed in (True, False, None)}
    tasks = large_run.tasks()
    records = tuple(
        replace(outcomes[(i + n) % 3 > 0], task=task.id, index=i) for n, task in enumerate(tasks) for i in range(20)
    )
    return replace(RunResult("thinkingbox", "my-agent", "langgraph", 20, 0, tasks, records), **changes)


def without(found: RunResult, tasks: int = 0, trials: int = 0) -> RunResult:
    """Return the run without its first tasks, and without the verdicts of its first trials."""
    left = tuple(r for r in found.records[trials:] if r.task not in {task.id for task in found.tasks[:tasks]})
    return replace(found, tasks=found.tasks[tasks:], records=left)


@pytest.fixture(scope="module")
def canonical() -> RunResult:
    return run_of()


OTHERS = {
    "another suite": lambda run: replace(run, suite="neobank"),
    "a part of the suite": lambda run: replace(run, suite="thinkingbox/retail"),
    "a task is left out": lambda run: without(run, tasks=1),
    "fewer trials": lambda run: replace(run, trials_per_task=19, records=tuple(r for r in run.records if r.index < 19)),
    "a note": lambda run: replace(run, manifest={"notes": ["Searched by a stand-in: not canonical."]}),
    "without the policy": lambda run: replace(run, manifest={"settings": {"instructions": "none"}}),
    "too few verdicts": lambda run: without(run, trials=600),
}


@pytest.mark.parametrize("name", OTHERS)
def test_no_published_model_beside_another_run(canonical, name):
    """Whatever differs from a canonical run takes the published models off the page."""
    assert beside(OTHERS[name](canonical)) is None


def test_no_published_model_beside_a_comparison_with_another_run(canonical, tmp_path):
    """A comparison shows the published models only where every run is canonical."""
    other = replace(canonical, agent="B", manifest={"notes": ["Not canonical."]})
    page = comparison_page(Comparison({"A": canonical, "B": other}), tmp_path / "report.html")
    assert "Kimi-K3" not in page
    both = comparison_page(Comparison({"A": canonical, "B": canonical}), tmp_path / "report.html")
    assert all(model.name in both for model in published().models)


def test_published_models_beside_a_canonical_run(canonical):
    """A canonical run's page names every published model, the source, and marks of each domain; another's none."""
    page = run_page(canonical)
    assert all(model.name in page for model in published().models)
    assert published().source in page
    assert page.count('<rect class="mark"') == 5 * 18 + 3
    assert "Kimi-K3" not in run_page(OTHERS["a note"](canonical))


def test_published_figures_are_those_of_the_article():
    """Rates follow from counts; overall figures are the task-weighted means; a retention of two digits says "about"."""
    found = published()
    models = {model.name: model for model in found.models}
    assert len(models) == 18
    assert sum(found.tasks.values()) == 507
    for model in found.models:
        mean = sum(model.by_domain[domain] * size for domain, size in found.tasks.items()) / 507
        assert mean == pytest.approx(model.pass_at_1, abs=1e-4)
    kimi, opus, astra = models["Kimi-K3"], models["Claude Opus 5"], models["GPT-6 Astra"]
    assert (round(100 * kimi.solved, 2), round(100 * kimi.every, 2), kimi.exact) == (93.89, 13.41, True)
    assert (round(100 * opus.solved, 2), round(100 * opus.every, 2)) == (79.09, 47.53)
    assert (round(astra.retention, 4), astra.exact, astra.solved) == (0.78, False, None)
    assert models["GPT-5.4"].every is None
    assert round(100 * found.failures.looked_clean, 2) == 67.24
