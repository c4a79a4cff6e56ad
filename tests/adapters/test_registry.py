"""What may be passed as an agent, and what is refused with which sentence."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from fake_attempt import TOOLS, FakeAttempt
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

from tbadapters.adapters.factory import factory
from tbadapters.adapters.function import FunctionAgent, TrialContext
from tbadapters.adapters.langgraph import FRAMEWORK, LangGraphAgent
from tbadapters.adapters.registry import load_agent, resolve_agent
from tbadapters.core.agent import AgentAdapter, Said
from tbadapters.core.errors import MissingFramework, UnimportableAgent, UnknownAgentType
from tbadapters.core.messages import Message

MODEL = ChatOpenAI(model="scripted", base_url="http://127.0.0.1:9/v1", api_key="any")
FILE = """
from helper_beside import greeting

async def teller(message, ctx):
    return greeting + message

class Desk:
    agent = staticmethod(teller)

def make(tools):
    return teller
"""


async def teller(message: str, ctx: TrialContext) -> str:
    return message


def make_graph(tools: list[Any]) -> Any:
    return create_agent(MODEL, tools)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user's, the current one, with an agent and a module beside it."""
    (tmp_path / "agents_of_mine.py").write_text(FILE)
    (tmp_path / "helper_beside.py").write_text("greeting = 'Hello '")
    (tmp_path / "broken_agent.py").write_text("1 / 0")
    (tmp_path / "needy_agent.py").write_text("import no_such_package_anywhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("agents_of_mine", "helper_beside", "prompts", "later", "lib", "lib.words", "only_old", "only_new"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def test_each_kind_of_agent_gets_its_adapter() -> None:
    """Adapters pass as they are, framework objects by type, other callables as custom agents."""
    own = LangGraphAgent(create_agent(MODEL), tools="suite")
    assert resolve_agent(own) is own
    made = factory(make_graph, tools="langgraph")
    assert resolve_agent(made) is made
    assert isinstance(resolve_agent(create_agent(MODEL)), LangGraphAgent)
    assert isinstance(resolve_agent(teller), FunctionAgent)
    for adapter in (own, made, resolve_agent(teller)):
        assert isinstance(adapter, AgentAdapter)


@pytest.mark.parametrize(
    "spec",
    ["agents_of_mine:teller", "agents_of_mine.py:teller", "agents_of_mine:Desk.agent", "./agents_of_mine.py:teller"],
)
async def test_an_agent_is_imported_by_module_or_file(attempt: FakeAttempt, folder: Path, spec: str) -> None:
    """A text names an agent in a module or a file; what lies beside it can be imported by it."""
    agent = await anyio.to_thread.run_sync(resolve_agent, spec)
    assert agent.name == "teller"
    async with attempt.session(agent) as session:
        assert await session.send(Message("Ada")) == Said("Hello Ada")


def test_a_file_may_be_named_like_a_framework(folder: Path) -> None:
    """A file agents.py that imports the SDK's module ``agents`` gets the SDK's."""
    (folder / "agents.py").write_text("from agents import Agent\nsupport = Agent(name='support')")
    assert resolve_agent("agents.py:support").name == "support"


VERSION = """
import prompts
from {package}.words import WORD

def agent(message, ctx):
    return prompts.PROMPT + WORD

def late(message, ctx):
    import later
    return later.PROMPT
"""


@pytest.fixture
def versions(folder: Path) -> tuple[Path, Path]:
    """Two versions of an agent, each in a folder of its own, with files of the same names."""
    made = []
    for name in ("old", "new"):
        home = folder / name
        (home / "lib").mkdir(parents=True)
        (home / "agent.py").write_text(VERSION.format(package="lib"))
        for module in ("prompts", "later"):
            (home / f"{module}.py").write_text(f"PROMPT = '{name} {module}'")
        (home / "lib" / "__init__.py").write_text("")
        (home / "lib" / "words.py").write_text(f"WORD = ' {name} word'")
        (home / f"only_{name}.py").write_text(f"NAME = '{name}'")
        made.append(home / "agent.py")
    return made[0], made[1]


def test_two_versions_of_an_agent_have_each_their_own_modules(versions: tuple[Path, Path]) -> None:
    """Files of the same name, with modules of the same names beside them, are loaded side by side, in any order."""
    old, new = (load_agent(f"{path}:agent") for path in versions)
    again = load_agent(f"{versions[0]}:agent")
    assert [agent("", None) for agent in (old, new, again)] == [
        "old prompts old word",
        "new prompts new word",
        "old prompts old word",
    ]
    assert old.__module__ != new.__module__
    assert sys.modules[old.__module__].agent is again


def test_a_module_that_two_agents_have_is_never_the_others(versions: tuple[Path, Path]) -> None:
    """Imported late, a module that both folders have is refused with both named; one that is one's own is found."""
    late = [load_agent(f"{path}:late") for path in versions]
    for agent in late:
        with pytest.raises(UnimportableAgent, match=r"old and .*new each have a module of this name"):
            agent("", None)
    assert importlib.import_module("only_old").NAME == "old"
    assert importlib.import_module("only_new").NAME == "new"
    assert not hasattr(sys.modules["prompts"], "__path__")


def test_one_agents_modules_stay_as_python_has_them(versions: tuple[Path, Path]) -> None:
    """Where no other agent has a module of that name, it is the one in ``sys.modules``, imported once."""
    agent = load_agent(f"{versions[0]}:agent")
    before = sys.modules["prompts"]
    assert load_agent(f"{versions[0]}:late")("", None) == "old later"
    assert sys.modules["prompts"] is before
    assert agent("", None) == "old prompts old word"


def test_a_file_that_fails_leaves_the_others_modules(versions: tuple[Path, Path]) -> None:
    """A file that can't be imported takes nothing away from the agent imported before."""
    (versions[1].parent / "prompts.py").unlink()
    agent = load_agent(f"{versions[0]}:agent")
    with pytest.raises(UnimportableAgent, match="'prompts'"):
        load_agent(f"{versions[1]}:agent")
    assert importlib.import_module("prompts").PROMPT == "old prompts"
    assert agent("", None) == "old prompts old word"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("agents_of_mine", "write it as 'module:attr' or 'path/to/file.py:attr'"),
        ("agents_of_mine:", "write it as"),
        (":teller", "write it as"),
        ("no_such_module:agent", "there is no module 'no_such_module'"),
        ("agents_of_mine.sub:agent", "agents_of_mine"),
        ("nowhere.py:agent", "there is no file 'nowhere.py'"),
        ("agents_of_mine:tellr", "'agents_of_mine' has no 'tellr'. Did you mean 'teller'?"),
        ("agents_of_mine.py:Desk.agnt", "has no 'agnt'. Did you mean 'agent'?"),
        ("broken_agent:agent", "ZeroDivisionError: division by zero"),
        ("broken_agent.py:agent", "ZeroDivisionError: division by zero"),
        ("needy_agent.py:agent", "it imports 'no_such_package_anywhere', which is not installed"),
    ],
)
def test_what_can_not_be_imported_is_said_with_its_reason(folder: Path, spec: str, sentence: str) -> None:
    """Each way in which an import fails has its own sentence, the text itself in it."""
    with pytest.raises(UnimportableAgent) as caught:
        resolve_agent(spec)
    assert sentence in str(caught.value)
    assert repr(spec) in str(caught.value)


class TellerClass:
    async def __call__(self, message: str, ctx: TrialContext) -> str:
        return message


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (make_graph, r'make_graph\(tools\) builds an agent, it is none: pass factory\(make_graph, tools="langgraph"\)'),
        (TellerClass, r"TellerClass is a class: pass an object of it, such as TellerClass\(\.\.\.\)"),
        (LangGraphAgent, "LangGraphAgent is a class"),
        (types, "types is a module: pass the agent in it"),
        ({"a": teller}, r"compare\(\{\.\.\.\}\)"),
        (None, r"None can't be run as an agent\. Accepted: .*factory\(make\).*'module:attr'"),
        (3, r"An object of type builtins\.int can't be run .*a compiled LangGraph graph"),
        (MODEL, r"langchain_openai.*ChatOpenAI can't be run as an agent\. Accepted: "),
    ],
)
def test_what_is_no_agent_is_refused_with_the_line_that_works(agent: object, sentence: str) -> None:
    """Near misses are named for what they are, anything else with all that is accepted."""
    with pytest.raises(UnknownAgentType, match=sentence):
        resolve_agent(agent)


def test_a_call_without_await_is_named() -> None:
    """A coroutine object is refused, and closed so that no warning follows."""
    with pytest.raises(UnknownAgentType, match=r"teller\(\.\.\.\) was called without `await`"):
        resolve_agent(teller("a", None))  # type: ignore[arg-type]


def test_text_that_names_a_builder_is_refused_like_the_builder(folder: Path) -> None:
    """``module:attr`` may name anything that may be passed, and nothing else."""
    with pytest.raises(UnknownAgentType, match=r"pass factory\(make"):
        resolve_agent("agents_of_mine:make")


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("langgraph", "langchain", "langchain_core", "agents", "pydantic_ai"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
from tbadapters.adapters.registry import resolve_agent
from tbadapters.core.errors import MissingFramework
from tbadapters.core.frameworks import framework

def agent(message, ctx): return message
print(resolve_agent(agent).framework)
for attempt in (lambda: framework("langgraph").tools([]), lambda: resolve_agent("graph_file.py:graph")):
    try:
        attempt()
    except MissingFramework as error:
        print(error)
"""


def test_without_a_framework_the_rest_works_and_its_use_names_the_extra(tmp_path: Path) -> None:
    """Custom agents run with no framework installed; what needs one says which extra to install."""
    (tmp_path / "graph_file.py").write_text("from langgraph.graph import StateGraph\ngraph = None\n")
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], cwd=tmp_path, capture_output=True, text=True, check=True, env={**os.environ}
    )
    mend = "langgraph is not installed: pip install 'tbadapters[langgraph]'"
    langchain = "langchain-core is not installed: pip install 'tbadapters[langgraph]'"
    assert done.stdout.splitlines()[0] == "function"
    assert set(done.stdout.splitlines()[1:]) <= {mend, langchain}
    assert len(done.stdout.splitlines()) == 3


def test_missing_framework_is_a_usage_error_of_its_own() -> None:
    """``MissingFramework`` names the framework and the extra."""
    assert str(MissingFramework("langgraph", "langgraph")).endswith("pip install 'tbadapters[langgraph]'")


def test_the_framework_is_known_by_type_alone() -> None:
    """A class of the same name elsewhere is no graph; a subclass of a graph is one."""
    graph = create_agent(MODEL)
    sub = type("MyGraph", (type(graph),), {})
    assert FRAMEWORK.matches(object.__new__(sub))
    assert not FRAMEWORK.matches(type("Pregel", (), {})())
    assert TOOLS
