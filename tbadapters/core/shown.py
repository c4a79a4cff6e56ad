"""How a result shows itself: as text, in one line inside other texts, and as the files of its reports."""

from __future__ import annotations

import json
from abc import abstractmethod
from pathlib import Path
from typing import Any

from tbadapters.core.errors import InvalidOption, UnusableFolder
from tbadapters.core.plain import encodable
from tbadapters.core.plugins import load_plugin

REPORTS = {".html": "html", ".md": "markdown", ".xml": "junit", ".csv": "trials"}


class Shown:
    """What a run's result and a comparison have in common: tables as text, one line instead of a dump, reports."""

    @property
    @abstractmethod
    def in_short(self) -> str:
        """The whole in one line."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the whole as JSON-like data."""

    def report(self, path: str | Path) -> Path:
        """Write a report and return its path.

        Args:
            path: What it ends with decides: ``.html`` the page, ``.md`` Markdown, ``.xml`` JUnit, ``.json`` the
                figures, ``.csv`` the trials.

        Raises:
            InvalidOption: another ending.
            UnusableFolder: the file can't be written.
        """
        target = Path(path)
        if target.suffix != ".json" and target.suffix not in REPORTS:
            raise InvalidOption(f"The report {target.name!r} must end with {', '.join(REPORTS)} or .json.")
        try:
            if target.suffix == ".json":
                text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
                target.write_text(encodable(text) + "\n", encoding="utf-8")
            else:
                load_plugin("tbadapters.reports", REPORTS[target.suffix], kind="report")(self, target)
        except OSError as error:
            raise UnusableFolder(f"The report {str(target)!r} can't be written: {error.strerror or error}.") from error
        return target

    def __str__(self) -> str:
        return str(load_plugin("tbadapters.reports", "terminal", kind="report")(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.in_short}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the tables where IPython or Jupyter shows a cell's last value: its protocol."""
        del cycle
        printer.text(str(self))
