"""The command line: parse, call, print. What it does is in ``evaluate.py``, what it shows in ``reports``.

Exit codes: 0 done; 1 a check does not hold; 2 what was asked for can't be done; 3 the suite is wrong; 4 the run was
stopped early, what is finished is kept; 70 a bug in tbadapters; 130 interrupted, what is finished is kept.
With ``TBADAPTERS_DEBUG`` in the environment, an error's traceback is printed before its sentence.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tbadapters.cli_options import Options, agents_of, patterns_of, prices_of, resumed, started, suite_of
from tbadapters.core.comparison import Comparison
from tbadapters.core.errors import RunStopped, SuiteError, TbAdaptersError, UsageError, describe
from tbadapters.core.event_loop import is_left, run_to_end
from tbadapters.core.result import RunResult
from tbadapters.core.run_folder import load_result
from tbadapters.core.runner import Control
from tbadapters.evaluate import Campaign
from tbadapters.reports.text import visible

T = TypeVar("T")
DONE, CHECK_FAILED, USAGE, SUITE_WRONG, STOPPED, BUG, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130
DEBUG = "TBADAPTERS_DEBUG"

app = typer.Typer(
    name="tbadapters",
    help="Score whole agents by the backend records they leave behind, over concurrent repeated trials.",
    epilog="Exit codes: 0 done, 1 a check does not hold, 2 usage, 3 the suite is wrong, 4 the run was stopped early, "
    "70 a bug in tbadapters, 130 interrupted. After 4, 70 and 130 what is finished is kept: go on with --resume. "
    f"With {DEBUG}=1 in the environment an error's traceback is printed, too.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

SuiteOption = Annotated[str | None, typer.Option(help="A suite's name, or the path of a suite's file.")]
SeedOfSuite = Annotated[
    int | None, typer.Option(help="Build the suite's tasks from this seed; 0 is the published set.")
]
TasksOption = Annotated[
    list[str] | None, typer.Option("--tasks", help="Task id, pattern or tag:NAME; may be repeated or comma-separated.")
]
TrialsOption = Annotated[int | None, typer.Option(help="Trials of each task (default 20).")]
ConcurrencyOption = Annotated[int | None, typer.Option(help="Trials under way at once (default 16).")]
SeedOption = Annotated[int | None, typer.Option(help="Seed of whatever draws at random.")]
OutOption = Annotated[Path | None, typer.Option(help="Where the run folder is made (default: runs).")]
MaxCostOption = Annotated[float | None, typer.Option(help="US dollars at which no further trial is begun.")]
PriceOption = Annotated[
    list[str] | None, typer.Option("--price", help="model=input,cached,output in US dollars per million tokens.")
]
LimitOption = Annotated[
    list[str] | None, typer.Option("--limit", help="A limit of one trial, such as seconds=120 or tool_calls=40.")
]
InstructionsOption = Annotated[
    str | None, typer.Option(help="append (default) gives the agent the suite's policy; none leaves it as it is.")
]
ProgressOption = Annotated[str, typer.Option(help="auto, on or off.")]
RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]


@app.command()
def run(
    agent: Annotated[str, typer.Argument(help="module:attr or file.py:attr, naming an agent or a factory.")],
    suite: SuiteOption = None,
    suite_seed: SeedOfSuite = None,
    tasks: TasksOption = None,
    trials: TrialsOption = None,
    concurrency: ConcurrencyOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    resume: Annotated[Path | None, typer.Option(help="A run folder: run only its trials without a verdict.")] = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = None,
    limit: LimitOption = None,
    instructions: InstructionsOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Run an agent on a suite and print its figures."""
    given = _given(locals())
    options = started(given) if resume is None else resumed(resume, given)
    control = Control()
    results = _until_interrupted(Campaign({None: agent}, control=control, **options).run(), control)
    for result in results:
        typer.echo(str(result))
    _exit(results)


@app.command()
def compare(
    agents: Annotated[list[str], typer.Argument(help="name=module:attr, two or more.")],
    suite: SuiteOption = None,
    suite_seed: SeedOfSuite = None,
    tasks: TasksOption = None,
    trials: TrialsOption = None,
    concurrency: ConcurrencyOption = None,
    seed: SeedOption = None,
    out: OutOption = None,
    max_cost: MaxCostOption = None,
    price: PriceOption = None,
    limit: LimitOption = None,
    instructions: InstructionsOption = None,
    progress: ProgressOption = "auto",
) -> None:
    """Run several agents on the same tasks, interleaved, and print how they differ."""
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
    """Run three real agents, one a framework, on the neobank suite; a scripted stand-in plays the model."""
    from tbadapters import demo as stage

    control = Control()
    options: Options = {"out": out, "trials": trials, "tasks": patterns_of(tasks), "concurrency": concurrency}
    typer.echo(stage.NOTICE)
    shown = stage.compared(options | {"progress": progress, "control": control})
    comparison = _until_interrupted(shown, control)
    _print_comparison(comparison)
    typer.echo(stage.NOTICE)
    _exit(tuple(comparison.results.values()))


@app.command("tasks")
def list_tasks(suite: Annotated[str, typer.Argument()], suite_seed: SeedOfSuite = None) -> None:
    """List a suite's tasks."""
    loaded = suite_of(suite, suite_seed)
    typer.echo(f"{loaded.name}: {len(loaded.tasks)} tasks, {len(loaded.tool_list)} tools")
    for task in loaded.tasks:  # a line each, so that it can be searched
        typer.echo(visible(f"{task.id}  [{', '.join(task.tags)}]  {task.opening}"))


@app.command()
def check(
    suite: Annotated[str, typer.Argument()],
    seeds: Annotated[int, typer.Option(min=0, help="How many fresh seeds are checked, from 1 up.")] = 10,
) -> None:
    """Check that a suite is right: golden actions pass, everything else fails."""
    from tbadapters.testing.checks import check_suite

    report = run_to_end(check_suite(suite_of(suite, None), seeds=range(1, seeds + 1)))
    table = Table(title=f"{suite}: checks", title_justify="left")
    for column in ("check", "held", "of", "", "note"):
        table.add_column(column, overflow="fold")
    for row in report.rows():
        table.add_row(row.name, str(row.held), str(row.of), "ok" if row.ok else "FAILED", Text(row.note))
    Console().print(table)
    failed = [row.name for row in report.rows() if not row.ok]
    typer.echo(f"{suite}: {'not ok: ' + ', '.join(failed) if failed else 'all checks hold'} ({report.tasks} tasks)")
    raise typer.Exit(DONE if report.ok else CHECK_FAILED)


@app.command()
def show(
    run_folder: RunFolder,
    task: Annotated[str, typer.Argument(help="The task's id.")],
    trial: Annotated[int, typer.Argument(help="The trial's index, from 0.")],
) -> None:
    """Show one trial: conversation, tool calls, and effects side by side."""
    from tbadapters.reports.terminal import show_trial

    result = load_result(run_folder)
    record = result.trial(task, trial)
    typer.echo(show_trial(record, result.task(task).task))


@app.command()
def report(
    run_folder: RunFolder,
    to: Annotated[
        Path | None, typer.Option(help="A file ending with .html, .xml or .json; all in the folder else.")
    ] = None,
) -> None:
    """Write a run's reports again from its record, and print its figures."""
    from tbadapters.reports.files import write_run

    result = load_result(run_folder)
    if to is None:
        write_run(result, run_folder)
    else:
        result.report(to)
    typer.echo(str(result))
    typer.echo(f"Report: {to or run_folder / 'report.html'}")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; every error is one sentence and a documented exit code."""
    try:
        app(arguments)
    except SystemExit as left:
        _leave(left.code)
    except Exception as error:  # noqa: BLE001  (the last place where one can be said in a sentence)
        if os.environ.get(DEBUG):
            traceback.print_exception(error)
        typer.echo(f"tbadapters: {visible(_sentence(error))}", err=True)
        _leave(_code(error))
    _leave(DONE)


def _leave(code: str | int | None) -> NoReturn:
    """Exit; an abandoned agent that still runs is ended with the process, whatever it holds."""
    if is_left() and (code is None or isinstance(code, int)):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or DONE)
    sys.exit(code)


def _sentence(error: Exception) -> str:
    if isinstance(error, TbAdaptersError):
        return str(error)
    kept = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    return f"this is a bug in tbadapters, please report it ({describe(error)}; {DEBUG}=1 shows where).{kept}"


def _code(error: Exception) -> int:
    codes: tuple[tuple[type[TbAdaptersError], int], ...] = (
        (UsageError, USAGE),
        (SuiteError, SUITE_WRONG),
        (RunStopped, STOPPED),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), BUG)


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
    except asyncio.CancelledError:
        raise typer.Exit(INTERRUPTED) from None


_INTERRUPTED = "interrupted"


def _given(parameters: dict[str, Any]) -> Options:
    """Return a command's parameters as options, those that name no option of ``Campaign`` translated."""
    given = {name: value for name, value in parameters.items() if name not in ("agent", "agents", "resume")}
    given["tasks"] = patterns_of(given["tasks"])
    given["prices"] = prices_of(given.pop("price")) or None
    return given


def _print_comparison(comparison: Comparison) -> None:
    typer.echo(str(comparison))
    for result in comparison.results.values():
        typer.echo(f"{result.agent}: {_folder(result) / 'report.html'}")
    typer.echo(f"Comparison: {comparison.folder}/report.html")


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
