"""What each check of a suite looks at in one task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from random import Random

from tbadapters.core.grading import Evidence, Expectation, GoldenAction, RequiredFact
from tbadapters.core.messages import Message
from tbadapters.core.suite import Suite, Task
from tbadapters.core.tool_arguments import invalid_arguments
from tbadapters.core.tools import ToolCall
from tbadapters.testing.decisions import disagreement
from tbadapters.testing.findings import Finding
from tbadapters.testing.mutations import Mutation, Mutator

Probe = Callable[[Suite, Task, Mutator, int], Awaitable[list[Finding]]]

_SILENT: tuple[str, ...] = ("",)
_REFUSALS = (
    "I'm sorry, but I can't help with that.",
    "Unfortunately your request is refused: our policy does not allow it.",
    "I'm unable to do this. There is nothing more that I can do.",
)
_ESCALATIONS = (
    "I have escalated your request to the responsible team.",
    "I've opened a ticket for you and a specialist will contact you shortly.",
    "I am transferring you to a human agent.",
)
_READ = ("I have looked at your records.",)
_READS_PER_TOOL = 5


async def golden(suite: Suite, task: Task, mutator: Mutator, _: int) -> list[Finding]:
    """Golden actions fit the tools' schemas, none errors, and they pass with the facts said, by each end state."""
    tools = {tool.name: tool for tool in suite.tool_list}
    found = []
    for place, end in enumerate(task.expectation.end_states):
        done = (await mutator.golden(task, end_state=place)).done
        misfits = [m for c in done.calls if (m := invalid_arguments(tools[c.name], c.arguments))]
        evidence = Evidence(done.initial, done.final, done.calls, _facts(task.expectation.required_facts))
        verdict = await suite.backend.grader(task).grade(evidence)
        fault = misfits[0] if misfits else None if verdict.passed else f"{end.name}: {' '.join(verdict.reasons)}"
        found.append(Finding(task.id, fault))
    return found or [Finding(task.id, "the task allows no end state")]


async def null_agent(suite: Suite, task: Task, _: Mutator, __: int) -> list[Finding]:
    """An agent that does and says nothing fails."""
    return [await _fails(suite, task, (), _SILENT)]


async def refusing(suite: Suite, task: Task, _: Mutator, __: int) -> list[Finding]:
    """An agent that always says that the request is refused fails."""
    return [await _fails(suite, task, (), _REFUSALS)]


async def escalating(suite: Suite, task: Task, _: Mutator, __: int) -> list[Finding]:
    """An agent that always says that it escalated, and did not, fails."""
    return [await _fails(suite, task, (), _ESCALATIONS)]


async def read_only(suite: Suite, task: Task, mutator: Mutator, _: int) -> list[Finding]:
    """An agent that reads everything and changes nothing fails, and reading changes nothing."""
    reading = {tool.name for tool in suite.tool_list if tool.writes is False}
    actions: list[GoldenAction] = []
    for place in range(len(task.expectation.end_states)):
        done = (await mutator.golden(task, end_state=place)).done
        actions += [GoldenAction(c.name, c.arguments) for c in done.calls if c.name in reading]
    rng = Random(task.id)  # noqa: S311  reproducible, not secret
    initial = (await mutator.golden(task)).done.initial
    for template in await mutator.templates(writing=False):
        tries = [template.laid_on(initial, rng) for _ in range(_READS_PER_TOOL)]
        actions += [GoldenAction(template.tool, arguments) for arguments in tries if arguments is not None]
    return [await _fails(suite, task, actions, _READ)]


async def unsaid(suite: Suite, task: Task, mutator: Mutator, _: int) -> list[Finding]:
    """The golden actions without one of the required facts said fail."""
    done = (await mutator.golden(task)).done
    found = []
    for fact in task.expectation.required_facts:
        others = [other for other in task.expectation.required_facts if other is not fact]
        evidence = Evidence(done.initial, done.final, done.calls, _facts(others))
        verdict = await suite.backend.grader(task).grade(evidence)
        found.append(Finding(task.id, f"passes though {fact.name!r} was not said" if verdict.passed else None))
    return found


async def dropped(_: Suite, task: Task, mutator: Mutator, __: int) -> list[Finding]:
    """Each golden writing action left out gives ``failed`` with ``missing`` or ``wrong_value``."""
    found = []
    for place in range(len(task.expectation.end_states)):
        for mutation in await mutator.dropped(task, end_state=place):
            caught = bool(mutation.effects & {"missing", "wrong_value"})
            told = f"without action {mutation.golden_index} ({mutation.tool})"
            found.append(_caught(mutation, told, as_it_should=caught, should="missing or wrong_value"))
    return found


async def altered(_: Suite, task: Task, mutator: Mutator, per_argument: int) -> list[Finding]:
    """Each graded argument altered gives ``failed``, with the class of effect that belongs to it."""
    found = []
    for place in range(len(task.expectation.end_states)):
        for mutation in await mutator.altered(task, end_state=place, per_argument=per_argument):
            if mutation.kind == "selector":
                caught, should = mutation.effects >= {"missing", "unexpected"}, "missing and unexpected"
            else:
                caught, should = "wrong_value" in mutation.effects, "wrong_value"
            told = (
                f"action {mutation.golden_index} ({mutation.tool}) with {mutation.argument}={mutation.after!r}"
                f" instead of {mutation.before!r}"
            )
            found.append(_caught(mutation, told, as_it_should=caught, should=should))
    return found


async def extra(_: Suite, task: Task, mutator: Mutator, __: int) -> list[Finding]:
    """One more valid writing action on an unrelated record gives ``failed`` with ``unexpected``."""
    found = []
    for mutation in await mutator.extra(task):  # noqa: S610  this is no Django query
        told = f"with {mutation.tool}({dict(mutation.actions[-1].arguments)}) added"
        found.append(_caught(mutation, told, as_it_should="unexpected" in mutation.effects, should="unexpected"))
    return found or [Finding(task.id, "no further writing action is possible on an unrelated record: add records")]


async def reordered(_: Suite, task: Task, mutator: Mutator, __: int) -> list[Finding]:
    """Golden actions that commute, in another order, still pass."""
    mutations = [
        mutation
        for place in range(len(task.expectation.end_states))
        for mutation in await mutator.reordered(task, end_state=place)
    ]
    return [_passes(m, f"with action {m.golden_index} ({m.tool}) moved to {m.index}") for m in mutations]


async def reworded(_: Suite, task: Task, mutator: Mutator, __: int) -> list[Finding]:
    """Golden actions with other words in free text still pass."""
    mutations = [
        mutation
        for place in range(len(task.expectation.end_states))
        for mutation in await mutator.reworded(task, end_state=place)
    ]
    return [_passes(m, "with its own words put differently") for m in mutations]


async def decidable(suite: Suite, task: Task, mutator: Mutator, _: int) -> list[Finding]:
    """The workflow's own rule, which sees no golden action, decides as the golden actions do."""
    if suite.rule is None:
        return []
    outcome = suite.rule(replace(task, expectation=Expectation(())))
    names = [end.name for end in task.expectation.end_states]
    if outcome.end_state not in names:
        return [Finding(task.id, f"the rule says {outcome.end_state!r}, the task allows {' or '.join(names)}")]
    golden_end = await mutator.golden(task, end_state=names.index(outcome.end_state))
    return [Finding(task.id, disagreement(outcome, golden_end.done.initial, golden_end.expected, mutator.rules))]


PROBES: dict[str, Probe] = {
    "golden actions": golden,
    "null agent": null_agent,
    "always refusing": refusing,
    "always escalating": escalating,
    "read-only": read_only,
    "unsaid fact": unsaid,
    "dropped action": dropped,
    "altered argument": altered,
    "extra action": extra,
    "order": reordered,
    "wording": reworded,
    "decidability": decidable,
}
"""The checks by name, in the order in which they are shown."""


async def _fails(suite: Suite, task: Task, actions: Sequence[GoldenAction], says: Sequence[str]) -> Finding:
    """Return whether an agent fails that does these actions, as far as the tools let it, and says these things."""
    async with suite.backend.open(task) as sandbox:
        initial = await sandbox.state()
        calls = []
        for index, action in enumerate(actions):
            result = await sandbox.call(action.tool, action.arguments)
            calls.append(ToolCall(index, action.tool, action.arguments, result))
        final = await sandbox.state()
    verdict = await suite.backend.grader(task).grade(
        Evidence(initial, final, tuple(calls), tuple(Message(text, "agent") for text in says))
    )
    wrote = next((call.name for call in calls if call.wrote), None)
    if wrote:
        return Finding(task.id, f"the reading tool {wrote!r} changed records")
    return Finding(task.id, f"it passes ({verdict.end_state})" if verdict.passed else None)


def _facts(facts: Sequence[RequiredFact]) -> tuple[Message, ...]:
    return tuple(Message(fact.any_of[0], "agent") for fact in facts)


def _caught(mutation: Mutation, told: str, *, as_it_should: bool, should: str) -> Finding:
    task = mutation.task
    if mutation.verdict.passed:
        return Finding(task, f"{told} it passes")
    classes = ", ".join(sorted(mutation.effects)) or "no effect"
    return Finding(task, None if as_it_should else f"{told} it fails with {classes} instead of {should}")


def _passes(mutation: Mutation, told: str) -> Finding:
    passed = bool(mutation.verdict.passed)
    return Finding(mutation.task, None if passed else f"{told} it fails: {' '.join(mutation.verdict.reasons)}")
