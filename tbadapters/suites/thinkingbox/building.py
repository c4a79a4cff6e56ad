"""Tasks, built of test functions and their scenarios."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tbadapters.core.errors import SuiteError, UnknownName
from tbadapters.core.grading import EndState, Expectation, GoldenAction
from tbadapters.core.suite import Task, UserBrief
from tbadapters.suites.thinkingbox.files import AgentFile, DataFolder, Scenario
from tbadapters.suites.thinkingbox.grader import GOLDEN
from tbadapters.suites.thinkingbox.history import history_of
from tbadapters.suites.thinkingbox.test_files import TestFunction, read_test_file
from tbadapters.suites.thinkingbox.world import World

NAME = "thinkingbox"
DOMAINS: Mapping[str, str] = {
    "sandbox_external_retail": "retail",
    "external_booking_v1": "travel",
    "sandbox_auto_insurance": "auto_insurance",
    "sandbox_neobank_support_v1": "neobank",
    "sandbox_consulting": "consulting",
}
"""Scenario -> how the benchmark calls its domain; any other scenario is a domain by its own name."""


def domain_of(scenario: str) -> str:
    """Return the name of a scenario's domain."""
    return DOMAINS.get(scenario, scenario)


@dataclass(frozen=True, slots=True)
class Built:
    """A task, and the test function that it was built of."""

    task: Task
    function: TestFunction

    @property
    def domain(self) -> str:
        """The domain that it belongs to."""
        return domain_of(self.function.config.scenario)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A test that can't be run here, and what it needs that only the reference harness has."""

    function: TestFunction
    need: str

    @property
    def domain(self) -> str:
        """The domain that it belongs to."""
        return domain_of(self.function.config.scenario)


class TestFunctions:
    """The test functions of a data folder; each file is read once."""

    __test__ = False  # they are not tests, whatever pytest makes of the name

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._files: dict[str, dict[str, TestFunction]] = {}

    def of(self, uids: Iterable[str]) -> list[TestFunction]:
        """Return test functions by uid, ``file.py:function``, or ``file.py`` for all of a file.

        Raises:
            UnknownName: there is no such file, or no such function in it.
            SuiteError: a file can't be read.
        """
        return [function for uid in uids for function in self._named(uid)]

    def _named(self, uid: str) -> list[TestFunction]:
        file, _, name = uid.partition(":")
        if file not in self._files:
            self._files[file] = read_test_file(self._data.find(file))
        functions = self._files[file]
        if not name:
            return list(functions.values())
        if name not in functions:
            raise UnknownName("test function", uid, [f"{file}:{known}" for known in functions])
        return [functions[name]]


def build_tasks(
    data: DataFolder, functions: Sequence[TestFunction], agent: AgentFile
) -> tuple[list[Built], list[LeftOut]]:
    """Return the tasks of test functions, and the functions of which none can be made.

    Raises:
        SuiteError: a scenario or a history is missing or wrong.
    """
    built: list[Built] = []
    left_out: list[LeftOut] = []
    ids = _ids(functions)
    for function in functions:
        scenario = data.scenario(function.config.scenario)
        if "skip" in _tags(scenario, function):
            continue
        need = _unsupported(function, scenario)
        if need is None:
            built.append(Built(_task(ids[function.uid], function, scenario, agent), function))
        else:
            left_out.append(LeftOut(function, need))
    return built, left_out


def policy_of(scenario: Scenario, agent: AgentFile, test_instructions: str | None = None) -> str:
    """Return what an agent is told: the agent file's text, then the scenario's and the test's a line apart.

    The reference gives them as two system messages; here they are one text, an empty line between.
    """
    own = [text for text in (scenario.bot_instructions, test_instructions) if text is not None]
    return "\n\n".join(text for text in (agent.system_instructions, "\n".join(own)) if text)


def _ids(functions: Iterable[TestFunction]) -> dict[str, str]:
    """Return each function's task id: its domain and its name, with its file's between where two have the same."""
    names = [(f.uid, domain_of(f.config.scenario), f.file.stem, f.name) for f in functions]
    met = Counter((domain, name) for _, domain, _, name in names)
    twice = [uid for uid, count in Counter(uid for uid, *_ in names).items() if count > 1]
    if twice:
        raise SuiteError(f"The test {twice[0]} is listed twice.")
    return {
        uid: f"{NAME}/{domain}/{name}" if met[domain, name] == 1 else f"{NAME}/{domain}/{stem}/{name}"
        for uid, domain, stem, name in names
    }


def _unsupported(function: TestFunction, scenario: Scenario) -> str | None:
    """Return what a test needs and only the reference harness has, or None."""
    config = function.config
    needs = {
        "format_query": config.format_query,
        "max_agent_sim_turns": config.max_agent_sim_turns is not None,
        "a direct_response of a tool": any(tool.direct_response is not None for tool in scenario.tools),
        "tool calls in its history": history_of(function) is None,
        f"the fixture {', '.join(function.fixtures)}": bool(function.fixtures),
    }
    return next((need for need, given in needs.items() if given), None)


def _task(task_id: str, function: TestFunction, scenario: Scenario, agent: AgentFile) -> Task:
    config = function.config
    world = World(scenario.world_state, config.init)
    replies = config.max_user_sim_turns if config.user_context else 0  # the reference ends it after the first answer
    return Task(
        id=task_id,
        opening=config.query,
        user=UserBrief(config.query.strip(), context=config.user_context),
        expectation=Expectation((EndState(GOLDEN, golden_actions(world)),)),
        world=world,
        tags=(domain_of(config.scenario), *_tags(scenario, function)),
        history=history_of(function) or (),
        instructions=policy_of(scenario, agent, config.bot_instructions) if config.bot_instructions else None,
        needs_judge=function.needs_judge(world),
        max_user_replies=replies,
    )


def _tags(scenario: Scenario, function: TestFunction) -> tuple[str, ...]:
    """Return the labels of scenario and test; the domain is a tag by our own name for it."""
    labels = dict.fromkeys((*scenario.tags, *function.config.tags))
    return tuple(label for label in labels if not label.startswith("domain:"))


def golden_actions(world: Mapping[str, Any]) -> tuple[GoldenAction, ...]:
    """Return the golden calls that a world's servers are told of; none where a test looks at the records by itself."""
    cases = [config.get("golden_test_case") for config in world.values()]
    listed = [case.get("tool_interactions") for case in cases if isinstance(case, Mapping)]
    calls = [call for calls in listed if isinstance(calls, list) for call in calls if isinstance(call, Mapping)]
    return tuple(GoldenAction(str(call["tool"]), call.get("parameters") or {}) for call in calls if call.get("tool"))
