"""A task's own test function: the file that it stands in, with the other tests blanked.

Nothing of the file is executed here; ``function_runner.py`` has that done in another process.
"""

from __future__ import annotations

import ast
import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tbadapters.core.errors import GraderFault

_ONE_AT_A_TIME = threading.Lock()
"""Python 3.11's ``ast.parse`` fails at random where two threads are in it; and no file need be read twice."""


@dataclass(frozen=True, slots=True)
class GradingFunction:
    """The test function that gives a task's verdict.

    Attributes:
        file: The Python file.
        name: The function's name.
    """

    file: Path
    name: str

    @property
    def code(self) -> str:
        """The file's text, in which every line of another test is blank; lines keep their numbers.

        Raises:
            GraderFault: the file can't be read, is no Python, or holds no such test.
        """
        with _ONE_AT_A_TIME:
            tests = _tests(self.file)
        own = tests.where.get(self.name)
        if own is None:
            raise GraderFault(f"{self.file.name} holds no test named {self.name}.", code="no_test")
        return "\n".join([*tests.blanked[: own.start], *tests.lines[own.start : own.stop], *tests.blanked[own.stop :]])


class _Tests(NamedTuple):
    """A file's lines, the same with all tests blanked, and in which of them each test stands."""

    lines: tuple[str, ...]
    blanked: tuple[str, ...]
    where: dict[str, range]


@lru_cache(maxsize=64)
def _tests(file: Path) -> _Tests:
    """Return the tests of a file; of two with the same name the last one counts, as it does in Python."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text, str(file))
    except (OSError, SyntaxError, ValueError) as error:
        raise GraderFault(f"The test file {file.name} can't be read: {error}.", code="no_test") from error
    lines = text.split("\n")
    blanked = list(lines)
    where = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _described(node):
            where[node.name] = range(node.lineno - 1, node.end_lineno or node.lineno)
            blanked[node.lineno - 1 : node.end_lineno] = [""] * len(where[node.name])
    return _Tests(tuple(lines), tuple(blanked), where)


def _described(node: ast.FunctionDef) -> bool:
    """Say whether a function is a test: its first statement is a string that begins with ``!``."""
    first = node.body[0]
    return (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
        and first.value.value.startswith("!")
    )
