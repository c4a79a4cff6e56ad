"""Freezes the clock of a server's process: ``date.today()`` is then the day that the server's policy names.

Option ``clock``: the moment, ISO 8601 with its offset; absent or None leaves the clock alone. The clock stands still in
forked processes, too. What measures time (``time.monotonic``, so event loops and deadlines) goes on.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def before_import(options: Mapping[str, Any]) -> None:
    """Freeze the clock, in UTC: what a server calls local time must not depend on where it runs.

    Raises:
        RuntimeError: the server's environment lacks time-machine, or the option is no moment.
    """
    text = options.get("clock")
    if text is None:
        return
    moment = _moment(text)
    try:
        time_machine = importlib.import_module("time_machine")
    except ImportError as error:
        raise RuntimeError(
            f"The clock of the server can't be frozen at {text}: its environment ({sys.executable}) lacks the package "
            "time-machine. Install it there, or leave the clock alone (clock='wall')."
        ) from error
    os.environ["TZ"] = "UTC"
    if hasattr(time, "tzset"):
        time.tzset()
    time_machine.travel(moment, tick=False).start()


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise RuntimeError(f"clock={text!r}: a moment with its offset is needed, such as 2025-10-01T13:00:00+00:00.")
    return moment.astimezone(UTC)
