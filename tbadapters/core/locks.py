"""One process at a time on a run folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tbadapters.core.errors import UnusableFolder


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; the operating system lets go of it when the process dies, however it dies.

    Raises:
        UnusableFolder: another process holds it, or the folder can't be written.
    """
    try:
        file = (folder / ".lock").open("a")
    except OSError as error:
        raise UnusableFolder(f"The run folder {folder} can't be written ({error.strerror}).") from error
    with file:
        try:
            _lock(file.fileno())
        except OSError as error:
            raise UnusableFolder(f"The run folder {folder} is in use by another process.") from error
        yield


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
