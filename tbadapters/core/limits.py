"""Limits of a trial, deadlines of its phases, and retries of infrastructure faults."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tbadapters.core.errors import InvalidOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one trial may use; counted by the core, the same for every framework. None: no limit.

    Attributes:
        model_requests: Requests to models, sub-agents included.
        tool_calls: Executed tool calls.
        user_turns: Messages of the user, the opening included.
        tokens: Input and output tokens of all model requests.
        cost: US dollars, where the models' prices are known.
        seconds: Wall time of an attempt from opening its session to its last answer.
        grace: Seconds that a cancelled agent has to end; after it the attempt is abandoned.
        setup_seconds: Deadline for opening the sandbox and the session.
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
    grading_seconds: float = 60.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value is not None and value <= 0:
                raise InvalidOption(f"Limits({item.name}={value}): must be above 0, or None for no limit.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How faults of the infrastructure are retried. An outcome is never retried.

    Attributes:
        attempts: Attempts a trial has at most, the first included.
        wait_initial: Seconds before the second attempt; doubles with each further one, with jitter.
        wait_max: Seconds at most.
        budget: Attempts beyond the first that the whole run may make; None: no limit.
    """

    attempts: int = 3
    wait_initial: float = 0.5
    wait_max: float = 30.0
    budget: int | None = None

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidOption(f"Retries(attempts={self.attempts}): at least 1 attempt is needed.")
        if self.wait_initial < 0 or self.wait_max < 0:
            raise InvalidOption("Retries: waits can't be negative.")
