"""What the core finds by entry point instead of importing it: suites, frameworks, reports."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tbadapters.core.errors import UnknownName


@cache
def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def plugin_names(group: str) -> list[str]:
    """Return the names that an entry point group knows."""
    return sorted(_points(group))


def load_plugin(group: str, name: str, *, kind: str) -> Any:
    """Return what an entry point names.

    Raises:
        UnknownName: no such entry point; ``kind`` is the word for it in the message.
    """
    points = _points(group)
    if name not in points:
        raise UnknownName(kind, name, points)
    return points[name].load()
