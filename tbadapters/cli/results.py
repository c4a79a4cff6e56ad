"""Commands about what was run: ``show``, ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tbadapters.cli.app import app
from tbadapters.cli.options import RunFolder
from tbadapters.core.run_folder import load_result


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
