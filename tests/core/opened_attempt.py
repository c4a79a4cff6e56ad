"""An attempt at a suite's first task, started, for tests that drive it by hand."""

from contextlib import asynccontextmanager

from tbadapters import Limits
from tbadapters.core.agent import Said
from tbadapters.core.attempt import Attempt, Parties
from tbadapters.core.context import TrialRef
from tbadapters.core.conversation import conversation_for
from tbadapters.core.users import ScriptedUser

CLAIM = Said("Your ticket is on hold and the call is booked for Tuesday.")


@asynccontextmanager
async def opened(suite, *, limits=None, sandbox_of=lambda sandbox: sandbox, user=None, prices=None):
    """Yield a started attempt at the suite's first task."""
    task = suite.tasks[0]
    async with suite.backend.open(task) as sandbox:
        user = user or ScriptedUser(task.user)
        conversation = conversation_for("default", task, user)
        initial = await sandbox.state()
        parties = Parties(sandbox_of(sandbox), initial, suite.backend.grader(task), conversation, user)
        attempt = Attempt(TrialRef(task.id, 0), parties, limits or Limits(), number=0, prices=prices or {})
        attempt.start()
        yield attempt


async def play_golden(attempt):
    """Do what the task expects."""
    await attempt.call("set_status", {"ticket_id": "T-1", "status": "hold"})
    await attempt.call("book_call", {"ticket_id": "T-1", "day": "Tuesday"})
    return await attempt.answer(CLAIM)
