"""Promises of the building of tasks from workflows."""

import pytest

from tbadapters.core.errors import SuiteError
from tbadapters.core.grading import EndState, Expectation, Outcome
from tbadapters.core.suite import Task, UserBrief
from tbadapters.suites.build import Workflow, build_tasks, rule_of


def drawn(rng, variation):
    number = rng.randrange(10**9)
    return Task("", f"{variation}: {number}", UserBrief("g"), Expectation((EndState("x"),)), tags=("t",))


def workflow(name, variations=2):
    return Workflow(name, variations, drawn, lambda task: Outcome(f"{name} of {task.id}"))


def test_ids_are_stable_and_tags_name_the_workflow():
    """A task is named by suite, workflow and variation, and tagged with its workflow."""
    tasks = build_tasks("bank", [workflow("a"), workflow("b", 1)], 0)
    assert [task.id for task in tasks] == ["bank/a/0", "bank/a/1", "bank/b/0"]
    assert tasks[0].tags == ("t", "a")


def test_a_task_depends_on_its_own_name_and_seed_only():
    """Adding a workflow or a variation changes no other task; another seed changes every one."""
    few = {task.id: task for task in build_tasks("bank", [workflow("b")], 0)}
    more = {task.id: task for task in build_tasks("bank", [workflow("a"), workflow("b", 3)], 0)}
    other = {task.id: task for task in build_tasks("bank", [workflow("b")], 1)}
    for task_id, task in few.items():
        assert more[task_id] == task
        assert other[task_id].opening != task.opening
    assert len({task.opening for task in more.values()}) == len(more)


def test_the_rule_of_a_task_is_that_of_its_workflow():
    """The suite's rule finds the workflow by the task's id."""
    workflows = [workflow("a"), workflow("b")]
    rule = rule_of(workflows)
    assert [rule(task).end_state for task in build_tasks("bank", workflows, 0)][2] == "b of bank/b/0"


@pytest.mark.parametrize(
    ("workflows", "said"),
    [([workflow("a"), workflow("a")], "are named 'a'"), ([workflow("a", 0)], "'a' of 'bank' has no variation")],
)
def test_wrong_workflows_are_refused(workflows, said):
    """Two workflows of one name, or one without tasks, are refused."""
    with pytest.raises(SuiteError, match=said):
        build_tasks("bank", workflows, 0)
