"""Another attempt after a while: stamina's exponential backoff with jitter, a provider's ``Retry-After`` before it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache

import stamina
from stamina.instrumentation import RetryDetails, RetryHook, get_on_retry_hooks, set_on_retry_hooks

from tbadapters.core.limits import Retries


class TryAgain(Exception):
    """Raised inside an attempt's block to have another one made; none is left when it escapes.

    Attributes:
        retry_after: Seconds that the provider asked to wait, or None.
    """

    def __init__(self, retry_after: float | None) -> None:
        super().__init__()
        self.retry_after = retry_after


def attempts(retries: Retries) -> AsyncIterator[stamina.Attempt]:
    """Yield the attempts that may be made, each a context: its block raises ``TryAgain`` to have another one."""
    _keep_from_logs()

    def wait(error: Exception) -> bool | float:
        if not isinstance(error, TryAgain):
            return False
        return True if error.retry_after is None else min(error.retry_after, retries.wait_max)

    return aiter(
        stamina.retry_context(
            on=wait,
            attempts=retries.attempts,
            timeout=None,
            wait_initial=retries.wait_initial,
            wait_max=retries.wait_max,
            wait_jitter=min(1.0, retries.wait_initial),
        )
    )


@cache
def _keep_from_logs() -> None:
    """Keep our retries from stamina's hooks, which log every retry of the process: the run's events tell of ours."""
    set_on_retry_hooks([_of_others(hook) for hook in get_on_retry_hooks()])


def _of_others(hook: RetryHook) -> RetryHook:
    def told(details: RetryDetails) -> object:
        return None if isinstance(details.caused_by, TryAgain) else hook(details)

    return told  # type: ignore[return-value]  # a hook may also return a context manager, which is passed on
