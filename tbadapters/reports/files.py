"""The files that a finished run leaves in its folder, all made of what the run folder records."""

from __future__ import annotations

from pathlib import Path

from tbadapters.core.comparison import Comparison
from tbadapters.core.result import RunResult

RUN_FILES = ("results.json", "report.html", "junit.xml")
COMPARISON_FILES = ("comparison.json", "report.html")


def write_run(result: RunResult, folder: Path) -> None:
    """Write a run's ``results.json``, ``report.html`` and ``junit.xml``."""
    for name in RUN_FILES:
        result.report(folder / name)


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """Write a comparison's ``comparison.json`` and ``report.html``."""
    for name in COMPARISON_FILES:
        comparison.report(folder / name)
