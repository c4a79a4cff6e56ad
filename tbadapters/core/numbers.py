"""How numbers of things read in a sentence."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """Return a number of things in words: ``1 task``, ``1,024 tasks``, ``2.5 points``."""
    shown = f"{number:,.10g}"
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"
