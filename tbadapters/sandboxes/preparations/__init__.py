"""Preparation files: executed in a server's own process, by its own interpreter, before its module is imported.

They use the standard library and what the server's environment has; nothing of this package. Each is read as a file,
by its path: the server's environment need not have the package.
"""

from pathlib import Path

CLOCK = Path(__file__).with_name("clock.py")
SEARCH = Path(__file__).with_name("search.py")
