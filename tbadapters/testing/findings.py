"""One finding of a check."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """Something that was looked at in a task: ``fault`` says what is wrong with it, None if nothing is."""

    task: str
    fault: str | None
