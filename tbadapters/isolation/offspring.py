"""Who descends from a process, so that whatever an agent started ends with it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

WANTED = b"p"  # what a fork server is sent, with a socket, for each process that is wanted


def offspring(ancestor: int) -> list[int]:
    """Return the processes that descend from one, as far as the system tells (Linux)."""
    children: dict[int, list[int]] = {}
    for process, parent in _processes():
        children.setdefault(parent, []).append(process)
    found: list[int] = []
    waiting = [ancestor]
    while waiting:
        born = children.get(waiting.pop(), [])
        found += born
        waiting += born
    return found


def parent_of(process: int) -> int | None:
    """Return the parent of a process; None where it is gone or the system does not tell."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(errors="replace")
    except OSError:
        return None
    return int(status.rpartition(")")[2].split()[1])


def _processes() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(OSError):
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (parent := parent_of(int(entry.name))) is not None:
                yield int(entry.name), parent
