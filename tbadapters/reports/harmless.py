"""Data whose text can fool no reader of the page."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from tbadapters.reports.text import visible


def harmless(value: Any) -> Any:
    """Return JSON-like data with all text in it made ``visible``; markup of our own stays as it is."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {key: harmless(item) for key, item in value.items()}
    return [harmless(item) for item in value] if isinstance(value, list | tuple) else value
