"""Another attempt after a while: exponential backoff with jitter, a provider's ``Retry-After`` before it.

Made of tenacity: stamina, which is nicer to use, can be switched off for the whole process, and a program that does so
for its own calls must not switch off a run's attempts with them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from tenacity import (
    AsyncRetrying,
    AttemptManager,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random,
)

from tbadapters.core.limits import Retries


class TryAgain(Exception):
    """Raised inside an attempt's block to have another one made; none is left when it escapes.

    Attributes:
        retry_after: Seconds that the provider asked to wait, or None.
    """

    def __init__(self, retry_after: float | None) -> None:
        super().__init__()
        self.retry_after = retry_after


def attempts(retries: Retries) -> AsyncIterator[AttemptManager]:
    """Yield the attempts that may be made, each a context: its block raises ``TryAgain`` to have another one."""
    doubling = wait_exponential(multiplier=retries.wait_initial)
    jitter = wait_random(0, min(1.0, retries.wait_initial))

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, TryAgain) else None
        return asked if asked is not None else min(doubling(state) + jitter(state), retries.wait_max)

    return aiter(
        AsyncRetrying(
            sleep=anyio.sleep,
            retry=retry_if_exception_type(TryAgain),
            stop=stop_after_attempt(retries.attempts),
            wait=wait,
            reraise=True,
        )
    )
