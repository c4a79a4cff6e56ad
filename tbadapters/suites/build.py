"""How a suite's tasks are built from workflows: a seed in, the same tasks out, and an independent rule beside each.

WORKFLOWS = [Workflow("card_stolen_abroad", 3, build, rule), ...]

def load(*, suite_seed: int = 0) -> Suite:
    tasks = build_tasks("neobank", WORKFLOWS, suite_seed)
    return sqlite_suite(..., tasks=tasks, rule=rule_of(WORKFLOWS), seed=suite_seed, reseed=...)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tbadapters.core.errors import SuiteError
from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task

__all__ = ["Outcome", "Workflow", "build_tasks", "rule_of"]


@dataclass(frozen=True, slots=True)
class Workflow:
    """One kind of request that a suite holds several variations of.

    Attributes:
        name: Part of its tasks' ids and one of their tags.
        variations: How many tasks it gives; other decisions rather than other names.
        build: ``build(rng, variation)`` gives the task of a variation (from 0). All chance comes from ``rng``; the
            branch of the policy is derived from what was drawn, never assumed. The id is set by ``build_tasks``.
        rule: Derives what the policy decides from the task's world and the user's facts alone. It never looks at the
            golden actions: that the two agree is what ``tbadapters check`` verifies.
    """

    name: str
    variations: int
    build: Callable[[Random, int], Task]
    rule: Callable[[Task], Outcome]


def build_tasks(suite_name: str, workflows: Sequence[Workflow], suite_seed: int) -> tuple[Task, ...]:
    """Return the tasks of all workflows, with the ids ``suite/workflow/variation``.

    Each task has a random generator of its own, so no task changes when another is added.

    Raises:
        SuiteError: two workflows have one name, or one has no variation.
    """
    tasks: list[Task] = []
    seen: set[str] = set()
    for workflow in workflows:
        if workflow.name in seen:
            raise SuiteError(f"Two workflows of {suite_name!r} are named {workflow.name!r}.")
        if workflow.variations < 1:
            raise SuiteError(f"The workflow {workflow.name!r} of {suite_name!r} has no variation.")
        seen.add(workflow.name)
        for variation in range(workflow.variations):
            rng = Random(f"{suite_seed}/{workflow.name}/{variation}")  # noqa: S311  reproducible tasks, not secrets
            task = workflow.build(rng, variation)
            tags = tuple(dict.fromkeys((*task.tags, workflow.name)))
            tasks.append(replace(task, id=f"{suite_name}/{workflow.name}/{variation}", tags=tags))
    return tuple(tasks)


def rule_of(workflows: Sequence[Workflow]) -> Callable[[Task], Outcome]:
    """Return the rule of a suite: that of the workflow which a task's id names."""
    rules = {workflow.name: workflow.rule for workflow in workflows}

    def rule(task: Task) -> Outcome:
        _, name, _ = task.id.rsplit("/", 2)
        return rules[name](task)

    return rule
