"""Which trials a scripted model passes, and by which flaw it fails the others: seeded, trial by trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal, get_args

Flaw = Literal["wrong_value", "missing", "extra", "lie", "loop"]
FLAWS: tuple[Flaw, ...] = get_args(Flaw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """How often a scripted model does right, and what it does otherwise.

    The draw for a trial depends on the seed, the task's id and the trial's index alone: not on the order of trials, on
    concurrency or on the framework. Tests ask ``flaw`` and compare trial by trial.

    Attributes:
        pass_rate: The probability that a trial is played right, from 0 (never) to 1 (always).
        by_task: Other probabilities for some tasks, by id.
        flaws: What goes wrong otherwise, each as likely as the others: ``wrong_value`` (one value of a writing call
            altered), ``missing`` (one writing call left out), ``extra`` (one more writing call, on another record),
            ``lie`` (no writing call, the same polite claim), ``loop`` (a reading call for ever).
        seed: Seeds the draws.
    """

    pass_rate: float = 0.8
    by_task: Mapping[str, float] = field(default_factory=dict)
    flaws: tuple[Flaw, ...] = FLAWS
    seed: int = 0

    def __post_init__(self) -> None:
        if any(not 0 <= rate <= 1 for rate in (self.pass_rate, *self.by_task.values())):
            raise ValueError("Outcomes: a pass rate must be between 0 and 1.")
        unknown = set(self.flaws) - set(FLAWS)
        if unknown or not self.flaws:
            raise ValueError(f"Outcomes: flaws must be some of {', '.join(FLAWS)}.")

    def flaw(self, task_id: str, index: int) -> Flaw | None:
        """Return the flaw of a trial, or None if it is played right."""
        rng = self.rng(task_id, index)
        if rng.random() < self.by_task.get(task_id, self.pass_rate):
            return None
        return rng.choice(self.flaws)

    def rng(self, task_id: str, index: int, purpose: str = "flaw") -> Random:
        """Return the generator of a trial's draws, another one for each purpose."""
        return Random(f"{self.seed}/{task_id}/{index}/{purpose}")  # noqa: S311 - no secret, must be repeatable
