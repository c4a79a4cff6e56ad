"""The trials of a run, or of several, as comma-separated values: a row a planned trial."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

from tbadapters.core.comparison import Comparison
from tbadapters.core.result import RunResult
from tbadapters.core.trial_table import COLUMNS, Cell, trial_rows
from tbadapters.reports.text import visible

# A spreadsheet would compute what begins with one of these; in some languages, with its full-width form, too.
_FORMULA = ("=", "+", "-", "@", "\t", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write(result: RunResult | Comparison, path: str | Path) -> Path:
    """Write a row for each planned trial and return the path; what is unknown is left empty.

    Raises:
        OSError: the file can't be written.
    """
    several = result.results if isinstance(result, Comparison) else {result.agent: result}
    results = [replace(found, agent=name) for name, found in several.items()]
    target = Path(path)
    with target.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for found in results:
            rows.writerows([_text(cell) for cell in row.values()] for row in trial_rows(found))
    return target


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        shown = visible(cell)
        return f"'{shown}" if shown.startswith(_FORMULA) else shown
    if isinstance(cell, bool):
        return str(cell).lower()
    return "" if cell is None else repr(cell)
