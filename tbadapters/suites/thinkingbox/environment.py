"""The servers' own Python environment: where it is, how it is made, and what is remembered of it.

The servers need packages that an agent's environment should not have to share. ``tbadapters thinkingbox setup`` makes an
environment for one checkout in the user's cache folder, never inside the checkout; a record beside it tells
``load_suite`` where it is.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from tbadapters.core.errors import UsageError
from tbadapters.suites.thinkingbox.files import DataFolder

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
IMPORT_PATH = "tbadapters_thinkingbox.pth"
_SHOWN = 2000  # characters of a failed command's output


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment that was made for the servers of a checkout.

    Attributes:
        data: The checkout.
        python: Its interpreter.
        made: When, in UTC.
    """

    data: str
    python: str
    made: str


def cache_folder() -> Path:
    """Return the folder in which environments, records of them and listings of tools are kept."""
    return user_cache_path("tbadapters", appauthor=False) / "thinkingbox"


def default_folder(data: DataFolder) -> Path:
    """Return where a checkout's environment is made, unless another folder is given."""
    return cache_folder() / _key(data.root)


def _record(data: DataFolder) -> Path:
    return default_folder(data).with_suffix(".json")


def _key(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:12]


def find_environment(data: DataFolder) -> Environment | None:
    """Return the environment that was made for a checkout, or None where there is none (any more)."""
    try:
        found = Environment(**json.loads(_record(data).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if Path(found.python).exists() else None


def python_of(data: DataFolder, python: str | None) -> str:
    """Return the interpreter that runs a checkout's servers: the one that is given, or of the environment made for it.

    Raises:
        UsageError: neither is there.
    """
    if python is not None:
        return python
    environment = find_environment(data)
    if environment is None:
        raise UsageError(
            f"There is no environment for the tool servers of {data.root}: make it by `tbadapters thinkingbox setup "
            f"--data {data.root}`, or name the interpreter of one that has their packages as python=PATH."
        )
    return environment.python


def make_environment(data: DataFolder, folder: Path, *, tell: Callable[[str], None]) -> Environment:
    """Make the environment of a checkout's servers, or bring it up to date.

    Args:
        data: The checkout. Nothing in it is changed, built, installed or copied.
        folder: Where the environment is made: no folder yet, an empty one, or an environment.
        tell: Told what is being done, a line each.

    Raises:
        UsageError: the folder can't be used, or a step failed; what it printed is quoted.
    """
    folder = folder.expanduser().resolve()
    _check(folder, data)
    if not (folder / "pyvenv.cfg").is_file():
        tell(f"Making an environment in {folder}")
        try:
            venv.create(folder, with_pip=True, symlinks=sys.platform != "win32")
        except (OSError, subprocess.CalledProcessError) as error:
            raise UsageError(f"No environment can be made in {folder}: {error}.") from error
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    tell("Installing the servers' packages from the package index (pinned in requirements.txt of this suite)")
    _run([python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--requirement", REQUIREMENTS])
    packages = _purelib(python) / IMPORT_PATH
    packages.write_text("".join(f"{package}\n" for package in data.packages), encoding="utf-8")
    tell(f"Put on its import path, from the checkout as it is: {', '.join(p.name for p in data.packages) or 'nothing'}")
    return Environment(str(data.root), str(python), datetime.now(UTC).isoformat(timespec="seconds"))


def remember(data: DataFolder, environment: Environment) -> None:
    """Let ``find_environment`` find a checkout's environment, in place of the one that it found before."""
    record = _record(data)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(asdict(environment), indent=1), encoding="utf-8")


def _check(folder: Path, data: DataFolder) -> None:
    if folder == data.root or data.root in folder.parents:
        raise UsageError(
            f"The environment would lie inside the checkout {data.root}: choose another folder with --env."
        )
    if folder.exists() and not (folder / "pyvenv.cfg").is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} holds something else than an environment: choose another folder with --env.")


def _purelib(python: Path) -> Path:
    return Path(_run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())


def _run(command: Sequence[str | Path]) -> str:
    """Run a command and return what it printed.

    Raises:
        UsageError: it failed; the end of what it printed is quoted.
    """
    done = subprocess.run(  # noqa: S603  (our own commands, without a shell)
        [str(part) for part in command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        printed = (done.stderr.strip() or done.stdout.strip())[-_SHOWN:]
        raise UsageError(f"`{' '.join(str(part) for part in command)}` failed:\n{printed}")
    return done.stdout


def digest_of(folders: Iterable[Path]) -> str:
    """Return a digest of the Python files in some folders: other servers answer otherwise."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def kept_listing(key: str) -> list[dict[str, Any]] | None:
    """Return the listing of tools that was kept under a key, or None."""
    try:
        content = json.loads((cache_folder() / "tools" / f"{key}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, list) else None


def keep_listing(key: str, tools: list[dict[str, Any]]) -> None:
    """Keep a listing of tools; where nothing can be written, it is asked for again the next time."""
    path = cache_folder() / "tools" / f"{key}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{hashlib.sha256(str(id(tools)).encode()).hexdigest()[:8]}.part")
        partial.write_text(json.dumps(tools), encoding="utf-8")
        partial.replace(path)
    except OSError:
        return
