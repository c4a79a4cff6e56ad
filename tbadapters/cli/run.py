"""Commands that run agents: ``run``, ``compare``, ``demo``."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, TypeVar, cast

import typer

from tbadapters.campaign import Campaign
from tbadapters.cli.app import INTERRUPTED, STOPPED, app
from tbadapters.cli.options import (
    ApprovalsOption,
    ConcurrencyOption,
    FaultsOption,
    FloorOption,
    InstructionsOption,
    IsolationOption,
    JudgeOption,
    LimitOption,
    MaxCostOption,
    Options,
    OutOption,
    PriceOption,
    ProgressOption,
    SeedOfSuite,
    SeedOption,
    SuiteOption,
    SuiteOptions,
    TasksOption,
    TrialsOption,
    UserOption,
    agents_of,
    patterns_of,
    prices_of,
    resumed,
    started,
)
from tbadapters.core.comparison import Comparison
from tbadapters.core.event_loop import run_to_end
from tbadapters.core.result import RunResult
from tbadapters.core.runner import Control
from tbadapters.core.tool_faults import tool_faults_of
from tbadapters.reports.text import visible

T = TypeVar("T")


@app.command()
def run(
    agent: Annotated[str, typer.Argument(help="module:attr or file.py:attr, naming an agent or a factory.")],
    suite: SuiteOption = None,
    suite_seed: SeedOfSuite = None,
    suite_option: SuiteOptions = None,
    tasks: TasksOption = None,
    trials: TrialsOption = None,
    concurrency: ConcurrencyOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    resume: Annotated[Path | None, typer.Option(help="A run folder: run only its trials without a verdict.")] = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = None,
    coverage_floor: FloorOption = None,
    limit: LimitOption = None,
    user: UserOption = None,
    judge: JudgeOption = None,
    instructions: InstructionsOption = None,
    approvals: ApprovalsOption = None,
    isolation: IsolationOption = None,
    faults: FaultsOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Run an agent on a suite and print its figures."""
    given = _given(locals())
    options = started(given) if resume is None else resumed(resume, given)
    control = Control()
    results = _until_interrupted(Campaign({None: agent}, control=control, **options).run(), control)
    for result in results:
        typer.echo(str(result))
        _tell_where_to_look(result)
    _exit(results)


@app.command()
def compare(
    agents: Annotated[list[str], typer.Argument(help="name=module:attr, two or more.")],
    suite: SuiteOption = None,
    suite_seed: SeedOfSuite = None,
    suite_option: SuiteOptions = None,
    tasks: TasksOption = None,
    trials: TrialsOption = None,
    concurrency: ConcurrencyOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = None,
    coverage_floor: FloorOption = None,
    limit: LimitOption = None,
    user: UserOption = None,
    judge: JudgeOption = None,
    instructions: InstructionsOption = None,
    approvals: ApprovalsOption = None,
    isolation: IsolationOption = None,
    faults: FaultsOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Run several agents on the same tasks and compare them. Their trials are interleaved."""
    options = started(_given(locals()))
    control = Control()
    named = agents_of(agents)
    comparison = _until_interrupted(Campaign(named, control=control, **options).comparison(), control)
    _print_comparison(comparison)
    _exit(tuple(comparison.results.values()))


@app.command()
def demo(
    out: OutOption = None,
    trials: Annotated[int, typer.Option(help="Trials of each task.")] = 5,
    tasks: TasksOption = None,
    concurrency: ConcurrencyOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Compare three real agents; no key is needed. They are one a framework, and a scripted stand-in plays the model."""
    from tbadapters import demo as stage

    control = Control()
    options: Options = {"out": out, "trials": trials, "tasks": patterns_of(tasks), "concurrency": concurrency}
    typer.echo(stage.NOTICE)
    shown = stage.compared(options | {"progress": progress, "control": control})
    comparison = _until_interrupted(shown, control)
    _print_comparison(comparison)
    typer.echo(stage.NOTICE)
    _exit(tuple(comparison.results.values()))


def _until_interrupted(work: Coroutine[Any, Any, T], control: Control) -> T:
    """Run until done. The first Ctrl-C lets the trials under way end, the second ends them at once."""

    async def guarded() -> T:
        loop = asyncio.get_running_loop()
        working = asyncio.current_task()
        assert working is not None  # noqa: S101  (we are inside it)

        def interrupt() -> None:
            if control.reason == _INTERRUPTED:
                working.cancel()
            else:
                control.stop(_INTERRUPTED)
                typer.echo("Finishing the trials under way; Ctrl-C again stops at once.", err=True)

        loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            return await work
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    try:
        return run_to_end(guarded())
    except asyncio.CancelledError as ended:
        for note in getattr(ended, "__notes__", ()):
            typer.echo(f"{note} Go on with: tbadapters run AGENT --resume FOLDER", err=True)
        raise typer.Exit(INTERRUPTED) from None


_INTERRUPTED = "interrupted"


def _given(parameters: dict[str, Any]) -> Options:
    """Return a command's parameters as options, those that name no option of ``Campaign`` translated."""
    given = {name: value for name, value in parameters.items() if name not in ("agent", "agents", "resume")}
    given["tasks"] = patterns_of(given["tasks"])
    given["prices"] = prices_of(given.pop("price")) or None
    given["faults"] = None if given["faults"] is None else tool_faults_of(given["faults"])
    return given


def _print_comparison(comparison: Comparison) -> None:
    typer.echo(str(comparison))
    for result in comparison.results.values():
        typer.echo(f"{result.agent}: {_folder(result) / 'report.html'}")
    typer.echo(f"Comparison: {comparison.folder}/report.html")


def _tell_where_to_look(result: RunResult) -> None:
    """Name the page, and the command that shows the first failed trial."""
    typer.echo(f"Page: {_folder(result) / 'report.html'}")
    failed = next((trial for trial in result.trials if trial.passed is False), None)
    if failed is not None:
        words = ("show", str(_folder(result)), failed.task, str(failed.index))
        typer.echo(f"A failed trial: tbadapters {' '.join(map(quote, words))}")


def _folder(result: RunResult) -> Path:
    return cast("Path", result.folder)


def _exit(results: tuple[RunResult, ...]) -> None:
    stopped = [result for result in results if result.stopped]
    if not stopped:
        return
    reason = str(stopped[0].stopped)
    typer.echo(f"Stopped early: {visible(reason.removesuffix('.'))}. Go on with:", err=True)
    for result in stopped:
        typer.echo(f"  tbadapters run AGENT --resume {_folder(result)}  (AGENT: {visible(result.agent)})", err=True)
    raise typer.Exit(INTERRUPTED if reason == _INTERRUPTED else STOPPED)
