"""The worker threads of a loop: they know for which attempt they work, and none keeps the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, ParamSpec, TypeVar

from tbadapters.core.abandoned import attempts_thread
from tbadapters.core.context import RunningAttempt, running

P = ParamSpec("P")
T = TypeVar("T")


class _Work(NamedTuple):
    future: Future[Any]
    function: Callable[[], Any]
    attempt: RunningAttempt | None


class Workers(ThreadPoolExecutor):
    """A thread pool whose threads are daemons.

    ``ThreadPoolExecutor`` is its base because asyncio takes no other as a loop's default executor; of its threads,
    which Python waits for at its end however long they take, none is ever started.

    Args:
        size: How many threads it has at most; each is started when it is needed.
    """

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._size = size
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._started = 0
        self._closed = False
        self._starting = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have a function called in a thread, counted to the attempt in whose context this is said."""
        future: Future[T] = Future()
        with self._starting:
            if self._closed:
                raise RuntimeError("These worker threads were shut down.")
            self._waiting.put(_Work(future, lambda: fn(*args, **kwargs), running.get()))
            if not self._idle.acquire(blocking=False) and self._started < self._size:
                self._started += 1
                threading.Thread(target=self._work, name=f"tbadapters_{self._started}", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002  (as the base class is called)
        """Let each thread end after its work; nobody waits for one that does not."""
        with self._starting:
            self._closed = True
            while cancel_futures:
                try:
                    work = self._waiting.get_nowait()
                except Empty:
                    break
                if work is not None:
                    work.future.cancel()
            for _ in range(self._started):
                self._waiting.put(None)

    def _work(self) -> None:
        while (work := self._waiting.get()) is not None:
            if work.future.set_running_or_notify_cancel():
                _do(work)
            del work  # what a call held is not held until the next one
            self._idle.release()


def _do(work: _Work) -> None:
    with attempts_thread(work.attempt):
        try:
            result = work.function()
        except BaseException as error:  # noqa: BLE001  (whatever it is belongs to who waits)
            work.future.set_exception(error)
        else:
            work.future.set_result(result)
