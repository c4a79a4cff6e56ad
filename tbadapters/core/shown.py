"""How a result shows itself: in full where it is printed or ends a notebook's cell, in one line inside other texts."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tbadapters.core.plugins import load_plugin


class Shown:
    """What a run's result and a comparison have in common: their tables as text, and one line instead of a dump."""

    @property
    @abstractmethod
    def in_short(self) -> str:
        """The whole in one line."""

    def __str__(self) -> str:
        return str(load_plugin("tbadapters.reports", "terminal", kind="report")(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.in_short}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the tables where IPython or Jupyter shows a cell's last value: its protocol."""
        del cycle
        printer.text(str(self))
