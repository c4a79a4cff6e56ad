"""Commands about suites: ``tasks``, ``check``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tbadapters.cli.app import CHECK_FAILED, DONE, app
from tbadapters.cli.options import SeedOfSuite, SuiteArgument, SuiteOptions, suite_of, suite_options_of
from tbadapters.core.event_loop import run_to_end
from tbadapters.core.numbers import counted
from tbadapters.core.suite_report import SuiteReport
from tbadapters.reports.text import visible


@app.command("tasks")
def list_tasks(suite: SuiteArgument, suite_seed: SeedOfSuite = None, suite_option: SuiteOptions = None) -> None:
    """List a suite's tasks."""
    loaded = suite_of(suite, suite_seed, suite_options_of(suite_option))
    # A server's tools are not counted: it would be started for that.
    tools = f", {len(loaded.tool_list)} tools" if isinstance(loaded.tool_list, tuple) and loaded.tool_list else ""
    typer.echo(f"{loaded.name}: {counted(len(loaded.tasks), 'task')}{tools}")
    for task in loaded.tasks:  # a line each, so that it can be searched
        typer.echo(visible(f"{task.id}  [{', '.join(task.tags)}]  {' '.join(task.opening.split())}"))


@app.command()
def check(
    suite: SuiteArgument,
    seeds: Annotated[int, typer.Option(min=0, help="How many fresh seeds are checked, from 1 up.")] = 10,
    suite_option: SuiteOptions = None,
) -> None:
    """Say whether a suite is right. Golden actions must pass; less, more and other actions must not."""
    from tbadapters.testing.checks import check_suite

    loaded = suite_of(suite, None, suite_options_of(suite_option))
    report: SuiteReport
    if loaded.check is not None:
        report = run_to_end(loaded.check(loaded))
    else:
        report = run_to_end(check_suite(loaded, seeds=range(1, seeds + 1)))
    table = Table(title=f"{suite}: checks", title_justify="left")
    for column in ("check", "held", "of", "", "note"):
        table.add_column(column, overflow="fold")
    before = ""
    for row in report.rows():  # a task that can't even be set up fails every check for one reason, told once
        note = "as above" if row.note and row.note == before else row.note
        before = row.note
        table.add_row(row.name, str(row.held), str(row.of), "ok" if row.ok else "FAILED", Text(note))
    Console().print(table)
    typer.echo(report.summary)
    raise typer.Exit(DONE if report.ok else CHECK_FAILED)
