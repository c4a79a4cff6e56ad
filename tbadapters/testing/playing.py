"""Golden actions and variations of them, executed and graded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tbadapters.core.golden import Replay, replay, replay_golden
from tbadapters.core.grading import Evidence, Expectation, Grader, Verdict
from tbadapters.core.messages import Message
from tbadapters.core.state import Effect, EffectKind, State
from tbadapters.core.state_grader import laid_over
from tbadapters.core.suite import Suite, Task
from tbadapters.core.tools import ToolCall
from tbadapters.testing.arguments import known_text
from tbadapters.testing.steps import Step, dependents, playable, referred_to, steps_of

ALL = -1
"""For ``Player.play``: every step must be accepted."""


@dataclass(frozen=True, slots=True)
class Golden:
    """One end state of a task, executed.

    Attributes:
        task: The task.
        steps: Its golden actions.
        name: The end state's name.
        done: What executing them did.
        expected: The records that are right: what they left, declared rows laid over it.
        grader: Grades by this end state alone.
        task_grader: Grades by all that the task allows.
        known: All text that an agent can read in the task.
    """

    task: Task
    steps: tuple[Step, ...]
    name: str
    done: Replay
    expected: State
    grader: Grader
    task_grader: Grader
    known: str

    @property
    def writing(self) -> list[int]:
        """Places of the actions that changed state."""
        return [call.index for call in self.done.calls if call.wrote]

    @property
    def idle(self) -> set[int]:
        """Places of the actions that changed nothing and that no other refers to: nothing depends on them."""
        return {place for place, _ in enumerate(self.steps)} - set(self.writing) - referred_to(self.steps)


@dataclass(frozen=True, slots=True)
class Played:
    """A sequence of steps that the tools accepted, and how it differs from the golden end state.

    Attributes:
        steps: The steps.
        calls: The executed calls by the steps' ids; idle steps were not executed.
        done: What they did.
        verdict: The verdict of the task's grader, causes named by their place among the steps.
        effects: How it differs from the one golden end state.
    """

    steps: tuple[Step, ...]
    calls: Mapping[int, ToolCall]
    done: Replay
    verdict: Verdict
    effects: tuple[Effect, ...]

    @property
    def classes(self) -> frozenset[EffectKind]:
        """The classes of the effects."""
        return frozenset(effect.kind for effect in self.effects)


class Player:
    """Executes golden actions and variations of them on clean backends, and has them graded."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._golden: dict[tuple[str, int], Golden] = {}

    async def golden(self, task: Task, *, end_state: int = 0) -> Golden:
        """Return one end state of a task, executed once.

        Raises:
            SuiteError: a golden action errors.
        """
        known = self._golden.get((task.id, end_state))
        if known is None:
            ends = task.expectation.end_states
            end, alone = ends[end_state], task
            if len(ends) > 1:
                alone = replace(task, expectation=Expectation((ends[end_state],), task.expectation.required_facts))
            task_grader = self._suite.backend.grader(task)
            grader = task_grader if alone is task else self._suite.backend.grader(alone)
            done = await replay_golden(self._suite.backend.open, task, end.actions)
            text = known_text(task, self._suite.policy, done.initial)
            known = self._golden[task.id, end_state] = Golden(
                task,
                steps_of(end.actions),
                end.name,
                done,
                laid_over(done.final, end.rows),
                grader,
                task_grader,
                text,
            )
        return known

    async def play(self, golden: Golden, steps: Sequence[Step], *, keep: int | None = None) -> Played | None:
        """Execute steps, leaving out those that the tools refuse; None where a step that must be kept is refused.

        Args:
            golden: The end state that they come from.
            steps: The steps.
            keep: Id of the step that must be accepted; ``ALL`` for each of them.
        """
        remaining = list(steps)
        idle = golden.idle - {keep}
        while playable(remaining) is not None:
            executed = [step for step in remaining if step.id not in idle]
            done = await replay(self._suite.backend.open, golden.task, playable(executed) or ())
            if done.error is None:
                return await self._graded(golden, remaining, executed, done)
            refused = executed[done.error.index].id
            if keep in {refused, ALL}:
                return None
            gone = dependents(remaining, {refused})
            if keep in gone:
                return None
            remaining = [step for step in remaining if step.id not in gone]
        return None

    async def _graded(self, golden: Golden, steps: Sequence[Step], executed: Sequence[Step], done: Replay) -> Played:
        said = tuple(Message(fact.any_of[0], "agent") for fact in golden.task.expectation.required_facts)
        places = {step.id: place for place, step in enumerate(steps)}
        calls = {s.id: replace(c, index=places[s.id]) for s, c in zip(executed, done.calls, strict=True)}
        evidence = Evidence(done.initial, done.final, tuple(calls.values()), said)
        own = await golden.grader.grade(evidence)
        verdict = own if golden.grader is golden.task_grader else await golden.task_grader.grade(evidence)
        return Played(tuple(steps), calls, done, verdict, own.effects)
