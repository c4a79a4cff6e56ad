"""The grader of the benchmark's tasks: their own test function is the verdict, our comparison explains it.

The two are checked against each other. Where the servers' hash says that two states are equal and our comparison says
that they are not, or the other way round, nobody is graded: it is the grader's fault, recorded as ``disagreement``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from tbadapters.core.errors import GraderFault, SandboxFault
from tbadapters.core.grading import Evidence, Verdict
from tbadapters.core.state_grader import sentence_of
from tbadapters.core.suite import Task
from tbadapters.core.tools import ToolCall
from tbadapters.suites.thinkingbox.causes import Causes, Explained
from tbadapters.suites.thinkingbox.function_context import context
from tbadapters.suites.thinkingbox.function_runner import SECONDS, FunctionRunner, Outcome
from tbadapters.suites.thinkingbox.grading_function import GradingFunction
from tbadapters.suites.thinkingbox.replaying import Call, ServerShapes, Sessions, says_error
from tbadapters.suites.thinkingbox.states import HASHES, Comparison, Shapes, compare_effects

GOLDEN = "golden"
"""The name of the one end state that a task of the benchmark allows."""
_MESSAGE = 2000  # characters of a failed assertion that are kept


class ThinkingBoxGraders:
    """The graders of a suite's tasks, and what they share: the tests' process, and what counts on each server.

    Args:
        function_of: Returns a task's test function.
        seconds: Deadline of one test function.
    """

    def __init__(self, function_of: Callable[[Task], GradingFunction], *, seconds: float = SECONDS) -> None:
        self.runner = FunctionRunner(seconds=seconds)
        self.shapes = ServerShapes()
        self._function_of = function_of
        self._made: dict[str, ThinkingBoxGrader] = {}

    def __call__(self, task: Task, sessions: Sessions) -> ThinkingBoxGrader:
        """Return the grader of a task, the same one each time."""
        made = self._made.get(task.id)
        if made is None:
            made = self._made[task.id] = ThinkingBoxGrader(task, self._function_of(task), sessions, self)
        return made

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """End the tests' process when the block is left."""
        async with self.runner.running():
            yield


@dataclass(frozen=True, slots=True)
class Look:
    """What the test function says of a trial, and what the comparison says.

    Attributes:
        outcome: What came of the test function.
        comparison: How the states differ.
        certain: Whether the servers told what counts; else the comparison may count too much.
    """

    outcome: Outcome
    comparison: Comparison
    certain: bool

    @property
    def disagreement(self) -> str | None:
        """How the two contradict each other, or None.

        A test may fail on equal states, by what was said; one that went by the hash can't pass on unequal ones.
        """
        found = self.comparison.found
        ours = f"the comparison by key finds {len(found)} differences" if found else "the comparison by key finds none"
        ours += f", such as this: {sentence_of(found[0].effect)}" if found else "."
        if not self.certain:
            return None
        if not self.comparison.agrees:
            return f"by the servers' hash they are {'equal' if self.comparison.hash_equal else 'unequal'}, {ours}"
        if HASHES[1] in self.outcome.read and self.outcome.passed and found:
            return f"the test passes, {ours}"
        return None


class ThinkingBoxGrader:
    """Grades one task.

    Args:
        task: The task.
        function: Its test function.
        sessions: Opens fresh sessions, in which calls are replayed.
        shared: What the graders of a suite share.

    Attributes:
        sessions: As given.
    """

    def __init__(self, task: Task, function: GradingFunction, sessions: Sessions, shared: ThinkingBoxGraders) -> None:
        self._task = task
        self._function = function
        self.sessions = sessions
        self._shared = shared
        self._causes = Causes(task, sessions, self.golden_calls, shared.shapes)
        self._init_results: Mapping[str, Any] | None = None

    @property
    def golden_calls(self) -> tuple[Call, ...]:
        """The task's golden calls."""
        return tuple(Call(one.tool, one.arguments) for end in self._task.expectation.end_states for one in end.actions)

    async def shapes(self) -> dict[str, Shapes] | None:
        """Return what counts on the task's servers; None where one of them can't be asked."""
        return await self._shared.shapes.of(self.sessions, self._task)

    async def look(self, evidence: Evidence) -> Look:
        """Execute the test on what an attempt left behind, and compare the states beside it.

        Raises:
            GraderFault: the test can't be executed, or raises something else than an AssertionError.
            JudgeFault: the judge that it asked could not decide.
            SandboxFault: a server could not tell its effects.
        """
        effects = self._effects(evidence)
        shapes = await self.shapes()
        comparison = compare_effects(effects, shapes or {})
        code = await to_thread.run_sync(lambda: self._function.code)

        async def ask(text: str, question: str) -> tuple[bool, str]:
            judgement = await evidence.judge.ask(text, question)
            return judgement.answer, " ".join(judgement.reasons)

        init = await self._init() if "init_result" in code else {}
        x = context(self._task, evidence, effects, init)
        outcome = await self._shared.runner.run(self._function, code, x, ask)
        return Look(outcome, comparison, certain=shapes is not None)

    async def grade(self, evidence: Evidence) -> Verdict:
        """Return the verdict; see ``core.grading.Grader``.

        A test that ends without a failed assertion passes whatever reward it returns, as in the reference.
        """
        look = await self.look(evidence)
        if look.disagreement is not None:
            raise GraderFault(
                f"{self._task.id}: two ways to look at its records disagree: {look.disagreement} Nobody is graded by "
                "this.",
                code="disagreement",
            )
        if look.outcome.passed:
            return Verdict(True, look.outcome.reward, end_state=GOLDEN)
        return await self._failed(evidence, look.comparison, look.outcome)

    def _effects(self, evidence: Evidence) -> Mapping[str, Any]:
        """Return what the servers answered for their effects.

        Raises:
            SandboxFault: one of them answered with an error.
        """
        effects = evidence.final.raw or {}
        for server, told in effects.items():
            if isinstance(told, Mapping) and told.get("status") == "error":
                raise SandboxFault(f"{server} can't tell its effects: {told.get('message')}", code="effects")
        return effects

    async def _init(self) -> Mapping[str, Any]:
        """Return what the servers' init answers, but for its status."""
        if self._init_results is None:
            async with self.sessions.open(self._task) as session:
                told = session.init_results
            self._init_results = {
                server: {k: v for k, v in answer.items() if k != "status"} if isinstance(answer, Mapping) else answer
                for server, answer in told.items()
            }
        return self._init_results

    # -- why it failed ------------------------------------------------------------------------------------------

    async def _failed(self, evidence: Evidence, comparison: Comparison, outcome: Outcome) -> Verdict:
        why = await self._causes.of(evidence.tool_calls, comparison)
        reasons = (self._reason(outcome, bool(why.effects)), *(sentence_of(effect) for effect in why.effects))
        errors = frozenset(call.index for call in evidence.tool_calls if says_error(call.result.text))
        return Verdict(False, 0.0, why.effects, reasons, GOLDEN, why.changes, errors)

    async def explained(self, calls: Sequence[ToolCall]) -> Explained | None:
        """Return why a trial failed of which only the calls are known: what they leave in a fresh session, compared.

        None where they can't be replayed.
        """
        return await self._causes.of_calls(calls)

    def _reason(self, outcome: Outcome, explained: bool) -> str:
        """Return what the test said; only its first line where the effects say the rest."""
        message = outcome.message.strip()
        message = message.partition("\n")[0] if explained else message
        place = f"{self._function.file.name}, line {outcome.line}" if outcome.line else self._function.file.name
        return f"The test failed ({place}): {message[:_MESSAGE] or outcome.source}"
