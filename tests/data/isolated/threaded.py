"""An agent whose module starts a thread when it is imported: where it runs, nothing can be forked safely."""

import threading

threading.Thread(target=threading.Event().wait, daemon=True).start()
_seen = []


async def agent(message, ctx):
    """Do everything right, in a process that nobody used before."""
    _seen.append(1)
    await ctx.call("set_status", ticket_id="T-1", status="hold")
    await ctx.call("book_call", ticket_id="T-1", day="Tuesday")
    return f"Your ticket is on hold and the call is booked for Tuesday ({len(_seen)})."
