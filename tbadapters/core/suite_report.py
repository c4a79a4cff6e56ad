"""What the checks of a suite found, whoever made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class CheckRow(NamedTuple):
    """One check in a table: how many of its findings hold, and whether that is enough."""

    name: str
    held: int
    of: int
    ok: bool
    note: str


class SuiteReport(Protocol):
    """What the checks of a suite found."""

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        ...

    @property
    def summary(self) -> str:
        """The findings in one line."""
        ...

    def rows(self) -> Sequence[CheckRow]:
        """Return one row a check."""
        ...
