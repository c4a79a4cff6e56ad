"""Commands about what was run: ``show``, ``report``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tbadapters.cli.app import app
from tbadapters.cli.options import FloorOption, PriceOption, RunFolder, prices_of
from tbadapters.core.comparison import Comparison
from tbadapters.core.cost import Price
from tbadapters.core.errors import InvalidOption
from tbadapters.core.result import RunResult
from tbadapters.core.run_folder import check_priced, load_result, read_result


@app.command()
def show(
    run_folder: RunFolder,
    task: Annotated[str, typer.Argument(help="The task's id.")],
    trial: Annotated[int, typer.Argument(help="The trial's index, from 0.")],
) -> None:
    """Show one trial: conversation, tool calls, effects."""
    from tbadapters.reports.terminal import show_trial

    result = load_result(run_folder)
    record = result.trial(task, trial)
    typer.echo(show_trial(record, result.task(task).task))


@app.command()
def report(
    run_folders: Annotated[
        list[str], typer.Argument(metavar="run_folder...", help="A run folder; several (name=folder) are compared.")
    ],
    to: Annotated[
        Path | None,
        typer.Option(help="A file ending with .html, .md, .xml, .json or .csv; all in the run's folder else."),
    ] = None,
    coverage_floor: FloorOption = None,
    price: PriceOption = None,
) -> None:
    """Write a run's reports again, or compare finished runs. Nothing is run: all is made of what was recorded."""
    from tbadapters.reports.files import write_run

    runs = results_of(run_folders, coverage_floor=coverage_floor, prices=prices_of(price))
    result = Comparison(runs) if len(runs) > 1 else next(iter(runs.values()))
    if to is not None:
        result.report(to)
    elif isinstance(result, RunResult):
        folder = result.folder or Path()
        write_run(result, folder)
        to = folder / "report.html"
    typer.echo(str(result))
    if to is not None:
        typer.echo(f"Report: {to}")


def results_of(
    texts: Sequence[str], *, coverage_floor: float | None, prices: Mapping[str, Price]
) -> dict[str, RunResult]:
    """Return results by name of ``folder`` or ``name=folder``; without a name, the agent's name is it.

    Raises:
        InvalidOption: two have the same name.
        UnknownName: a price is of a model that none of them asked.
    """
    results: dict[str, RunResult] = {}
    for text in texts:
        name, _, folder = ("", "", text) if Path(text).is_dir() else text.rpartition("=")
        result = read_result(folder, coverage_floor=coverage_floor, prices=prices)
        name = name or result.agent
        if name in results:
            raise InvalidOption(f"Two of the runs are named {name!r}: give each a name of its own, other={folder}.")
        results[name] = result
    check_priced(prices, results.values())
    return results
