"""The way from a worker thread to what runs on the event loop: a sync tool waits in its thread for the loop's answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tbadapters.core.errors import AgentFault

T = TypeVar("T")
BLOCKED_SECONDS = 15.0  # that a sync tool call waits for a sign of life from the event loop


class ThreadDoor:
    """Leads to the event loop on whose thread it was made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()

    def call(self, name: str, made: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await a coroutine on the loop and return its result; ``name`` is the tool's.

        Raises:
            RuntimeError: called on the event loop's own thread, where it would wait for itself for ever.
            AgentFault: the loop is blocked, as by a graph that async code invokes synchronously: it would wait for us.
        """
        if threading.get_ident() == self._loop_thread:
            raise RuntimeError(f"{name} was called synchronously on the event loop's thread: use `await` there.")
        awake = threading.Event()
        self._loop.call_soon_threadsafe(awake.set)
        if not awake.wait(BLOCKED_SECONDS):
            raise AgentFault(
                f"{name} waited {BLOCKED_SECONDS:g} s for the event loop, which something blocks: where an async agent "
                "invokes a graph or an agent synchronously, it must await it (`await graph.ainvoke(...)`).",
                code="blocked_loop",
            )
        return asyncio.run_coroutine_threadsafe(made(), self._loop).result()
