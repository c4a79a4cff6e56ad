"""How numbers of things read in a sentence."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """Return a number of things in words: ``1 task``, ``1,024 tasks``, ``2.5 points``."""
    shown = f"{number:,.10g}"
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"


def in_points(difference: float) -> str:
    """Return a difference of rates in percentage points: ``+1.2``; what rounds to 0 is ``+0.0``, never less."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"
