"""Suites and tasks."""

from __future__ import annotations

import fnmatch
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from tbadapters.core.errors import InvalidOption, ToolsDiffer, UnknownName
from tbadapters.core.frameworks import framework
from tbadapters.core.grading import Expectation, Grader, Outcome
from tbadapters.core.limits import is_whole
from tbadapters.core.messages import Message
from tbadapters.core.sandbox import Backend, Sandbox, running
from tbadapters.core.suite_report import SuiteReport
from tbadapters.core.tools import Tool


@dataclass(frozen=True, slots=True)
class UserFact:
    """Something that the user knows and tells when asked.

    Attributes:
        topic: What it is about, in words (``last four digits of the card``); shown to an LLM user.
        answer: What the user says, as a full sentence.
        asked_by: Words or short phrases, lower case; a question of the agent that contains one asks for this fact.
    """

    topic: str
    answer: str
    asked_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UserBrief:
    """What the simulated user wants and knows.

    Attributes:
        goal: What the user wants, in one sentence; shown to an LLM user.
        facts: What it tells when asked, never before.
        declines: Words or short phrases, lower case; a proposal of the agent that contains one is declined.
        context: What the user wants and knows as free text, where a suite has no more than that.
    """

    goal: str
    facts: tuple[UserFact, ...] = ()
    declines: tuple[str, ...] = ()
    context: str | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """One workflow: initial state, opening message, what the user knows, the expected end states.

    Attributes:
        id: Stable: ``suite/workflow/variation``.
        opening: The user's first message.
        user: What the user wants and knows.
        expectation: What makes a trial pass. The agent never sees it.
        world: The backend's initial records, in the form that the suite's backend takes.
        tags: For figures by tag (``refusal``, ``escalation``, ``needs_fact``, the workflow's name, ...).
        history: Messages from before the trial begins.
        instructions: The task's own policy instead of the suite's, where it has one.
        needs_asking: Topics of the facts that can't be found in the records, in the order in which a good agent asks.
        needs_judge: Whether its grader asks a judge; such a task is not planned where no judge is given.
        max_user_replies: Messages of the user after the opening at most, by the ``thinkingbox`` protocol; None for 10.
    """

    id: str
    opening: str
    user: UserBrief
    expectation: Expectation
    world: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    history: tuple[Message, ...] = ()
    instructions: str | None = None
    needs_asking: tuple[str, ...] = ()
    needs_judge: bool = False
    max_user_replies: int | None = None


@dataclass(frozen=True)
class Suite:
    """A named set of tasks with their backend, tools and policy.

    Attributes:
        name: The suite's name, such as ``neobank``.
        tasks: The tasks, ids unique.
        policy: What the agent is told: rules that decide every task.
        tool_list: The tools, framework-neutral; none where its parts have different ones (``tools_differ``).
        backend: Opens a clean sandbox for an attempt and gives the grader.
        conversation: The protocol by which user and agent take turns.
        seed: The suite seed the tasks were built from; 0 is the published set.
        version: Changes when tasks, tools or grading change.
        source: What ``load_suite`` found it by: a name, a path or ``module:attr``.
        reseed: Builds the same suite from another seed, where the suite can.
        rule: Derives what the policy decides in a task without looking at its golden actions, where the suite can.
        notes: What a reader of the figures must know, a sentence each; shown under the headline of every report.
        options: What ``load_suite`` was given beside ``source``, so that a resume loads the same.
        parts: The suites whose tasks these are, where several were joined; each task keeps its own part's backend,
            policy, tools and conversation.
        check: Checks that the suite is right, where it does not fit the checks that all suites have in common.
    """

    name: str
    tasks: tuple[Task, ...]
    policy: str
    tool_list: Sequence[Tool]
    backend: Backend
    conversation: Literal["default", "thinkingbox"] = "default"
    seed: int = 0
    version: str = "1"
    source: str | None = None
    reseed: Callable[[int], Suite] | None = None
    rule: Callable[[Task], Outcome] | None = None
    notes: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Suite, ...] = ()
    check: Callable[[Suite], Coroutine[Any, Any, SuiteReport]] | None = None

    def tools(self, framework_name: str | None = None) -> Sequence[Any]:
        """Return the suite's tools as a framework's own tools, bound to whichever trial runs where they are called.

        Args:
            framework_name: ``langgraph``, ``openai-agents`` or ``pydantic-ai``; None for ``Tool`` objects.

        Raises:
            UnknownName: no such framework.
            MissingFramework: its extra is not installed.
            ToolsDiffer: its tasks have different tools.
        """
        if self.tools_differ:
            raise ToolsDiffer(self.name, [part.name for part in self.parts])
        if framework_name is None:
            return self.tool_list
        return framework(framework_name).tools(self.tool_list)

    @property
    def every_tool(self) -> tuple[Tool, ...]:
        """The tools of all its parts, each name once."""
        return tuple({tool.name: tool for part in self.parts or (self,) for tool in part.tool_list}.values())

    @property
    def tools_differ(self) -> bool:
        """Whether its tasks have different tools, which only an agent that is built for each attempt can take."""
        return any(part.tool_list != self.parts[0].tool_list for part in self.parts[1:])

    def part_of(self, task: Task) -> Suite:
        """Return the part that a task belongs to: the suite itself, where it was not joined of several."""
        return next((part for part in self.parts if task.id in part.task_ids), self)

    @cached_property
    def task_ids(self) -> frozenset[str]:
        """The ids of its tasks."""
        return frozenset(task.id for task in self.tasks)

    def task(self, task_id: str) -> Task:
        """Return the task of this id; the suite's name may be left out.

        Raises:
            UnknownName: no such task.
        """
        for task in self.tasks:
            if task_id in (task.id, task.id.removeprefix(f"{self.name}/")):
                return task
        raise UnknownName("task", task_id, [t.id for t in self.tasks])

    def select(self, patterns: Iterable[str] | str | int | None) -> Suite:
        """Return the suite with only the tasks that are named.

        Args:
            patterns: Ids, shell patterns (``card_*``, with or without the suite's name), ``tag:NAME``, or a number n
                (the first n tasks); None for all.

        Raises:
            UnknownName: a pattern matches nothing.
            InvalidOption: no pattern at all, what is no pattern, or a number below 1.
        """
        if patterns is None:
            return self
        if isinstance(patterns, int):
            if not is_whole(patterns, 1):
                raise InvalidOption(f"tasks={patterns}: a whole number of at least 1 is needed.")
            return self._of(self.tasks[:patterns])
        chosen: set[str] = set()
        for pattern in _listed(patterns):
            found = {t.id for t in self.tasks if self._matches(t, pattern)}
            if not found:
                tags = {f"tag:{tag}" for t in self.tasks for tag in t.tags}
                raise UnknownName("task", pattern, {t.id for t in self.tasks} | tags)
            chosen |= found
        return self._of(tuple(t for t in self.tasks if t.id in chosen))

    def without_judge(self) -> Suite:
        """Return the suite as it can be run without a judge: named so, and without the tasks that need one.

        To grade those by their records alone would pass who said the wrong thing, and to fail them would blame nobody.

        Raises:
            InvalidOption: every task needs a judge.
        """
        kept = tuple(task for task in self.tasks if not task.needs_judge)
        if not kept:
            raise InvalidOption(
                f"All {len(self.tasks)} tasks need a judge: say judge=MODEL, such as 'openai:gpt-5-mini'."
            )
        if len(kept) == len(self.tasks):
            return self
        note = (
            f"Judge-free, {len(kept)} of {len(self.tasks)} tasks: the others ask a judge about what was said, and none was "
            "given (judge=MODEL)."
        )
        suite = self._of(kept)
        return replace(suite, notes=(*suite.notes, note))

    def _of(self, tasks: tuple[Task, ...]) -> Suite:
        """Return the suite with these of its tasks, and of its parts those that they belong to."""
        ids = {task.id for task in tasks}
        parts = tuple(part for part in self.parts if part.task_ids & ids)
        shared = _tools_of(parts) if parts else self.tool_list
        return replace(self, tasks=tasks, parts=parts, tool_list=shared)

    def _matches(self, task: Task, pattern: str) -> bool:
        if pattern.startswith("tag:"):
            return pattern[4:] in task.tags
        return names_task(pattern, task.id, self.name)


def names_task(pattern: str, task_id: str, suite: str) -> bool:
    """Say whether a shell pattern names a task: its id, with or without the suite's name, or the folder of its id."""
    short = task_id.removeprefix(f"{suite}/")
    return any(fnmatch.fnmatchcase(name, form) for name in (task_id, short) for form in (pattern, f"{pattern}/*"))


def _listed(patterns: Iterable[str] | str) -> list[str]:
    """Return the patterns of tasks as a list, at least one of them."""
    listed = [patterns] if isinstance(patterns, str) else list(patterns) if isinstance(patterns, Iterable) else []
    if not listed or not all(isinstance(pattern, str) and pattern for pattern in listed):
        raise InvalidOption(
            f"tasks={patterns!r}: ids, patterns or tag:NAME of at least one task are needed, a number, or None for all."
        )
    return listed


def joined(suites: Sequence[Suite], *, name: str | None = None) -> Suite:
    """Return one suite of the tasks of several; one alone is returned as it is.

    Args:
        suites: The suites, each with tasks of its own. A part of a joined suite may be a joined suite.
        name: What it is called; None for the names with a ``+`` between them.

    Raises:
        InvalidOption: no suite at all, or two that share a task.
    """
    parts = tuple(part for suite in suites for part in suite.parts or (suite,))
    if not parts:
        raise InvalidOption("suite=[]: at least one suite is needed.")
    if len(parts) == 1:
        return parts[0]
    tasks = tuple(replace(t, instructions=t.instructions or part.policy) for part in parts for t in part.tasks)
    if len({task.id for task in tasks}) < len(tasks):
        names = ", ".join(suite.name for suite in suites)
        raise InvalidOption(f"suite=[{names}]: no task can be part of a run twice; name each suite once.")
    protocols = {part.conversation for part in parts}
    return Suite(
        name=name or "+".join(suite.name for suite in suites),
        tasks=tasks,
        policy="",
        tool_list=_tools_of(parts),
        backend=_JoinedBackend(parts),
        conversation=parts[0].conversation if len(protocols) == 1 else "default",
        version=", ".join(dict.fromkeys(part.version for part in parts)),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        parts=parts,
        check=parts[0].check if len({part.check for part in parts}) == 1 else None,
    )


def _tools_of(parts: Sequence[Suite]) -> Sequence[Tool]:
    """Return the tools that all parts have, or none where they differ."""
    first = parts[0].tool_list
    return () if any(part.tool_list != first for part in parts[1:]) else first


class _JoinedBackend:
    """Opens each task's sandbox by the backend of its part."""

    def __init__(self, parts: Sequence[Suite]) -> None:
        self._backends = {task.id: part.backend for part in parts for task in part.tasks}

    def open(self, task: Task) -> AbstractAsyncContextManager[Sandbox]:
        """See ``Backend.open``."""
        return self._backends[task.id].open(task)

    def grader(self, task: Task) -> Grader:
        """See ``Backend.grader``."""
        return self._backends[task.id].grader(task)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep what the parts' backends keep for a run, each backend once."""
        async with AsyncExitStack() as stack:
            for backend in {id(backend): backend for backend in self._backends.values()}.values():
                await stack.enter_async_context(running(backend))
            yield
