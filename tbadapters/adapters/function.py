"""A custom agent: any callable ``(message, ctx) -> str``, async or sync, called once per user turn."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tbadapters.adapters._shared import agent_fault
from tbadapters.core.agent import Approvals, Ended, NeedsApproval, Recorder, Said, TaskBrief
from tbadapters.core.daemon_thread import run_in_daemon_thread
from tbadapters.core.errors import AgentFault, HarnessFault, ToolError, UnknownAgentType
from tbadapters.core.limits import Limits
from tbadapters.core.messages import Message, Usage
from tbadapters.core.tools import Tool, ToolResult

AgentFunction = Callable[[str, "TrialContext"], str | Awaitable[str]]


class TrialContext:
    """What a custom agent has of the trial that it plays: one object per attempt, the same in every turn.

    Attributes:
        id: An opaque id of the attempt, for use as a thread or session id.
        instructions: The suite's policy, or None with ``instructions="none"``.
        tools: The suite's tools by name; ``Tool.parameters`` is the JSON schema of the arguments.
        state: A dict of the agent's own; empty at the start of every attempt, never shared with another.
    """

    def __init__(self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder) -> None:
        self.id = brief.id
        self.instructions = brief.instructions
        self.tools: Mapping[str, Tool] = MappingProxyType({tool.name: tool for tool in tools})
        self.state: dict[str, Any] = {}
        self._history = list(brief.history)
        self._recorder = recorder
        self._ended = False
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()

    @property
    def history(self) -> tuple[Message, ...]:
        """What was said before the current message."""
        return tuple(self._history)

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Call a tool and return its data (its text where it returned none).

        Raises:
            ToolError: there is no such tool, or it answered with an error; the text says why. The agent may recover.
        """
        return _data(await self._tool(name).call(arguments))

    def call_sync(self, name: str, /, **arguments: Any) -> Any:
        """Do the same from a sync agent, which runs in a worker thread.

        Raises:
            AgentFault: called on the event loop's thread, where it would wait for itself for ever.
        """
        if self._on_loop_thread():
            raise AgentFault(
                f"ctx.call_sync({name!r}) was called in async code: write `await ctx.call({name!r}, ...)`."
            )
        return _data(self._tool(name).call_sync(arguments))

    def record_usage(self, model: str, usage: Usage | None = None, *, actor: str | None = None) -> None:
        """Record one model request that the agent made, so that it counts towards limits and cost.

        It may be called in any thread. It is recorded even where it was one too many: its tokens are spent.

        Args:
            model: The model's name, as prices are looked up by it.
            usage: Its tokens; None where the provider reported none.
            actor: The sub-agent that asked.

        Raises:
            LimitReached: the trial had no request left; let it pass.
            AgentFault: what is given is no name, or no tokens.
        """
        if not isinstance(model, str) or not isinstance(usage, Usage | None):
            raise AgentFault(
                "ctx.record_usage takes a model's name and its tokens: `ctx.record_usage('m', Usage(...))`."
            )
        if self._on_loop_thread():
            self._record(model, usage, actor)
            return

        async def record() -> None:
            self._record(model, usage, actor)

        asyncio.run_coroutine_threadsafe(record(), self._loop).result()

    def _record(self, model: str, usage: Usage | None, actor: str | None) -> None:
        try:
            self._recorder.request_starts(actor)
        finally:
            self._recorder.model_request(model, usage, actor=actor)

    def _on_loop_thread(self) -> bool:
        return threading.get_ident() == self._loop_thread

    def end(self, text: str = "") -> str:
        """End the conversation with this answer: ``return ctx.end("Goodbye.")``."""
        self._ended = True
        return text

    def _tool(self, name: str) -> Tool:
        # An unknown name is passed on, so that the sandbox answers and records it as for any framework.
        known = self.tools.get(name) or next(iter(self.tools.values()), Tool(name, "", {}))
        return replace(known, name=name)


class FunctionAgent:
    """Lets any callable be driven as an agent.

    Args:
        function: ``(message, ctx) -> str``, async, or sync (it then runs in a worker thread and calls tools by
            ``ctx.call_sync``). ``ctx`` is a ``TrialContext``.
        name: A short name; by default the function's.

    Raises:
        UnknownAgentType: the callable can't be called with a message and a context.
    """

    framework = "function"

    def __init__(self, function: AgentFunction, *, name: str | None = None) -> None:
        own = name_of(function)
        _refuse_other_shapes(function, own)
        self.name = name or own
        self._function = function

    def check(self, tools: Sequence[Tool]) -> None:
        """See ``AgentAdapter.check``: a callable brings no tools, there is nothing to refuse."""

    @asynccontextmanager
    async def open(
        self, brief: TaskBrief, tools: Sequence[Tool], recorder: Recorder, limits: Limits
    ) -> AsyncIterator[_FunctionSession]:
        """See ``AgentAdapter.open``; the core counts the limits."""
        del limits
        yield _FunctionSession(self._function, TrialContext(brief, tools, recorder))


class _FunctionSession:
    def __init__(self, function: AgentFunction, ctx: TrialContext) -> None:
        self._function = function
        self._ctx = ctx

    async def send(self, turn: Message | Approvals) -> Said | NeedsApproval | Ended:
        """See ``AgentSession.send``."""
        if isinstance(turn, Approvals):
            raise HarnessFault("A custom agent asks for no approvals.")
        try:
            text: object = await self._answer(turn.text)
        except Exception as error:
            raise agent_fault(error) from error
        if not isinstance(text, str):
            raise AgentFault(f"The agent returned {type(text).__name__} where its answer to the user, a str, was due.")
        self._ctx._history += [turn, Message(text, "agent")]  # noqa: SLF001  # the context and its session are one thing
        return Ended("agent", text) if self._ctx._ended else Said(text)  # noqa: SLF001  # as above

    async def _answer(self, message: str) -> object:
        function, ctx = self._function, self._ctx
        if _is_async(function):
            answer: object = function(message, ctx)
        else:
            # A sync agent waits in its thread for the loop: a pool shared by the trials could fill up with waiters.
            answer = await run_in_daemon_thread(function, message, ctx)
        return await answer if inspect.isawaitable(answer) else answer


def name_of(value: object) -> str:
    """Return a short name for a callable or an object."""
    function = getattr(value, "func", value)  # functools.partial
    name = getattr(function, "__name__", type(function).__name__)
    return "agent" if name == "<lambda>" else str(name)


def positional_parameters(function: Callable[..., Any]) -> list[str] | None:
    """Return the names of a callable's positional parameters, None where it takes any number or can't be inspected."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _refuse_other_shapes(function: Any, name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UnknownAgentType(f"{name} yields; an agent returns its whole answer: `return text` once per user turn.")
    try:
        inspect.signature(function).bind("message", "ctx")
    except TypeError:
        taken = ", ".join(positional_parameters(function) or ())
        raise UnknownAgentType(
            f"{name}({taken}) can't be called with a message and a context: an agent is `{name}(message, ctx) -> str`."
        ) from None
    except ValueError:  # a builtin without a signature: the first turn will tell
        return


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004  # the method is looked at, not whether there is one


def _data(result: ToolResult) -> Any:
    if result.is_error:
        raise ToolError(result.text)
    return result.text if result.value is None else result.value
