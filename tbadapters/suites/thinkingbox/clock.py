"""What time it is for the servers of ThinkingBox-Bench.

All five policies say that it is 1 October 2025, 13:00 UTC, whatever the day. Most tools have a date of their own in
their code; two retail tools ask the process's clock, so that their answers change as the years pass. It is therefore
frozen at the policies' date, unless the canonical behaviour is asked for.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tbadapters.core.errors import InvalidOption

POLICY_TIME = datetime(2025, 10, 1, 13, tzinfo=UTC)


def frozen_at(clock: str | datetime) -> datetime | None:
    """Return the moment at which the servers' clock stands still, or None where it goes.

    Args:
        clock: ``"policy"`` for the policies' date, ``"wall"`` for the clock on the wall (canonical), or a moment with
            its offset.

    Raises:
        InvalidOption: it is none of these.
    """
    if clock == "wall":
        return None
    if clock == "policy":
        return POLICY_TIME
    if isinstance(clock, datetime) and clock.tzinfo is not None:
        return clock.astimezone(UTC)
    given = clock.isoformat() if isinstance(clock, datetime) else clock
    raise InvalidOption(
        f"clock={given!r}: 'policy', 'wall', or a moment with its offset (2025-10-01T13:00Z) is needed."
    )


def clock_options(moment: datetime | None) -> dict[str, Any]:
    """Return the options of the preparation file ``preparations.CLOCK``."""
    return {"clock": None if moment is None else moment.isoformat()}


def clock_note(moment: datetime | None) -> str | None:
    """Return what a reader of the figures must know of the clock, or None where it is the canonical one."""
    if moment is None:
        return None
    return f"clock: frozen at {moment:%Y-%m-%dT%H:%M:%SZ} in the servers, not canonical"
