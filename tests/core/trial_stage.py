"""Agents by the contract, made of one function, and what runs them in one attempt or trial."""

from contextlib import asynccontextmanager

from tbadapters import Limits, Retries
from tbadapters.adapters.registry import resolve_agent
from tbadapters.core.context import TrialRef
from tbadapters.core.trial import TrialPlan, run_attempt, run_trial
from tbadapters.core.users import ScriptedUser

QUICK = Retries(attempts=3, wait_initial=0, wait_max=0)


def plan(suite, agent, **options):
    """Return the plan of a run with this agent."""
    options = {"limits": Limits(seconds=5, grace=0.2), "retries": QUICK} | options
    return TrialPlan(adapter=resolve_agent(agent), suite=suite, user_of=lambda task: ScriptedUser(task.user), **options)


async def attempt_of(suite, agent, *, index=0, **options):
    """Run one attempt at the suite's first task; return record and fault."""
    task = suite.tasks[0]
    return await run_attempt(plan(suite, agent, **options), task, TrialRef(task.id, index), 0)


async def trial_of(suite, agent, **options):
    """Run one trial; return its deciding record and all that were committed."""
    committed = []

    async def commit(record):
        committed.append(record)

    record = await run_trial(
        plan(suite, agent, **options), suite.tasks[0], 0, first=0, may_retry=lambda: True, commit=commit
    )
    return record, committed


class Session:
    """An agent by the contract, made of one function."""

    framework = name = "session"

    def __init__(self, send, *, opening=None, closing=None):
        self._send, self._opening, self._closing = send, opening, closing

    def check(self, tools):
        """Accept any tools."""

    @asynccontextmanager
    async def open(self, brief, tools, recorder, limits):
        """Open a session that knows its tools and its recorder."""
        if self._opening:
            raise self._opening
        self.tools, self.recorder = {tool.name: tool for tool in tools}, recorder
        yield self
        if self._closing:
            raise self._closing

    async def send(self, turn):
        """Answer by the function."""
        return await self._send(self, turn)


def raising(error):
    """Return an agent that raises on every turn."""

    async def send(session, turn):
        raise error

    return Session(send)
