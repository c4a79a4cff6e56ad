"""What a run tells while it goes on, for progress displays and ``on_event``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tbadapters.core.records import AttemptRecord


@dataclass(frozen=True, slots=True)
class RunPlanned:
    """Before the first trial.

    Attributes:
        run: The agent's name.
        suite: The suite's name.
        tasks: How many tasks.
        planned: How many trials in all.
        done: How many of them a resumed run has already.
        estimated_cost: US dollars, or None where no price is known.
        estimate_basis: What the estimate rests on, in one sentence.
    """

    run: str
    suite: str
    tasks: int
    planned: int
    done: int
    estimated_cost: float | None
    estimate_basis: str


@dataclass(frozen=True, slots=True)
class TrialStarted:
    """A trial got its concurrency slot."""

    run: str
    task: str
    index: int


@dataclass(frozen=True, slots=True)
class AttemptFaulted:
    """An attempt ended in a fault of the infrastructure; another one may follow."""

    run: str
    record: AttemptRecord


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial is committed to the run folder; its record has a verdict, or the attempts have run out."""

    run: str
    record: AttemptRecord


@dataclass(frozen=True, slots=True)
class PaceChanged:
    """The run goes on faster or slower.

    Attributes:
        slots: How many trials may be under way.
        endpoints: Model endpoints that refused requests, with the requests a second that they are asked now.
    """

    slots: int
    endpoints: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """Something blocked the event loop, and with it all trials, and has ended.

    Attributes:
        seconds: How long.
        where: The line of code.
        task: The name of the asyncio task; an attempt's tells its trial.
    """

    seconds: float
    where: str
    task: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """After the last trial; ``stopped`` says why a run ended early, None for a whole one."""

    run: str
    stopped: str | None


Event = RunPlanned | TrialStarted | AttemptFaulted | TrialEnded | PaceChanged | LoopBlocked | RunEnded
OnEvent = Callable[[Event], None]
