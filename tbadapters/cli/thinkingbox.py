"""Commands about the public benchmark: ``thinkingbox setup``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tbadapters.cli.app import CHECK_FAILED, DONE, app
from tbadapters.core.event_loop import run_to_end
from tbadapters.core.suite import Suite
from tbadapters.reports.text import visible

thinkingbox = typer.Typer(help="Prepare a checkout of thinkingbox-data for runs.", no_args_is_help=True)
app.add_typer(thinkingbox, name="thinkingbox")


@thinkingbox.callback()
def _group() -> None:
    """Prepare a checkout of thinkingbox-data for runs."""


@thinkingbox.command()
def setup(
    data: Annotated[Path | None, typer.Option(help="The checkout; without it, what THINKINGBOX_DATA names.")] = None,
    env: Annotated[
        Path | None, typer.Option(help="Where the environment is made (default: in the cache folder).")
    ] = None,
) -> None:
    """Make the tool servers' environment, and check it with one task of each domain. The checkout stays as it is."""
    from tbadapters.suites.thinkingbox import load
    from tbadapters.suites.thinkingbox.environment import default_folder, make_environment, remember
    from tbadapters.suites.thinkingbox.files import DataFolder

    folder = DataFolder.of(data)
    made = make_environment(folder, env or default_folder(folder), tell=typer.echo)
    suite = _sample(load(data=folder.root, python=made.python))
    if suite is None:
        remember(folder, made)
        typer.echo("No task has golden calls: nothing to check it with.")
        raise typer.Exit(DONE)
    typer.echo(f"Checking it with {', '.join(visible(task.id) for task in suite.tasks)}")
    assert suite.check is not None  # noqa: S101  (the suite's own, which load() gives it)
    report = run_to_end(suite.check(suite))
    typer.echo(report.summary)
    if not report.ok:
        for row in report.rows():
            typer.echo(
                f"  {row.name}: {visible(row.note)}" if row.note else f"  {row.name}: {row.held} of {row.of}", err=True
            )
        raise typer.Exit(CHECK_FAILED)
    remember(folder, made)
    typer.echo(
        f"Ready: load_suite('thinkingbox', data={str(folder.root)!r}) finds it. Its interpreter is {made.python}."
    )
    for note in suite.notes:
        typer.echo(f"Note: {note}")


def _sample(suite: Suite) -> Suite | None:
    """Return the suite with the first task of each part that has golden calls, or None where none has any."""
    chosen = [
        next((task.id for task in part.tasks if task.expectation.end_states[0].actions), None)
        for part in suite.parts or (suite,)
    ]
    found = [task_id for task_id in chosen if task_id is not None]
    return suite.select(found) if found else None
