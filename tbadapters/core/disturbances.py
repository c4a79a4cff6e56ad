"""What disturbed a run and decided no trial by itself: faults that agents got over, waiting, what did not end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tbadapters.core.numbers import counted
from tbadapters.core.records import AttemptRecord


@dataclass(frozen=True, slots=True)
class Disturbances:
    """What disturbed a run.

    Attributes:
        provider_faults: Faults of model endpoints by code, the most frequent first; most are overcome by the agents'
            own clients, the others ended an attempt.
        client_retries: Model requests by which those clients asked again what had failed.
        held_seconds: How long attempts waited in all until their endpoints might be asked; at the same time, mostly.
        abandoned: Attempts whose agent did not end when it was cancelled.
        tasks_left: Tasks that agents left running; they were cancelled when their attempt was over.
        threads_left: Threads of agents' sync code that still worked when their attempt was over.
    """

    provider_faults: dict[str, int]
    client_retries: int
    held_seconds: float
    abandoned: int
    tasks_left: int
    threads_left: int

    @classmethod
    def of(cls, records: Sequence[AttemptRecord]) -> Disturbances:
        """Return what disturbed these attempts."""
        faults: Counter[str] = Counter()
        for record in records:
            faults.update(record.provider_faults)
        return cls(
            provider_faults=dict(faults.most_common()),
            client_retries=sum(record.client_retries for record in records),
            held_seconds=sum(record.seconds.get("held", 0.0) for record in records),
            abandoned=sum(record.abandoned for record in records),
            tasks_left=sum(record.tasks_left for record in records),
            threads_left=sum(record.threads_left for record in records),
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader of the figures should know, a sentence each; none where nothing disturbed the run."""
        found = []
        if self.provider_faults:
            faults = ", ".join(f"{code} x {number:,}" for code, number in self.provider_faults.items())
            found.append(
                f"Model endpoints failed {counted(sum(self.provider_faults.values()), 'time')} ({faults}); the agent's own clients "
                f"asked {counted(self.client_retries, 'time')} again."
            )
        if self.held_seconds >= 1:
            found.append(f"Attempts waited {self.held_seconds:,.0f} s in all until a model endpoint might be asked.")
        if self.abandoned:
            found.append(
                f"Abandoned: {counted(self.abandoned, 'attempt')} whose agent did not end when it was cancelled."
            )
        if self.tasks_left:
            found.append(
                f"{self.tasks_left} tasks that agents left running were cancelled when their attempts were over."
            )
        if self.threads_left:
            found.append(f"{self.threads_left} threads of the agent's sync code could not be stopped and went on.")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return them as JSON-like data."""
        return {
            "provider_faults": self.provider_faults,
            "client_retries": self.client_retries,
            "held_seconds": round(self.held_seconds, 3),
            "abandoned": self.abandoned,
            "tasks_left": self.tasks_left,
            "threads_left": self.threads_left,
        }
