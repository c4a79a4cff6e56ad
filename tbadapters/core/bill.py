"""What trials took: tokens and US dollars of the agent, the simulated user and the judge, each apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

from tbadapters.core.figures import known_cost, total_usage
from tbadapters.core.messages import Usage
from tbadapters.core.records import AttemptRecord


@dataclass(frozen=True, slots=True)
class BillItem:
    """What one of the three took.

    Attributes:
        usage: Tokens.
        cost: US dollars; None where a price or a number of tokens is unknown.
    """

    usage: Usage
    cost: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON-like data."""
        return {"usage": self.usage.to_dict(), "cost": self.cost}


@dataclass(frozen=True, slots=True)
class Bill:
    """What attempts took. No figure counts more than the agent's."""

    agent: BillItem
    user: BillItem
    judge: BillItem

    @classmethod
    def of(cls, records: Sequence[AttemptRecord]) -> Bill:
        """Return the bill of attempts."""
        return cls(
            agent=BillItem(total_usage(records), known_cost(records)),
            user=_item(records, lambda record: (record.user.usage, record.user.cost)),
            judge=_item(records, lambda record: (record.judge.usage, record.judge.cost)),
        )

    @property
    def others(self) -> dict[str, BillItem]:
        """Those besides the agent who took anything, or may have."""
        both = {"user": self.user, "judge": self.judge}
        return {name: item for name, item in both.items() if item.usage.total_tokens or item.cost is None or item.cost}


def _item(records: Sequence[AttemptRecord], part: Callable[[AttemptRecord], tuple[Usage, float | None]]) -> BillItem:
    parts = [part(record) for record in records]
    return BillItem(sum((usage for usage, _ in parts), Usage()), _total(cost for _, cost in parts))


def _total(costs: Iterable[float | None]) -> float | None:
    amounts = list(costs)
    known = [cost for cost in amounts if cost is not None]
    return fsum(known) if len(known) == len(amounts) else None
