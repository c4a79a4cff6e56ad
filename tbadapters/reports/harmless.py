"""Data whose text can fool no reader of the page."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from typing import Any

from markupsafe import Markup

from tbadapters.reports.text import visible

_JOINTS = re.compile(r"(?<=[/_:.])(?=[^/_:.])")


def breakable(name: str) -> Markup:
    """Return a name made harmless that may be broken into lines where its parts are joined, rather than anywhere."""
    return Markup("<wbr>").join(_JOINTS.split(visible(name)))


def harmless(value: Any) -> Any:
    """Return data as JSON-like data, all text in it made ``visible``; markup of our own stays as it is.

    Dataclasses become their fields. (``dataclasses.asdict`` would copy every value, which takes longer than all else.)
    """
    if isinstance(value, Markup):
        return value
    if isinstance(value, str):
        return visible(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {name: harmless(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {key: harmless(item) for key, item in value.items()}
    return [harmless(item) for item in value] if isinstance(value, list | tuple) else value
