"""A thread for code that may never end: it can't be cancelled, and must not keep the process from ending."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tbadapters.core.abandoned import attempts_thread
from tbadapters.core.context import running


async def run_in_daemon_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call a sync function in a thread of its own, with the current context, and return what it returns.

    A thread can't be cancelled. When the caller is, it waits for the thread all the same, so that who waits for the
    caller learns whether the thread has ended; a second cancellation leaves the thread behind.

    Raises:
        BaseException: whatever the function raised.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def call() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            with attempts_thread(attempt):
                outcome = (context.run(function, *args), None)
        except BaseException as error:  # noqa: BLE001  (SystemExit too belongs to who waits)
            outcome = (None, error)
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(_tell, ended, outcome)

    context, attempt = contextvars.copy_context(), running.get()
    threading.Thread(target=call, name=f"tbadapters {getattr(function, '__name__', '')}", daemon=True).start()
    try:
        result, error = await asyncio.shield(ended)
    except asyncio.CancelledError:
        await asyncio.wait({ended})
        raise
    if error is not None:
        raise error
    return result


def _tell(ended: asyncio.Future[tuple[Any, BaseException | None]], outcome: tuple[Any, BaseException | None]) -> None:
    if not ended.done():
        ended.set_result(outcome)
