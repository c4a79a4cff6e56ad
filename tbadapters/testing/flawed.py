"""Scripts with a flaw: what a scripted model does in a trial that it is to fail."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from tbadapters.core.errors import SuiteError, UsageError
from tbadapters.core.event_loop import run_apart
from tbadapters.core.sandbox import running
from tbadapters.core.suite import Suite, Task
from tbadapters.testing.mutations import Mutation, Mutator, without_waiting
from tbadapters.testing.outcomes import FLAWS, Flaw, Outcomes
from tbadapters.testing.scripts import Injected, Script, final_text, golden_script, reading_step
from tbadapters.testing.steps import dependents, playable

Result = TypeVar("Result")
EXTRAS = 3


class Flaws:
    """Makes the script of any trial of a suite.

    Args:
        suite: The suite.
        outcomes: Which trials go wrong, and how.
    """

    def __init__(self, suite: Suite, outcomes: Outcomes) -> None:
        self._suite = suite
        self._outcomes = outcomes
        self._mutator = Mutator(suite, seed=outcomes.seed)
        self._mutations: dict[tuple[str, Flaw], Sequence[Mutation]] = {}

    def script(self, task: Task, index: int) -> Script:
        """Return the script of a trial. Where a task has no place for the drawn flaw, another one is played.

        Raises:
            SuiteError: the task has no place for any.
        """
        drawn = self._outcomes.flaw(task.id, index)
        if drawn is None:
            return golden_script(task)
        for flaw in dict.fromkeys([drawn, *self._outcomes.flaws, *FLAWS]):
            script = self._made(task, index, flaw)
            if script is not None:
                return replace(script, injected=replace(script.injected, drawn=drawn))
        raise SuiteError(f"{task.id}: no flaw can be played: it has no writing action and no required fact.")

    def _made(self, task: Task, index: int, flaw: Flaw) -> Script | None:
        if flaw == "loop":
            step = reading_step(task, self._suite.part_of(task).tool_list)
            looping = replace(golden_script(task), loops=True, injected=Injected("loop"))
            return replace(looping, steps=(step,)) if step else None
        if flaw == "lie":
            return self._lie(task)
        found = self._found(task, flaw)
        return _mutated(task, self._outcomes.rng(task.id, index, "mutation").choice(found), flaw) if found else None

    def _found(self, task: Task, flaw: Flaw) -> Sequence[Mutation]:
        """Return the mutations that play a flaw, made once a task."""
        if (task.id, flaw) not in self._mutations:
            make: Callable[[], Coroutine[Any, Any, list[Mutation]]] = {
                "wrong_value": lambda: self._mutator.altered(task),
                "missing": lambda: self._mutator.dropped(task),
                "extra": lambda: self._mutator.extra(task, count=EXTRAS),  # noqa: S610 - no Django
            }[flaw]
            self._mutations[task.id, flaw] = [
                mutation
                for mutation in self._finished(make)
                if (flaw != "wrong_value" or mutation.kind == "value")
                # What leads to another allowed end state, or changes only what does not count, is no flaw.
                and not mutation.verdict.passed
            ]
        return self._mutations[task.id, flaw]

    def _lie(self, task: Task) -> Script | None:
        """Return the script that only reads and claims all the same; where nothing is to be written, it tells nothing."""
        golden = self._finished(lambda: self._mutator.golden(task))
        if not golden.writing and not task.expectation.required_facts:
            return None
        gone = dependents(golden.steps, set(golden.writing))
        steps = playable([step for step in golden.steps if step.id not in gone]) or ()
        final = final_text(task, facts=bool(golden.writing))
        return replace(golden_script(task), steps=steps, final=final, injected=Injected("lie"))

    def _finished(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Return a coroutine's result from sync code: at once, or, where the backend waits, from a thread with a loop."""

        async def kept() -> Result:
            async with running(self._suite.backend):
                return await make()

        if hasattr(self._suite.backend, "running"):
            return run_apart(kept)
        try:
            return without_waiting(make())
        except UsageError:
            return run_apart(make)


def _mutated(task: Task, mutation: Mutation, flaw: Flaw) -> Script:
    injected = Injected(
        flaw,
        golden=mutation.golden_index,
        step=mutation.index,
        tool=mutation.tool,
        argument=mutation.argument,
        right=mutation.before,
        wrong=mutation.after,
    )
    return replace(golden_script(task), steps=mutation.actions, injected=injected)
