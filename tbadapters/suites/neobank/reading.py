"""A finished task as a capable reader sees it: the records and the user's words, without the golden actions.

The workflows' rules decide by it what the policy makes of a task. It shares the policy's numbers with what builds
the task, and nothing else: amounts, dates and cards are read out of what the user says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import MONTHS

Row = Mapping[str, Any]
_AMOUNT = re.compile(r"(\d+(?:\.\d\d)?) euros")
_DAY = re.compile(rf"(\d{{1,2}}) ({'|'.join(MONTHS)})(?: (\d{{4}}))?")


class Reading:
    """A task's records and the user's words; collects what the policy decides, and gives it as an outcome."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.today = date.fromisoformat(task.world["now"][:10])
        self.customer = next(
            row
            for row in self.rows("customers")
            if row["customer_id"] in task.opening or row["full_name"] in task.opening
        )
        self.id = str(self.customer["customer_id"])
        self._end = "settled"
        self._rows: dict[str, dict[str, dict[str, Any]]] = {}
        self._created: list[tuple[str, Mapping[str, Any]]] = []

    def rows(self, table: str, **where: Any) -> list[Row]:
        """Return a table's rows that have these values."""
        rows: list[Row] = self.task.world["tables"].get(table, [])
        return [row for row in rows if all(row[name] == value for name, value in where.items())]

    def row(self, table: str, **where: Any) -> Row:
        """Return the only row that has these values."""
        (row,) = self.rows(table, **where)
        return row

    def mine(self, table: str, **where: Any) -> list[Row]:
        """Return the customer's rows of a table: their own, or those of their accounts."""
        column = {"transfers": "from_account_id"}.get(table, "account_id")
        if table in {"accounts", "cards", "payees", "tickets"}:
            return self.rows(table, customer_id=self.id, **where)
        accounts = {row["account_id"] for row in self.rows("accounts", customer_id=self.id)}
        return [row for row in self.rows(table, **where) if row[column] in accounts]

    def say(self, topic: str) -> str:
        """Return what the user answers on a topic."""
        return next(fact.answer for fact in self.task.user.facts if fact.topic == topic)

    def amount(self, text: str) -> float:
        """Return the amount named in a text."""
        (amount,) = _AMOUNT.findall(text)
        return float(amount)

    def day(self, text: str) -> str:
        """Return the date named in a text as ISO; without a year the one nearest to today's date."""
        ((number, month, year),) = _DAY.findall(text)
        years = [int(year)] if year else [self.today.year - 1, self.today.year, self.today.year + 1]
        days = [date(y, MONTHS.index(month) + 1, int(number)) for y in years]
        return min(days, key=lambda day: abs((day - self.today).days)).isoformat()

    def named(self, rows: list[Row], text: str) -> Row:
        """Return the only row whose digits, amount, date or other party a text names, all of those that it names."""
        amounts = [float(found) for found in _AMOUNT.findall(text)]
        days = [self.day(text)] if _DAY.search(text) else []
        fitting = [row for row in rows if all(any(v == a for v in row.values()) for a in (*amounts, *days))]
        words = ("last4", "counterparty", "name")
        parties = [row for row in fitting if any(str(row[word]) in text for word in words if word in row)]
        (row,) = parties or fitting
        return row

    def age(self, day: str) -> int:
        """Return how many days ago a date was."""
        return (self.today - date.fromisoformat(day)).days

    def ahead(self, days: int) -> str:
        """Return the date so many days ahead."""
        return (self.today + timedelta(days=days)).isoformat()

    # What the policy decides.

    def set(self, table: str, key: str, **columns: Any) -> None:
        """Note that a record gets these values."""
        self._rows.setdefault(table, {}).setdefault(key, {}).update(columns)

    def create(self, table: str, **columns: Any) -> None:
        """Note that a record with these values comes to be."""
        self._created.append((table, columns))

    def book(self, account_id: str, amount: float) -> None:
        """Note that an account's balance changes by an amount."""
        account = {**self.row("accounts", account_id=account_id), **self._rows.get("accounts", {}).get(account_id, {})}
        self.set("accounts", account_id, balance=round(account["balance"] + amount, 2))

    def identified(self, *, category: str) -> bool:
        """Note the identity check, and the refusal if it fails; return whether it passes."""
        stated = self.day(self.say("date of birth"))
        passed = stated == str(self.customer["date_of_birth"])
        self.create(
            "identity_checks",
            customer_id=self.id,
            stated_value=stated,
            result="passed" if passed else "failed",
            checked_on=self.today.isoformat(),
        )
        if not passed:
            self.refuse(category, "identity_not_confirmed", self.id)
        return passed

    def refuse(self, category: str, reason: str, record: str) -> None:
        """Note a refusal."""
        self._end = "refused"
        self._ticket(category, record, status="closed", resolution="refused", reason=reason, team=None, priority=None)

    def escalate(self, category: str, team: str, record: str, priority: str = "normal") -> None:
        """Note an escalation."""
        self._end = "escalated"
        self._ticket(category, record, status="open", resolution="escalated", reason=None, team=team, priority=priority)

    def block(self, card_id: str, reason: str) -> None:
        """Note that a card is blocked."""
        self.set("cards", card_id, status="blocked", block_reason=reason, frozen_by=None)

    def replace(self, card: Row, category: str) -> None:
        """Note the replacement of a card, or what is done instead."""
        moved = self.customer["address_changed_on"]
        if moved is not None and self.age(moved) <= RULES.address_quiet_days:
            self.escalate(category, "card_security", card["card_id"], "high")
            return
        kept = ("customer_id", "account_id", "kind", "spend_limit", "atm_limit")
        self.create(
            "cards",
            **{name: card[name] for name in kept},
            replaces_card_id=card["card_id"],
            status="shipped",
            delivery={"premium": "express"}.get(self.customer["tier"], "standard"),
            frozen_by=None,
            block_reason=None,
        )

    def outcome(self) -> Outcome:
        """Return what was noted."""
        return Outcome(self._end, rows=self._rows, created=tuple(self._created))

    def _ticket(self, category: str, record: str, **columns: Any) -> None:
        self.create("tickets", customer_id=self.id, category=category, related_record=record, **columns)
