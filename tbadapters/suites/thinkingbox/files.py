"""A folder in ThinkingBox's layout: what is read of it, and where.

    dataset/agent/think.yaml              what every agent is told, and its own tools
    dataset/scenario/NAME.yaml            a domain: initial records, tools, policy
    dataset/test_case/**/FILE.py          test functions, their tasks' YAML in their docstrings
    servers/servers.yaml                  how the tool servers are started
    releases/*/testlist_*.yaml            which test functions are the published benchmark

A user has a checkout of it; nothing of it comes with tbadapters, and nothing is executed here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tbadapters.core.errors import SuiteError, UnknownName, UsageError

VARIABLE = "THINKINGBOX_DATA"
PUBLISHED = Path("releases", "thinkingbox_bench_v1", "testlist_thinkingbox_bench_v1.yaml")
_LAYOUT = (
    "dataset/scenario",
    "dataset/test_case",
    "servers/servers.yaml",
)  # the harness's own repository has no servers
_MEND = f"give the folder of a checkout of github.com/microsoft/thinkingbox-data as data=PATH or in {VARIABLE}."

# PyYAML's own parser takes half a minute where libyaml takes half a second.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Model = TypeVar("Model", bound=BaseModel)


class ScenarioTool(BaseModel):
    """A tool that a scenario lets the agent see, and what it says of it beside the server.

    Attributes:
        name: The tool's name.
        override_description: Its description instead of the server's.
        override_arg_description: Descriptions of arguments instead of the server's.
        direct_response: A text that the reference says in the agent's place after a call; not supported.
        is_end_turn: Whether a call of it ends the conversation.
    """

    name: str
    override_description: str | None = None
    override_arg_description: dict[str, str] | None = None
    direct_response: str | None = None
    is_end_turn: bool = False


class Scenario(BaseModel):
    """A scenario file."""

    world_state: dict[str, dict[str, Any] | None]
    tools: list[ScenarioTool]
    bot_instructions: str | None = None
    tags: list[str] = []
    fixtures: dict[str, dict[str, Any]] = {}


class OwnTool(BaseModel):
    """A tool of the agent file, which no server serves."""

    name: str
    description: str
    input_schema: dict[str, Any]
    is_end_turn: bool = False


class AgentFile(BaseModel):
    """What every agent is told, and the tools that it has beside the scenario's."""

    system_instructions: str
    builtin_tools: list[OwnTool] = []


class ServerEntry(BaseModel):
    """How one tool server is started or reached."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["mcp-process", "mcp-remote"] = "mcp-process"
    command: list[str] = []
    env: dict[str, str] = {}
    endpoint: str | None = None


class _Servers(BaseModel):
    servers: dict[str, ServerEntry] = {}


class TestConfig(BaseModel):
    """What a test function's YAML, over its file's, says of the task."""

    __test__ = False  # it is no test, whatever pytest makes of its name
    model_config = ConfigDict(extra="forbid")

    scenario: str
    query: str
    user_context: str | None = None
    max_user_sim_turns: int | None = Field(default=None, ge=0)
    max_agent_sim_turns: int | None = Field(default=None, ge=0)
    bot_instructions: str | None = None
    history: str | None = None
    init: dict[str, dict[str, Any] | None] = {}
    format_query: bool = False
    tags: list[str] = []


class DataFolder:
    """A folder in ThinkingBox's layout; files are read once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._scenarios: dict[str, Scenario] = {}

    @classmethod
    def of(cls, data: str | PathLike[str] | None) -> DataFolder:
        """Return the folder that was given, or that the environment names.

        Raises:
            UsageError: there is none, or it has another layout.
        """
        given = data or os.environ.get(VARIABLE)
        if not given:
            raise UsageError(f"The thinkingbox suite brings no data of its own: {_MEND}")
        root = Path(given).expanduser().resolve()
        missing = [part for part in _LAYOUT if not (root / part).exists()]
        if missing:
            raise UsageError(f"{given} holds no {' and no '.join(missing)}: {_MEND}")
        return cls(root)

    def scenario(self, name: str) -> Scenario:
        """Return a scenario by name.

        Raises:
            SuiteError: there is none, or it can't be read.
        """
        if name not in self._scenarios:
            self._scenarios[name] = read_model(self.root / "dataset" / "scenario" / f"{name}.yaml", Scenario)
        return self._scenarios[name]

    def agent(self, name: str) -> AgentFile:
        """Return an agent file by name.

        Raises:
            UnknownName: there is none.
            SuiteError: it can't be read.
        """
        file = self.root / "dataset" / "agent" / f"{name}.yaml"
        if not file.is_file():
            raise UnknownName("agent file", name, [path.stem for path in file.parent.glob("*.yaml")])
        return read_model(file, AgentFile)

    @cached_property
    def servers(self) -> Mapping[str, ServerEntry]:
        """The tool servers by name."""
        return read_model(self.root / "servers" / "servers.yaml", _Servers).servers

    @cached_property
    def packages(self) -> tuple[Path, ...]:
        """The folders that must be on the servers' import path: each holds the package of some servers."""
        return tuple(sorted(folder for folder in (self.root / "servers").glob("*/") if any(folder.glob("*/*.py"))))

    def listed(self, tests: str | PathLike[str] | Sequence[str] | None) -> list[str]:
        """Return the uids (``file.py:function``, or ``file.py`` for all of a file) that make up the suite.

        Args:
            tests: A test list (``.yaml``), uids, or None for the published benchmark, all test files where there is
                no such list.

        Raises:
            SuiteError: the list can't be read, or there is no test file at all.
        """
        if tests is None:
            published = self.root / PUBLISHED
            return _uids(published) if published.is_file() else self._every_file()
        if isinstance(tests, str | PathLike):
            path = Path(tests)
            return _uids(path) if path.suffix in (".yaml", ".yml") else [str(tests)]
        return list(tests)

    def _every_file(self) -> list[str]:
        found = sorted(str(path) for path in (self.root / "dataset" / "test_case").rglob("*.py"))
        if not found:
            raise SuiteError(f"There is no test file in {self.root / 'dataset' / 'test_case'}.")
        return found

    def find(self, name: str) -> Path:
        """Return a test file by its name: in ``test_case``, or in a folder there whose name the file's begins with.

        The longest such folder counts (``a_b_c.py``: ``a_b``, then ``a``), one level deep, as in the reference.

        Raises:
            UnknownName: there is none.
        """
        if Path(name).is_absolute() and Path(name).is_file():
            return Path(name)
        folder = self.root / "dataset" / "test_case"
        parts = name.split("_")
        prefixes = ["_".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]
        for path in (folder / name, *(folder / prefix / name for prefix in prefixes)):
            if path.is_file():
                return path
        if not name.endswith(".py"):
            raise UsageError(
                f"The test {name!r} names no file: file.py:function, file.py or a test list (.yaml) is needed."
            )
        raise UnknownName("test file", name, {path.name for path in folder.rglob("*.py")})


def read_model(path: Path, model: type[Model]) -> Model:
    """Return a YAML file as ``model``.

    Raises:
        SuiteError: there is no such file, or it is not what it should be.
    """
    try:
        content = read_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SuiteError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SuiteError(f"{path} can't be read: {' '.join(str(error).split())}.") from error
    return checked(content, model, str(path))


def checked(content: object, model: type[Model], where: str) -> Model:
    """Return parsed YAML as ``model``.

    Raises:
        SuiteError: it does not fit; ``where`` and the first thing that is wrong are named.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise SuiteError(f"{where} is not as it should be ({place}: {first['msg']}).") from error


def read_yaml(text: str) -> Any:
    """Return a YAML text as data."""
    return yaml.load(text, Loader=_Loader)  # noqa: S506  (a safe loader, in C where there is one)


def _uids(path: Path) -> list[str]:
    if not path.is_file():
        raise SuiteError(f"There is no test list {path}.")
    content = read_yaml(path.read_text(encoding="utf-8"))
    if not isinstance(content, list) or not all(isinstance(uid, str) for uid in content):
        raise SuiteError(f"{path} is no test list: a YAML list of file.py:function is needed.")
    return content
