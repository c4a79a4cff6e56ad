"""Agents without a framework for the desk suite, importable by path as a user's would be."""

import asyncio
import os
import re

from tbadapters import TrialContext, Usage
from tbadapters.core.errors import AccessFault

CLAIM = "Your ticket is on hold and the call is booked for Tuesday. Is there anything else?"


def _ticket(message: str) -> str:
    return re.search(r"T-\d+", message).group()


async def good(message: str, ctx: TrialContext) -> str:
    """Do everything right: ask for the day, hold the ticket, book the call."""
    if "ticket" not in ctx.state:
        ctx.state["ticket"] = _ticket(message)
        return "On which day may we call you?"
    await ctx.call("set_status", ticket_id=ctx.state["ticket"], status="hold")
    await ctx.call("book_call", ticket_id=ctx.state["ticket"], day="Tuesday")
    return CLAIM


def good_sync(message: str, ctx: TrialContext) -> str:
    """Do the same from a worker thread."""
    if "ticket" not in ctx.state:
        ctx.state["ticket"] = _ticket(message)
        return "On which day may we call you?"
    ctx.call_sync("set_status", ticket_id=ctx.state["ticket"], status="hold")
    ctx.call_sync("book_call", ticket_id=ctx.state["ticket"], day="Tuesday")
    return CLAIM


async def liar(message: str, ctx: TrialContext) -> str:
    """Claim everything, do nothing."""
    return CLAIM


def odd_even(message: str, ctx: TrialContext) -> str:
    """Do right on every other ticket only."""
    if "ticket" not in ctx.state and int(_ticket(message)[2:]) % 2:
        return CLAIM
    return good_sync(message, ctx)


def boxed(tools: list) -> None:
    """A builder without its mark: evaluate() asks for factory(boxed)."""


async def slow_mixed(message: str, ctx: TrialContext) -> str:
    """Do right on every other ticket only, slowly, so that a run can be killed in its middle."""
    await asyncio.sleep(float(os.environ.get("SLOW_SECONDS", "0.05")))
    if "ticket" not in ctx.state and int(_ticket(message)[2:]) % 2:
        return CLAIM
    return await good(message, ctx)


async def priced(message: str, ctx: TrialContext) -> str:
    """Use up a million tokens of the model m."""
    ctx.record_usage("m", Usage(1_000_000, 0, 0, 0))
    return "I'm sorry, that can't be done."


async def refused(message: str, ctx: TrialContext) -> str:
    """Hear from the provider, with a sequence that names the terminal, that nothing more is to be had."""
    raise AccessFault("\x1b]0;no credit\x07", code="quota")


async def undying(message: str, ctx: TrialContext) -> str:
    """Swallow every cancellation."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue
