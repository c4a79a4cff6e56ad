"""Test files: Python read with ``ast``, never executed here; the YAML in its strings describes the tasks."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tbadapters.core.errors import SuiteError
from tbadapters.suites.thinkingbox.files import TestConfig, checked, read_yaml

MARK = "!"  # a string that begins with it is YAML
RUBRICS = frozenset({"rubrics", "rubrics_yesno"})  # what a world holds for the judge to be asked


@dataclass(frozen=True, slots=True)
class TestFunction:
    """A test function: what it says of its task, and what it needs to be executed.

    Attributes:
        file: The file that it stands in.
        name: Its name; with the file's name it makes the uid.
        config: Its YAML over the file's.
        fixtures: Parameters beside ``x`` and ``judge``.
        asks: Whether it asks the judge: ``True`` whatever the world, names of the world's keys that hold the questions,
            or nothing at all.
    """

    __test__ = False  # it is no test, whatever pytest makes of its name

    file: Path
    name: str
    config: TestConfig
    fixtures: tuple[str, ...] = ()
    asks: bool | frozenset[str] = False

    @property
    def uid(self) -> str:
        """``file.py:function``, as the reference writes it."""
        return f"{self.file.name}:{self.name}"

    def needs_judge(self, world: Mapping[str, Any]) -> bool:
        """Say whether the function asks the judge in this world."""
        if isinstance(self.asks, bool):
            return self.asks
        return any(isinstance(config, Mapping) and config.get(key) for config in world.values() for key in self.asks)


def read_test_file(path: Path) -> dict[str, TestFunction]:
    """Return a file's test functions by name, in the file's order.

    A test is a top-level function whose first statement is a string that begins with ``!``: YAML, laid over that of the
    strings at the top level above it (key by key; ``tags`` add up).

    Raises:
        SuiteError: the file is no Python, or a YAML text in it is wrong.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, SyntaxError, ValueError) as error:
        raise SuiteError(f"The test file {path} can't be read: {error}.") from error
    calls = _Calls.of(tree)
    common: dict[str, Any] = {}
    found: dict[str, TestFunction] = {}
    for node in tree.body:
        if (text := _text(node)) is not None:
            common |= _mapping(text, f"The text at line {node.lineno} of {path.name}")
        elif isinstance(node, ast.FunctionDef) and (text := _text(node.body[0])) is not None:
            where = f"{path.name}:{node.name}"
            own = _mapping(text, where)
            config = checked(_laid_over(common, own), TestConfig, where)
            found[node.name] = TestFunction(path, node.name, config, _fixtures(node), calls.asks(node.name))
    return found


def _text(node: ast.stmt) -> str | None:
    """Return the YAML of a statement that is a string which begins with the mark."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
        return None
    value = node.value.value
    return textwrap.dedent(value[1:]) if isinstance(value, str) and value.startswith(MARK) else None


def _mapping(text: str, where: str) -> dict[str, Any]:
    try:
        content = read_yaml(text)
    except yaml.YAMLError as error:
        raise SuiteError(f"{where} holds no YAML: {' '.join(str(error).split())}.") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SuiteError(f"{where} holds {type(content).__name__} where a YAML mapping is needed.")
    return content


def _laid_over(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    laid = {**common, **own}
    if isinstance(common.get("tags"), list) and isinstance(own.get("tags"), list):
        laid["tags"] = common["tags"] + own["tags"]
    return {key: value for key, value in laid.items() if value is not None}


def _fixtures(node: ast.FunctionDef) -> tuple[str, ...]:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    return tuple(name for name in names if name not in ("x", "judge"))


@dataclass(frozen=True, slots=True)
class _Calls:
    """Which functions of a file name which others, and which of them use the judge."""

    names: dict[str, frozenset[str]] = field(default_factory=dict)
    texts: dict[str, frozenset[str]] = field(default_factory=dict)
    judging: frozenset[str] = frozenset()

    @classmethod
    def of(cls, tree: ast.Module) -> _Calls:
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        names = {name: frozenset(_names(node)) & functions.keys() for name, node in functions.items()}
        texts = {name: frozenset(_strings(node)) for name, node in functions.items()}
        return cls(names, texts, frozenset(name for name, node in functions.items() if _uses_judge(node)))

    def asks(self, name: str) -> bool | frozenset[str]:
        """Return what ``TestFunction.asks`` is of a function: it asks where a function that it reaches does."""
        reached: set[str] = set()
        ahead = [name]
        while ahead:
            function = ahead.pop()
            if function not in reached:
                reached.add(function)
                ahead.extend(self.names[function])
        if not reached & self.judging:
            return False
        return RUBRICS & frozenset().union(*(self.texts[function] for function in reached)) or True


def _names(node: ast.AST) -> Iterator[str]:
    return (found.id for found in ast.walk(node) if isinstance(found, ast.Name))


def _strings(node: ast.AST) -> Iterator[str]:
    constants = (found.value for found in ast.walk(node) if isinstance(found, ast.Constant))
    return (value for value in constants if isinstance(value, str))


def _uses_judge(node: ast.AST) -> bool:
    """Say whether ``judge`` is named in a body: asked, or handed on to who may ask it under another name."""
    return "judge" in _names(node)
