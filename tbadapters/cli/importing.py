"""Commands that take in what other harnesses wrote: ``import-thinkingbox``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tbadapters.campaign import DEFAULT_OUT
from tbadapters.cli.app import app
from tbadapters.cli.options import OutOption, PriceOption, prices_of
from tbadapters.core.errors import UsageError
from tbadapters.core.event_loop import run_to_end
from tbadapters.core.run_folder import load_result
from tbadapters.core.sandbox import running
from tbadapters.core.suite import Suite

if TYPE_CHECKING:
    from tbadapters.suites.thinkingbox.importing import Import


@app.command("import-thinkingbox")
def import_thinkingbox(
    file: Annotated[Path, typer.Argument(metavar="file.jsonl", help="Rows written by `tb infer`.")],
    data: Annotated[
        Path | None, typer.Option(help="A checkout of thinkingbox-data, for the tasks' tags and golden calls.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Replay failed trials on the checkout's servers for effects and causes.")
    ] = False,
    python: Annotated[
        str | None, typer.Option(help="The interpreter that runs the servers (default: that of `thinkingbox setup`).")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What tables call the agent (default: the file's name).")] = None,
    model: Annotated[
        str | None, typer.Option(help="The agent's model, for its price (default: what is said beside the file).")
    ] = None,
    price: PriceOption = None,
    out: OutOption = None,
) -> None:
    """Turn rows of `tb infer` into a run folder. They get the same figures and reports as a run of one's own."""
    from tbadapters.reports.files import write_run
    from tbadapters.suites.thinkingbox import importing, load
    from tbadapters.suites.thinkingbox.files import VARIABLE

    if replay and data is None:
        if VARIABLE not in os.environ:
            raise UsageError(
                f"--replay needs the tool servers: name the checkout of thinkingbox-data by --data or in {VARIABLE}."
            )
        data = Path(os.environ[VARIABLE])
    results = importing.Results.of(file)
    suite = load(data=data, tests=importing.tests_with(data, results.uids), python=python) if replay and data else None
    rows = importing.Import(
        results=results,
        name=name or file.stem,
        model=model or importing.model_of(file) or "unknown model",
        prices=prices_of(price),
        known={} if data is None else importing.known_tests(data, results.uids),
        explain=importing.explainer(suite) if suite else None,
    )
    folder = run_to_end(_written(rows, suite, out or Path(DEFAULT_OUT)))
    result = load_result(folder)
    write_run(result, folder)
    typer.echo(str(result))


async def _written(rows: Import, suite: Suite | None, out: Path) -> Path:
    """Write the run folder; the suite's servers run meanwhile, where it replays."""
    if suite is None:
        return await rows.into(out)
    from tbadapters.suites.thinkingbox.importing import check_servers

    async with running(suite.backend):
        await check_servers(suite, rows)
        return await rows.into(out)
