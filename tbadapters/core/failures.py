"""How failed trials look: the failure signature of a run (definitions of the ThinkingBox article)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tbadapters.core.records import AttemptRecord, FaultRecord
from tbadapters.core.state import EffectKind

KINDS: tuple[EffectKind, ...] = ("wrong_value", "unexpected", "missing")
MOST_FREQUENT = 10
_NOTE = 300  # characters; the whole message is with the trials


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """``count`` over ``of``; None of nothing."""
        return self.count / self.of if self.of else None

    def to_dict(self) -> dict[str, Any]:
        """Return the share as JSON-like data."""
        return {"count": self.count, "of": self.of, "share": self.share}


@dataclass(frozen=True, slots=True)
class FrequentEffect:
    """Failed trials that have an effect of this class in this place, with one of them.

    ``column`` is None where a whole row is meant; ``task`` and ``index`` name the first such trial.
    """

    table: str
    column: str | None
    kind: EffectKind
    trials: int
    task: str
    index: int

    def to_dict(self) -> dict[str, Any]:
        """Return the triple as JSON-like data."""
        example = {"task": self.task, "index": self.index}
        return {
            "table": self.table,
            "column": self.column,
            "class": self.kind,
            "trials": self.trials,
            "example": example,
        }


@dataclass(frozen=True, slots=True)
class FrequentFault:
    """Attempts that the same fault ended, whoever owns it, with one of them."""

    fault: FaultRecord
    attempts: int
    task: str
    index: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fault as JSON-like data."""
        example = {"task": self.task, "index": self.index}
        return {**self.fault.to_dict(), "attempts": self.attempts, "example": example}


def frequent_faults(records: Iterable[AttemptRecord]) -> tuple[FrequentFault, ...]:
    """Return what ended attempts, by owner, code and message, the most frequent first; at most ten."""
    found: dict[FaultRecord, list[AttemptRecord]] = {}
    for record in records:
        if record.fault is not None:
            found.setdefault(record.fault, []).append(record)
    ordered = sorted(found.items(), key=lambda item: -len(item[1]))
    return tuple(
        FrequentFault(fault, len(ended), ended[0].task, ended[0].index) for fault, ended in ordered[:MOST_FREQUENT]
    )


def broken_agent(records: Sequence[AttemptRecord]) -> tuple[str, ...]:
    """Return a note on a run whose every verdict is the same error of the agent; nothing on any other.

    Such a run measured how the agent was wired, and its 0 % would be read as what it can do.
    """
    ends = {(r.end_reason, r.fault) for r in records if r.passed is not None}
    if len(ends) != 1:
        return ()
    reason, fault = ends.pop()
    if reason != "agent_error" or fault is None:
        return ()
    told = f"Every trial ended in the same error of the agent; the figures say no more than that: {fault.message}"
    return (told[:_NOTE],)


@dataclass(frozen=True, slots=True)
class FailureSignature:
    """How the failed trials of a run look.

    Attributes:
        looked_clean: Failed trials that ended by themselves, called a writing tool, and whose last call was no error.
        classes: Of those that looked clean: how many have an effect of a class. The classes overlap.
        all_classes: The same of all failed trials.
        without_effects: Failed trials whose records are right: only what was said was wrong, or how it ended.
        end_reasons: How the failed trials ended, most frequent first.
        most_frequent: The most frequent (table, column, class) triples.
    """

    looked_clean: Share
    classes: dict[EffectKind, Share]
    all_classes: dict[EffectKind, Share]
    without_effects: Share
    end_reasons: dict[str, int]
    most_frequent: tuple[FrequentEffect, ...]

    @property
    def failed(self) -> int:
        """The failed trials."""
        return self.looked_clean.of

    def to_dict(self) -> dict[str, Any]:
        """Return the signature as JSON-like data."""
        return {
            "failed": self.failed,
            "looked_clean": self.looked_clean.to_dict(),
            "classes_of_looked_clean": {kind: share.to_dict() for kind, share in self.classes.items()},
            "classes_of_failed": {kind: share.to_dict() for kind, share in self.all_classes.items()},
            "without_effects": self.without_effects.to_dict(),
            "end_reasons": self.end_reasons,
            "most_frequent": [triple.to_dict() for triple in self.most_frequent],
        }


def failure_signature(records: Sequence[AttemptRecord]) -> FailureSignature:
    """Return the failure signature of the failed ones among the deciding attempts of a run."""
    failed = [r for r in records if r.passed is False]
    clean = [r for r in failed if r.looked_clean]
    return FailureSignature(
        looked_clean=Share(len(clean), len(failed)),
        classes=_classes(clean),
        all_classes=_classes(failed),
        without_effects=Share(sum(1 for r in failed if not _kinds(r)), len(failed)),
        end_reasons=dict(Counter(sorted(r.end_reason for r in failed)).most_common()),
        most_frequent=_most_frequent(failed),
    )


def _classes(records: Sequence[AttemptRecord]) -> dict[EffectKind, Share]:
    return {kind: Share(sum(1 for r in records if kind in _kinds(r)), len(records)) for kind in KINDS}


def _kinds(record: AttemptRecord) -> set[EffectKind]:
    return {effect.kind for effect in record.verdict.effects} if record.verdict else set()


def _most_frequent(failed: Sequence[AttemptRecord]) -> tuple[FrequentEffect, ...]:
    first: dict[tuple[str, str | None, EffectKind], AttemptRecord] = {}
    trials: Counter[tuple[str, str | None, EffectKind]] = Counter()
    for record in failed:
        effects = record.verdict.effects if record.verdict else ()
        # A trial counts once a triple, however many rows it got wrong; in the order of its effects.
        for triple in dict.fromkeys((e.table, e.column, e.kind) for e in effects):
            trials[triple] += 1
            first.setdefault(triple, record)
    order = sorted(trials, key=lambda triple: (-trials[triple], triple[0], triple[1] or "", triple[2]))
    return tuple(
        FrequentEffect(*triple, trials[triple], first[triple].task, first[triple].index)
        for triple in order[:MOST_FREQUENT]
    )
