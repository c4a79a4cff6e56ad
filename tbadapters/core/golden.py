"""Golden actions, executed: what a task's right actions make of its clean backend."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tbadapters.core.errors import Fault, SuiteError
from tbadapters.core.grading import GoldenAction, Ref
from tbadapters.core.refs import followed, with_refs
from tbadapters.core.sandbox import Sandbox
from tbadapters.core.state import State, changes
from tbadapters.core.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    from tbadapters.core.suite import Task

OpenSandbox = Callable[["Task"], AbstractAsyncContextManager[Sandbox]]


@dataclass(frozen=True, slots=True)
class Replay:
    """Actions that were executed on a task's clean backend.

    Attributes:
        initial: The clean backend.
        final: What the actions left.
        calls: The executed calls, one an action, with resolved arguments.
    """

    initial: State
    final: State
    calls: tuple[ToolCall, ...]

    @property
    def error(self) -> ToolCall | None:
        """The first call that the tools answered with an error, if there is one; none was executed after it."""
        return next((call for call in self.calls if call.result.is_error), None)


async def replay(open_sandbox: OpenSandbox, task: Task, actions: Sequence[GoldenAction]) -> Replay:
    """Execute actions on a task's clean backend, until the end or the first error.

    What a call changed is seen in the records, where the sandbox can't tell.

    Raises:
        SuiteError: a ``Ref`` points nowhere, or the sandbox failed.
    """
    calls: list[ToolCall] = []
    async with open_sandbox(task) as sandbox:
        initial = state = await sandbox.state()
        for index, action in enumerate(actions):
            arguments = resolved(action.arguments, [call.result for call in calls], f"{task.id}, action {index}")
            try:
                result = await sandbox.call(action.tool, arguments)
            except Fault as fault:
                raise SuiteError(f"{task.id}, action {index} ({action.tool}): the sandbox failed: {fault}") from fault
            if result.changes is None:
                before, state = state, await sandbox.state()
                result = replace(result, changes=changes(before, state))
            calls.append(ToolCall(index, action.tool, arguments, result))
            if result.is_error:
                break
        return Replay(initial, await sandbox.state(), tuple(calls))


async def replay_golden(open_sandbox: OpenSandbox, task: Task, actions: Sequence[GoldenAction]) -> Replay:
    """Execute golden actions, which must not fail.

    Raises:
        SuiteError: one is answered with an error; nobody may be graded by such a task.
    """
    done = await replay(open_sandbox, task, actions)
    if done.error is not None:
        call = done.error
        raise SuiteError(
            f"{task.id}: the golden action {call.index} ({call.name}) is answered with an error: {call.result.text}"
        )
    return done


def resolved(arguments: Mapping[str, Any], results: Sequence[ToolResult], where: str) -> dict[str, Any]:
    """Return an action's arguments with each ``Ref`` replaced by the value that it points at.

    Raises:
        SuiteError: it points nowhere; ``where`` names the action.
    """
    found: dict[str, Any] = with_refs(arguments, lambda ref: _pointed_at(ref, results, where))
    return found


def _pointed_at(ref: Ref, results: Sequence[ToolResult], where: str) -> Any:
    if not 0 <= ref.action < len(results):
        raise SuiteError(f"{where}: {ref} points at an action that is not before it.")
    try:
        return followed(results[ref.action].value, ref.path)
    except LookupError:
        raise SuiteError(f"{where}: {ref} points at nothing: the result is {results[ref.action].text}") from None
