"""Limits of a trial, deadlines of its phases, and retries of infrastructure faults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import inf
from typing import Any

from tbadapters.core.errors import InvalidOption

_COUNTS = frozenset({"model_requests", "tool_calls", "user_turns", "tokens"})
_DEADLINES = frozenset({"grace", "setup_seconds", "user_seconds", "grading_seconds"})


def is_whole(value: Any, least: int) -> bool:
    """Say whether a value is a whole number of at least ``least``; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_finite(value: Any, *, above: float) -> bool:
    """Say whether a value is a finite number above ``above``; True and False are none, nor is text."""
    return isinstance(value, int | float) and not isinstance(value, bool) and above < value < inf


def is_share(value: Any) -> bool:
    """Say whether a value is a number from 0 to 1."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one trial may use; counted by the core, the same for every framework. None: no limit.

    Attributes:
        model_requests: Requests to models, sub-agents included.
        tool_calls: Executed tool calls.
        user_turns: Messages of the user, the opening included.
        tokens: Input and output tokens of all model requests.
        cost: US dollars, where the models' prices are known.
        seconds: Wall time of an attempt from opening its session to its last answer, but for the simulated user's.
        grace: Seconds that a cancelled agent has to end; after it the attempt is abandoned.
        setup_seconds: Deadline for opening the sandbox and the session.
        user_seconds: Deadline for one answer of the simulated user.
        grading_seconds: Deadline for the final state and the verdict.
    """

    model_requests: int | None = 50
    tool_calls: int | None = 100
    user_turns: int | None = 12
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = 300.0
    grace: float = 5.0
    setup_seconds: float = 60.0
    user_seconds: float = 120.0
    grading_seconds: float = 60.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            whole = item.name in _COUNTS
            fits = is_whole(value, 1) if whole else is_finite(value, above=0)
            if value is None and item.name in _DEADLINES:
                raise InvalidOption(
                    f"Limits({item.name}=None): seconds above 0 are needed, this can't be without limit."
                )
            if value is not None and not fits:
                kind = "a whole number of at least 1" if whole else "a number above 0"
                mend = "." if item.name in _DEADLINES else ", or None for no limit."
                raise InvalidOption(f"Limits({item.name}={value!r}): must be {kind}{mend}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How faults of the infrastructure are retried. An outcome is never retried.

    Attributes:
        attempts: Attempts a trial has at most, the first included.
        wait_initial: Seconds before the second attempt; doubles with each further one, with jitter.
        wait_max: Seconds at most, unless the provider asks for more.
        retry_after_max: Seconds that a provider may ask to wait (``Retry-After``); a trial of which it asks for more is
            left without a verdict, for a resume to run.
        budget: Attempts beyond the first that the whole run may make; None: no limit.
    """

    attempts: int = 3
    wait_initial: float = 0.5
    wait_max: float = 30.0
    retry_after_max: float = 300.0
    budget: int | None = None

    def __post_init__(self) -> None:
        if not is_whole(self.attempts, 1):
            raise InvalidOption(f"Retries(attempts={self.attempts!r}): a whole number of at least 1 is needed.")
        for name in ("wait_initial", "wait_max", "retry_after_max"):
            value = getattr(self, name)
            if value != 0 and not is_finite(value, above=0):
                raise InvalidOption(f"Retries({name}={value!r}): seconds are needed; they can't be negative.")
        if self.budget is not None and not is_whole(self.budget, 0):
            raise InvalidOption(f"Retries(budget={self.budget!r}): a whole number from 0, or None for no limit.")
