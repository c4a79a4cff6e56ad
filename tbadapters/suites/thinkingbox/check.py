"""The check of the benchmark: its golden calls pass by the tasks' own test functions, and nothing less does.

Each task is graded four times, with a judge that says yes to everything:

    golden calls                pass
    no calls                    fail, but where the golden calls change nothing
    only writing calls          pass: what reads is of no consequence
    last writing call dropped   fail

and each time our own comparison of the states must say the same as the test function.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, cast

import anyio

from tbadapters.core.errors import TbAdaptersError, describe
from tbadapters.core.grading import Evidence
from tbadapters.core.judge import Judgement
from tbadapters.core.sandbox import running
from tbadapters.core.suite import Suite, Task
from tbadapters.core.suite_report import CheckRow
from tbadapters.core.tools import ToolCall, ToolResult
from tbadapters.suites.thinkingbox.grader import Look, ThinkingBoxGrader
from tbadapters.suites.thinkingbox.replaying import Call, Step, replayed
from tbadapters.suites.thinkingbox.states import Shapes

GOLDEN, NONE, WRITING, DROPPED = "golden calls", "no calls", "only writing calls", "last writing call dropped"
AGREEMENT = "agreement"
_SHOWN = 3  # tasks that a note names


class _Yes:
    """A judge that says yes: what is checked are the records."""

    async def ask(self, text: str, question: str) -> Judgement:
        """Say yes."""
        del text
        return Judgement(question, answer=True, votes=(True,), reasons=("Everything is answered yes in a check.",))


@dataclass(frozen=True, slots=True)
class Graded:
    """One grading.

    Attributes:
        task: The task's id.
        variant: Which calls were made.
        passes: Whether it should pass.
        look: What test function and comparison say; None where there is a fault.
        fault: What kept it from being graded.
    """

    task: str
    variant: str
    passes: bool
    look: Look | None = None
    fault: str = ""

    @property
    def passed(self) -> bool:
        """Whether it passed by the test function."""
        return self.look is not None and self.look.outcome.passed

    @property
    def right(self) -> bool:
        """Whether it passed or failed as it should."""
        return self.look is not None and self.passed == self.passes

    @property
    def agrees(self) -> bool:
        """Whether the comparison says the same as the test function."""
        if self.look is None or not self.look.comparison.compared or self.look.disagreement:
            return False
        return self.passed == (not self.look.comparison.found)

    def why(self) -> str:
        """Return what is wrong with it, in a few words."""
        if self.look is None:
            return f"{self.task}: {self.fault}"
        if not self.right:
            said = self.look.outcome.message.partition("\n")[0]
            return f"{self.task} {'passes' if self.passed else f'fails ({said})'}"
        return f"{self.task}: {self.look.disagreement or 'the comparison finds what the test does not'}"


@dataclass(slots=True)
class BenchmarkCheck:
    """What the check found.

    Attributes:
        suite: The suite's name.
        graded: Every grading.
        seconds: How long it took.
    """

    suite: str
    graded: list[Graded] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        return bool(self.graded) and all(row.ok for row in self.rows())

    def rows(self) -> list[CheckRow]:
        """Return one row a check: how many gradings passed of how many, but for the last, which counts agreement."""
        rows = [self._row(variant) for variant in (GOLDEN, NONE, WRITING, DROPPED)]
        unlike = [one for one in self.graded if not one.agrees]
        agreeing = len(self.graded) - len(unlike)
        note = "; ".join(one.why() for one in unlike[:_SHOWN])
        return [*rows, CheckRow(AGREEMENT, agreeing, len(self.graded), not unlike, note)]

    def _row(self, variant: str) -> CheckRow:
        of = [one for one in self.graded if one.variant == variant]
        wrong = [one for one in of if not one.right]
        notes = [one.why() for one in wrong[:_SHOWN]]
        if len(wrong) > _SHOWN:
            notes.append(f"and {len(wrong) - _SHOWN} more")
        passed = [one.task for one in of if one.passed]
        if variant == NONE and passed and not wrong:
            notes.append(f"{', '.join(passed[:_SHOWN])}: the golden calls change nothing")
        return CheckRow(variant, len(passed), len(of), not wrong, "; ".join(notes))

    @property
    def summary(self) -> str:
        """The findings in one line."""
        counts = ", ".join(f"{row.name} {row.held:,}/{row.of:,}{self._named(row)}" for row in self.rows())
        failed = [row.name for row in self.rows() if not row.ok]
        verdict = f"NOT OK ({', '.join(failed)})" if failed else "all hold"
        return f"{self.suite}: {counts}; {verdict} ({self.seconds:.1f} s)"

    def _named(self, row: CheckRow) -> str:
        """Return the tasks that pass where nearly all should fail, in brackets."""
        if row.name not in (NONE, DROPPED) or not 0 < row.held <= _SHOWN:
            return ""
        passed = [one.task.rpartition("/")[2] for one in self.graded if one.variant == row.name and one.passed]
        return f" ({', '.join(passed)})"


async def check_thinkingbox(
    suite: Suite, *, concurrency: int | None = None, golden_only: bool = False
) -> BenchmarkCheck:
    """Return what the check finds on a suite's tasks; the suite's backend must be that of this benchmark.

    Args:
        suite: The suite, or some of its tasks.
        concurrency: Tasks under way at once; None for two a processor.
        golden_only: Whether only the golden calls are graded; the other rows are empty then.
    """
    check = BenchmarkCheck(suite.name)
    began = time.perf_counter()
    limiter = anyio.CapacityLimiter(concurrency or 2 * (os.cpu_count() or 1))
    found: dict[str, list[Graded]] = {}

    async def one(task: Task) -> None:
        async with limiter:
            found[task.id] = await _graded(suite, task, golden_only=golden_only)

    async with running(suite.backend), anyio.create_task_group() as group:
        for task in _in_turn(suite.tasks):
            group.start_soon(one, task)
    check.graded += [graded for task in suite.tasks for graded in found[task.id]]
    check.seconds = time.perf_counter() - began
    return check


def _in_turn(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks of each domain in turn: their servers, which take seconds to import, then start side by side."""
    domains: defaultdict[tuple[str, ...], list[Task]] = defaultdict(list)
    for task in tasks:
        domains[tuple(task.world)].append(task)
    return [task for turn in zip_longest(*domains.values()) for task in turn if task is not None]


async def _graded(suite: Suite, task: Task, *, golden_only: bool) -> list[Graded]:
    """Grade a task four times; without a writing call among the golden ones, there is none to be dropped."""
    grader = cast("ThinkingBoxGrader", suite.backend.grader(task))
    checker = _Checker(task, grader)
    if golden_only:
        return [await checker.after(GOLDEN, grader.golden_calls, passes=True, once=True)]
    try:
        golden, steps = await checker.golden()
    except TbAdaptersError as error:
        return [Graded(task.id, variant, passes=False, fault=describe(error)) for variant in (GOLDEN, NONE, WRITING)]
    calls = grader.golden_calls
    shapes = await grader.shapes()
    writing = [call for call, step in zip(calls, steps, strict=True) if _writes(step, shapes)]
    graded = [
        golden,
        await checker.after(NONE, [], passes=not writing),
        await checker.after(WRITING, writing, passes=True),
    ]
    if writing:
        graded.append(await checker.after(DROPPED, writing[:-1], passes=False))
    return graded


def _writes(step: Step, shapes: dict[str, Shapes] | None) -> bool:
    return bool(step.rows) if shapes is None else step.counts(shapes)


@dataclass(frozen=True, slots=True)
class _Checker:
    """Makes calls of one task in fresh sessions, and has them graded."""

    task: Task
    grader: ThinkingBoxGrader

    async def golden(self) -> tuple[Graded, list[Step]]:
        """Grade the golden calls, and see what each of them changes."""
        async with self.grader.sessions.open(self.task) as session:
            steps = await replayed(session, self.grader.golden_calls, await self.grader.shapes())
            results = [step.result for step in steps]
            graded = await self._look(GOLDEN, session, self.grader.golden_calls, results, passes=True)
        return graded, steps

    async def after(self, variant: str, calls: Sequence[Call], *, passes: bool, once: bool = False) -> Graded:
        """Grade what these calls leave; ``once`` where the task is graded no other time."""
        try:
            async with self.grader.sessions.open(self.task, once=once) as session:
                results = [await session.call(call.tool, call.arguments) for call in calls]
                return await self._look(variant, session, calls, results, passes=passes)
        except TbAdaptersError as error:
            return Graded(self.task.id, variant, passes, fault=describe(error))

    async def _look(
        self, variant: str, session: Any, calls: Sequence[Call], results: Sequence[ToolResult], *, passes: bool
    ) -> Graded:
        made = tuple(
            ToolCall(index, call.tool, call.arguments, result)
            for index, (call, result) in enumerate(zip(calls, results, strict=True))
        )
        final = await session.state()
        look = await self.grader.look(Evidence(final, final, made, (), _Yes()))
        return Graded(self.task.id, variant, passes, look)
