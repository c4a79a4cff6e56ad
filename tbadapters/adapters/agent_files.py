"""Agents' files, each imported with the modules of its own folder, although another agent's may have the same names.

``compare`` takes two versions of an agent side by side: ``old/agent.py`` and ``new/agent.py``, each with a
``prompts.py``. Python knows one module ``prompts`` a process. So while a file is imported, the modules of other agents'
folders are out of sight; afterwards a name that two folders have belongs to neither, and whoever imports it only then
is told so, rather than given the other agent's.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from tbadapters.core.errors import UnimportableAgent

_folders: list[Path] = []  # of the agents' files imported so far


class ContestedModule(ModuleType):
    """What stands for a module that the folders of several agents have, once these are imported."""

    def __init__(self, name: str, folders: tuple[Path, ...]) -> None:
        super().__init__(name)
        self.__dict__["_folders"] = folders

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__"):  # asked by whoever walks through all modules
            raise AttributeError(attribute)
        raise UnimportableAgent(
            self.__name__,
            f"{' and '.join(map(str, self.__dict__['_folders']))} each have a module of this name. Import it at the "
            "top of the agent's file, where each gets its own; or evaluate the agents in processes of their own.",
        )


def import_file(path: Path) -> ModuleType:
    """Import an agent's file, which may import what lies beside it.

    Args:
        path: The file, absolute.

    Raises:
        Exception: whatever the file raises.
    """
    name = f"tbadapters_agent_{path.stem}_{sha256(str(path).encode()).hexdigest()[:12]}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None  # noqa: S101  (a .py file has a loader)
    assert found.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(found)
    with _to_itself(path.parent):
        sys.modules[name] = module  # dataclasses and pickles look their module up
        found.loader.exec_module(module)
    return module


@contextmanager
def _to_itself(folder: Path) -> Iterator[None]:
    """Give an agent's folder a place on the path, and hide the modules of other agents' folders meanwhile."""
    on_path = {_resolved(entry) for entry in sys.path}
    if folder not in on_path:
        # Last, so that a file of the user's named agents.py does not hide the SDK's module of that name.
        sys.path.append(str(folder))
    others = [other for other in _folders if other != folder and other in on_path]
    _folders[:] = [*others, folder]
    places = [(place, entry) for place, entry in enumerate(sys.path) if _resolved(entry) in others]
    for _, entry in places:
        sys.path.remove(entry)
    hidden = {name: module for name, module in list(sys.modules.items()) if _home(name) in others}
    for name in [*hidden, *_contested()]:
        sys.modules.pop(name, None)
    try:
        yield
    finally:
        for place, entry in places:
            sys.path.insert(place, entry)
        sys.modules.update(hidden)
        _contest()


def _contest() -> None:
    """Put a ``ContestedModule`` where a module of several agents' folders is, or could be imported later."""
    outside = [entry for entry in sys.path if _resolved(entry) not in _folders]
    owners: dict[str, list[Path]] = {}
    for folder in _folders:
        for name in _names(folder):
            owners.setdefault(name, []).append(folder)
    for name, folders in owners.items():
        if len(folders) < 2 or PathFinder.find_spec(name, outside):  # noqa: PLR2004  (two are a contest)
            continue
        if name in sys.modules and _home(name) not in folders:
            continue
        for loaded in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
            del sys.modules[loaded]
        sys.modules[name] = ContestedModule(name, tuple(folders))


def _contested() -> list[str]:
    return [name for name, module in list(sys.modules.items()) if isinstance(module, ContestedModule)]


def _names(folder: Path) -> set[str]:
    """Return the names of the modules and packages of a folder."""
    files = {path.stem for path in folder.glob("*.py")}
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    return (files | packages) - {"__init__", "__main__"}


def _home(name: str) -> Path | None:
    """Return the folder in which a loaded module, or the package that it is of, was found."""
    file = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None)
    if not isinstance(file, str):
        return None
    path = Path(file)
    return path.parent.parent if path.name == "__init__.py" else path.parent


def _resolved(entry: str) -> Path:
    return Path(entry or ".").resolve()
