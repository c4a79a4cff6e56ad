"""The command ``gate``: what a run must come to, for scripts and continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tbadapters.cli.app import DONE, app
from tbadapters.cli.options import FloorOption, PriceOption, RunFolder, prices_of
from tbadapters.core.gates import State, check_gate
from tbadapters.core.run_folder import load_result
from tbadapters.reports.text import coverage_text, visible

NOT_MET, COVERAGE_TOO_LOW = 1, 3
_CODES: dict[State, int] = {"met": DONE, "not met": NOT_MET, "coverage too low": COVERAGE_TOO_LOW}


@app.command(epilog="Exit codes: 0 met, 1 not met, 2 usage, 3 coverage too low to say, 70 a bug in tbadapters.")
def gate(
    run_folder: RunFolder,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help='A figure\'s name and what it must come to, such as "pass@1>=0.8", "observed k/k>=50%", '
            '"task:card_*:pass@1>=0.9" (each such task), "tag:dispute:pass^5>=0.3"; may be repeated.'
        ),
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="The run folder of a baseline: a drop is called by the paired test over tasks.")
    ] = None,
    max_drop: Annotated[
        float | None, typer.Option(help="The drop of pass@1 against the baseline that is put up with (default 0).")
    ] = None,
    coverage_floor: FloorOption = None,
    price: PriceOption = None,
) -> None:
    """Hold a run to what is required of it. The exit code says to a script what came of it."""
    result = load_result(run_folder, coverage_floor=coverage_floor, prices=prices_of(price))
    baseline = None if against is None else load_result(against, coverage_floor=coverage_floor)
    found = check_gate(result, require or (), against=baseline, max_drop=max_drop)
    typer.echo(f"{visible(result.agent)} on {visible(result.suite)}: {coverage_text(result.coverage)} trials")
    width = max(len(finding.state) for finding in found.findings)
    for finding in found.findings:
        typer.echo(f"  {finding.state:<{width}}  {visible(finding.requirement)}: {visible(finding.why)}")
    typer.echo(f"Gate: {found.state}{f' ({found.lacking})' if found.lacking else ''}")
    raise typer.Exit(_CODES[found.state])
