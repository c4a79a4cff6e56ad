"""Custom agents: callables that are called once per user turn."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from fake_attempt import FakeAttempt

from tbadapters.adapters.function import FunctionAgent, TrialContext
from tbadapters.core.agent import Ended, Said
from tbadapters.core.context import TrialRef
from tbadapters.core.errors import AgentFault, LimitReached, SandboxFault, ToolError, UnknownAgentType
from tbadapters.core.messages import Message, Usage
from tbadapters.core.tools import ToolResult

BALANCE = ("get_balance", {"account": "A1"})


async def teller(message: str, ctx: TrialContext) -> str:
    balance = await ctx.call("get_balance", account="A1")
    return f"{message}: {balance['amount']}"


def sync_teller(message: str, ctx: TrialContext) -> str:
    ctx.state["turns"] = ctx.state.get("turns", 0) + 1
    balance = ctx.call_sync("get_balance", account="A1")
    return f"{message} ({ctx.state['turns']}): {balance['amount']}"


@pytest.fixture
def attempt(attempt: FakeAttempt) -> FakeAttempt:
    attempt.answers["get_balance"] = lambda *_: ToolResult('{"amount": 7}', {"amount": 7})
    return attempt


async def test_an_async_function_is_called_once_per_turn(attempt: FakeAttempt) -> None:
    """Its tool calls reach the sandbox and give data; what it returns is the answer."""
    async with attempt.session(FunctionAgent(teller)) as session:
        assert await session.send(Message("First")) == Said("First: 7")
        assert await session.send(Message("Second")) == Said("Second: 7")
    assert attempt.called == [BALANCE, BALANCE]


async def test_a_sync_function_runs_in_a_worker_thread_with_the_trials_context(attempt: FakeAttempt) -> None:
    """It may block and calls tools by ``call_sync``; its state lasts over turns."""
    mark: contextvars.ContextVar[str] = contextvars.ContextVar("mark", default="none")
    seen: list[tuple[bool, str]] = []

    def agent(message: str, ctx: TrialContext) -> str:
        seen.append((threading.current_thread() is threading.main_thread(), mark.get()))
        return sync_teller(message, ctx)

    mark.set("here")
    async with attempt.session(FunctionAgent(agent)) as session:
        assert await session.send(Message("First")) == Said("First (1): 7")
        assert await session.send(Message("Second")) == Said("Second (2): 7")
    assert seen == [(False, "here")] * 2
    assert attempt.called == [BALANCE, BALANCE]


async def test_a_hundred_sync_agents_at_once_do_not_wait_for_each_other(
    new_attempt: Callable[..., FakeAttempt],
) -> None:
    """100 sync agents, each in the middle of a tool call at the same moment, all end, each with its own sandbox."""
    attempts = [new_attempt(trial=TrialRef("t", n)) for n in range(100)]
    waiting, all_there = 0, anyio.Event()

    async def gathered(_: str) -> None:
        nonlocal waiting
        waiting += 1
        if waiting == len(attempts):
            all_there.set()
        await all_there.wait()

    def agent(message: str, ctx: TrialContext) -> str:
        return f"{message} {ctx.call_sync('get_balance', account=message)}"

    shared = FunctionAgent(agent)

    async def play(one: FakeAttempt) -> None:
        async with one.session(shared) as session:
            assert await session.send(Message(f"A{one.trial.index}")) == Said(f"A{one.trial.index} ok")

    async with anyio.create_task_group() as group:
        for one in attempts:
            one.before_call = gathered
            group.start_soon(play, one)
    for one in attempts:
        assert one.called == [("get_balance", {"account": f"A{one.trial.index}"})]


async def test_what_the_context_offers(attempt: FakeAttempt) -> None:
    """History, policy, tools and an id of the attempt are at hand; the history ends before the current message."""
    seen: list[Any] = []

    async def agent(message: str, ctx: TrialContext) -> str:
        seen.append([m.text for m in ctx.history])
        assert ctx.instructions == "Be kind."
        assert ctx.id.startswith("test/task-0")
        assert list(ctx.tools) == ["get_balance", "transfer", "close_account"]
        assert ctx.tools["transfer"].parameters["required"] == ["source", "target", "amount"]
        return f"to {message}"

    async with attempt.session(
        FunctionAgent(agent), instructions="Be kind.", history=(Message("Earlier"), Message("Yes?", "agent"))
    ) as session:
        await session.send(Message("a"))
        await session.send(Message("b"))
    assert seen == [["Earlier", "Yes?"], ["Earlier", "Yes?", "a", "to a"]]


async def test_an_agents_state_is_its_attempts_own(new_attempt: Callable[..., FakeAttempt]) -> None:
    """Nothing in ``ctx.state`` is seen by another attempt."""
    shared = FunctionAgent(sync_teller)
    for _ in range(2):
        one = new_attempt(answers={"get_balance": lambda *_: ToolResult("", {"amount": 1})})
        async with one.session(shared) as session:
            assert await session.send(Message("a")) == Said("a (1): 1")


async def test_a_tools_error_is_raised_and_can_be_recovered_from(attempt: FakeAttempt) -> None:
    """An error result, of an unknown tool too, is a ``ToolError`` with its text, and stays in the sandbox's record."""
    attempt.answers["get_balance"] = ToolResult("No such account.", is_error=True)

    async def agent(message: str, ctx: TrialContext) -> str:
        said = []
        for name in ("get_balance", "nonsense"):
            try:
                await ctx.call(name, account="A1")
            except ToolError as error:
                said.append(str(error))
        return " ".join(said)

    async with attempt.session(FunctionAgent(agent)) as session:
        assert await session.send(Message("a")) == Said("No such account. There is no tool 'nonsense'.")
    assert attempt.called == [BALANCE, ("nonsense", {"account": "A1"})]


async def test_an_argument_may_have_any_name(attempt: FakeAttempt) -> None:
    """``name`` and ``self`` are arguments like others."""

    async def agent(message: str, ctx: TrialContext) -> str:
        return str(await ctx.call("transfer", name="n", self="s"))

    async with attempt.session(FunctionAgent(agent)) as session:
        await session.send(Message("a"))
    assert attempt.called == [("transfer", {"name": "n", "self": "s"})]


@pytest.mark.parametrize("sync", [False, True])
async def test_recorded_usage_counts_towards_the_limits(attempt: FakeAttempt, sync: bool) -> None:
    """``record_usage`` reaches the recorder from the loop and from a worker thread; a request beyond the limit ends the turn, its tokens kept."""
    attempt.max_requests = 2

    def spend(message: str, ctx: TrialContext) -> str:
        ctx.record_usage("small", Usage(10, 4, 3, 1))
        return message

    async def spend_async(message: str, ctx: TrialContext) -> str:
        return spend(message, ctx)

    async with attempt.session(FunctionAgent(spend if sync else spend_async)) as session:
        await session.send(Message("a"))
        await session.send(Message("b"))
        with pytest.raises(LimitReached):
            await session.send(Message("c"))
    assert attempt.usage == Usage(30, 12, 9, 3)
    assert [request.model for request in attempt.requests] == ["small"] * 3


async def test_usage_is_recorded_from_any_thread(attempt: FakeAttempt) -> None:
    """``record_usage`` works in a thread that an async agent made itself."""

    async def agent(message: str, ctx: TrialContext) -> str:
        await asyncio.to_thread(ctx.record_usage, "small", Usage(10, 4, 3, 1))
        return message

    async with attempt.session(FunctionAgent(agent)) as session:
        await session.send(Message("a"))
    assert attempt.usage == Usage(10, 4, 3, 1)


async def test_an_agent_may_end_the_conversation(attempt: FakeAttempt) -> None:
    """``return ctx.end(text)`` ends it with that answer."""

    async def agent(message: str, ctx: TrialContext) -> str:
        return ctx.end("Goodbye.")

    async with attempt.session(FunctionAgent(agent)) as session:
        assert await session.send(Message("a")) == Ended("agent", "Goodbye.")


async def test_what_a_function_raises_is_its_fault_and_what_the_sandbox_raises_is_not(attempt: FakeAttempt) -> None:
    """An exception of the function is the agent's; the sandbox's fault passes, even when it was wrapped."""

    async def broken(message: str, ctx: TrialContext) -> str:
        raise KeyError(message)

    async def wrapping(message: str, ctx: TrialContext) -> str:
        try:
            return str(await ctx.call("transfer"))
        except Exception as error:
            raise RuntimeError("no luck") from error

    attempt.answers["transfer"] = SandboxFault("The database is gone.")
    async with attempt.session(FunctionAgent(broken)) as session:
        with pytest.raises(AgentFault, match="KeyError: 'a'"):
            await session.send(Message("a"))
    async with attempt.session(FunctionAgent(wrapping)) as session:
        with pytest.raises(SandboxFault):
            await session.send(Message("a"))


async def test_sync_calls_in_async_code_are_refused_with_the_mend(attempt: FakeAttempt) -> None:
    """``ctx.call_sync`` on the loop's thread would wait for itself: the sentence says what to write."""

    async def agent(message: str, ctx: TrialContext) -> str:
        return str(ctx.call_sync("get_balance", account="A1"))

    async with attempt.session(FunctionAgent(agent)) as session:
        with pytest.raises(AgentFault, match=r"await ctx\.call\('get_balance', \.\.\.\)"):
            await session.send(Message("a"))


async def test_an_answer_that_is_no_text_is_the_agents_fault(attempt: FakeAttempt) -> None:
    """A function that returns nothing, or data, is told so."""
    async with attempt.session(FunctionAgent(lambda _m, _c: None)) as session:  # type: ignore[arg-type,return-value]
        with pytest.raises(AgentFault, match="returned NoneType where its answer"):
            await session.send(Message("a"))


class Teller:
    async def __call__(self, message: str, ctx: TrialContext) -> str:
        assert threading.current_thread() is threading.main_thread()
        return message.upper()

    def method(self, message: str, ctx: TrialContext) -> str:
        return message.upper()


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (Teller(), "Teller"),
        (Teller().method, "method"),
        (lambda message, ctx: Teller().method(message, ctx), "agent"),
        (lambda message, ctx: (teller := Teller()) and teller(message, ctx), "agent"),
        (functools.partial(lambda extra, message, ctx: message.upper(), "x"), "agent"),
    ],
)
async def test_any_form_of_callable_is_an_agent(attempt: FakeAttempt, agent: Any, name: str) -> None:
    """Objects, methods, lambdas (of async functions too) and partials are called like functions."""
    adapter = FunctionAgent(agent)
    assert adapter.name == name
    async with attempt.session(adapter) as session:
        assert await session.send(Message("a")) == Said("A")


async def _yielding(message: str, ctx: TrialContext) -> AsyncIterator[str]:
    yield message


@pytest.mark.parametrize(
    ("agent", "sentence"),
    [
        (lambda message: message, r"\(message\) can't be called with a message and a context"),
        (lambda: "graph", r"can't be called with a message and a context"),
        (lambda message, ctx, more: message, r"\(message, ctx, more\)"),
        (_yielding, "_yielding yields; an agent returns its whole answer"),
    ],
)
def test_a_callable_of_another_shape_is_refused(agent: Any, sentence: str) -> None:
    """What can't be called with a message and a context is refused before any trial."""
    with pytest.raises(UnknownAgentType, match=sentence):
        FunctionAgent(agent)
