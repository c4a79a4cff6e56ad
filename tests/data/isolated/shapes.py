"""Agents of all shapes that another process can import, and some that it can't."""

from contextlib import asynccontextmanager

from tbadapters import ApprovalRequest, Approvals, NeedsApproval, Said, factory

CLAIM = "Your ticket is on hold and the call is booked for Tuesday."


async def plain(message, ctx):
    """Do everything right."""
    await ctx.call("set_status", ticket_id="T-1", status="hold")
    await ctx.call("book_call", ticket_id="T-1", day="Tuesday")
    return CLAIM


def make(tools):
    """Make an agent that does everything right."""
    assert {tool.name for tool in tools} >= {"set_status", "book_call"}
    return plain


marked = factory(make)


@factory
def decorated(tools):
    """Make the same."""
    return plain


def broken(tools):
    """Fail to make one."""
    raise LookupError("no model")


class Asking:
    """An agent by the contract that asks before it does anything."""

    framework = name = "asking"

    def check(self, tools):
        """Accept any."""

    @asynccontextmanager
    async def open(self, brief, tools, recorder, limits):
        """Open the session, note it, and note its end."""
        recorder.note(f"opened {len(brief.instructions)} {limits.tool_calls}")
        yield self
        recorder.note("closed")

    async def send(self, turn):
        """Ask for approval, then say what was decided."""
        if isinstance(turn, Approvals):
            return Said(f"{dict(turn.decisions)} {CLAIM}")
        calls = (("a", "set_status", {"ticket_id": "T-1"}), ("b", "resolve", {"x": "resolve"}))
        return NeedsApproval(tuple(ApprovalRequest(*call) for call in calls))


asking = Asking()


def outer():
    """Return an agent that nobody can import."""

    async def inner(message, ctx):
        return CLAIM

    return inner


closure = outer()
