"""How numbers of things read in a sentence."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number of things in words: ``1 task``, ``1,024 tasks``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
