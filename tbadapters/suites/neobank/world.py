"""The records of one task: a customer with accounts, cards and a history, and others beside them.

A workflow draws what decides its task; this module draws everything around it, so that selecting the right record
matters: other cards, similar payments, older tickets, a customer of the same last name.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.rules import TIERS

Row = dict[str, Any]
_EPOCH = date(2026, 2, 2)


@dataclass(frozen=True, slots=True)
class Client:
    """The customer who writes: their row, accounts and cards (two debit cards and a virtual one)."""

    row: Row
    current: Row
    savings: Row
    cards: tuple[Row, Row, Row]

    @property
    def id(self) -> str:
        """The customer number."""
        return str(self.row["customer_id"])

    @property
    def name(self) -> str:
        """The full name."""
        return str(self.row["full_name"])


class World:
    """Draws records and keeps them; ids and names are unique in it.

    Args:
        rng: Where everything is drawn from.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.today = _EPOCH + timedelta(days=rng.randrange(140))
        self.tables: dict[str, list[Row]] = {}
        self._ids = iter(rng.sample(range(20_000, 100_000), 400))
        # No first name occurs twice: a namesake never bears the whole name.
        self._names = iter(zip(rng.sample(people.FIRST_NAMES, 30), rng.sample(people.LAST_NAMES, 30), strict=True))
        self._digits = iter(rng.sample(range(1000, 10_000), 60))

    def to_dict(self) -> dict[str, Any]:
        """Return the world in the form that the backend takes."""
        return {"now": f"{self.today.isoformat()}T09:30:00", "tables": self.tables}

    def day(self, ago: int) -> str:
        """Return the date so many days ago (negative: ahead)."""
        return (self.today - timedelta(days=ago)).isoformat()

    def cents(self, low: float, high: float) -> float:
        """Return an amount between two others that is not a round one."""
        amount = round(self.rng.uniform(low, high), 2)
        return amount if amount % 1 else min(round(amount + 0.35, 2), high)

    def tens(self, low: int, high: int, step: int = 10) -> int:
        """Return a round amount between two others."""
        return self.rng.randrange(low, high + 1, step)

    def add(self, table: str, prefix: str, key: str, **columns: Any) -> Row:
        """Add a row with a new id and return it."""
        row = {key: f"{prefix}-{next(self._ids)}", **columns}
        self.tables.setdefault(table, []).append(row)
        return row

    def customer(self, *, last_name: str | None = None, **given: Any) -> Row:
        """Add a customer."""
        rng = self.rng
        first, last = next(self._names)
        last = last_name or last
        street, postcode, city, country = rng.choice(people.PLACES)
        columns = {
            "full_name": f"{first} {last}",
            "date_of_birth": date(rng.randrange(1951, 2001), rng.randrange(1, 13), rng.randrange(1, 29)).isoformat(),
            "email": f"{first}.{last}.{next(self._ids)}@example.com".lower(),
            "phone": f"+49151{rng.randrange(10**7, 10**8)}",
            "phone_changed_on": None,
            "street": f"{street} {rng.randrange(1, 140)}",
            "postcode": postcode,
            "city": city,
            "country": country,
            "address_changed_on": None,
            "tier": rng.choice(TIERS),
            "kyc_status": "verified",
            "authorised_person": None,
            "joined_on": self.day(rng.randrange(800, 2400)),
        }
        return self.add("customers", "CUS", "customer_id", **{**columns, **given})

    def account(self, owner: Row, kind: str = "current", **given: Any) -> Row:
        """Add an account of a customer."""
        columns = {
            "customer_id": owner["customer_id"],
            "kind": kind,
            "name": "Current account" if kind == "current" else self.rng.choice(people.SAVINGS_NAMES),
            "balance": self.cents(900, 3800),
            "overdraft_limit": 200.0 if kind == "current" else 0.0,
            "status": "open",
            "opened_on": self.day(self.rng.randrange(400, 790)),
            "matures_on": None,
        }
        return self.add("accounts", "ACC", "account_id", **{**columns, **given})

    def card(self, account: Row, kind: str = "debit", **given: Any) -> Row:
        """Add a card on an account."""
        columns = {
            "customer_id": account["customer_id"],
            "account_id": account["account_id"],
            "kind": kind,
            "last4": str(next(self._digits)),
            "status": "active",
            "frozen_by": None,
            "block_reason": None,
            "spend_limit": 500.0,
            "atm_limit": 200.0,
            "abroad_use": 0,
            "expires_on": self.day(-self.rng.randrange(300, 1200)),
            "replaces_card_id": None,
            "delivery": None,
        }
        return self.add("cards", "CRD", "card_id", **{**columns, **given})

    def payment(self, card: Row, counterparty: str, amount: float, ago: int, **given: Any) -> Row:
        """Add a card payment (or a withdrawal)."""
        columns = {
            "account_id": card["account_id"],
            "card_id": card["card_id"],
            "kind": "card_payment",
            "counterparty": counterparty,
            "amount": amount,
            "posted_on": self.day(ago),
            "status": "posted",
        }
        return self.add("transactions", "TXN", "transaction_id", **{**columns, **given})

    def booking(self, account: Row, kind: str, counterparty: str, amount: float, ago: int) -> Row:
        """Add a direct debit or an incoming payment."""
        return self.add(
            "transactions",
            "TXN",
            "transaction_id",
            account_id=account["account_id"],
            card_id=None,
            kind=kind,
            counterparty=counterparty,
            amount=amount,
            posted_on=self.day(ago),
            status="posted",
        )

    def fee(self, account: Row, kind: str, amount: float, ago: int, **given: Any) -> Row:
        """Add a fee."""
        columns = {
            "account_id": account["account_id"],
            "card_id": None,
            "kind": kind,
            "amount": amount,
            "charged_on": self.day(ago),
            "status": "charged",
            "waived_on": None,
            "waiver_reason": None,
        }
        return self.add("fees", "FEE", "fee_id", **{**columns, **given})

    def payee(self, owner: Row, name: str | None = None, ago: int = 200) -> Row:
        """Add a saved payee."""
        return self.add(
            "payees",
            "PAY",
            "payee_id",
            customer_id=owner["customer_id"],
            name=name or " ".join(next(self._names)),
            iban=f"DE{self.rng.randrange(10**19, 10**20)}",
            added_on=self.day(ago),
        )

    def transfer(self, account: Row, payee: Row, amount: float, ago: int, status: str = "completed") -> Row:
        """Add a transfer to a payee."""
        return self.add(
            "transfers",
            "TRF",
            "transfer_id",
            from_account_id=account["account_id"],
            to_account_id=None,
            payee_id=payee["payee_id"],
            amount=amount,
            reference=self.rng.choice(("Thanks", "Invoice", "Share of the trip", "Deposit", "")),
            status=status,
            execute_on=self.day(ago),
            recall_reason=None,
        )

    def standing_order(self, account: Row, payee: Row, amount: float, due_in: int, status: str = "active") -> Row:
        """Add a standing order."""
        return self.add(
            "standing_orders",
            "STO",
            "order_id",
            account_id=account["account_id"],
            payee_id=payee["payee_id"],
            amount=amount,
            next_on=self.day(-due_in),
            status=status,
        )

    def dispute(self, transaction: Row, **given: Any) -> Row:
        """Add a dispute about a transaction."""
        columns = {
            "transaction_id": transaction["transaction_id"],
            "reason": "unrecognised",
            "amount": transaction["amount"],
            "statement": "The customer does not know the merchant.",
            "status": "open",
            "provisional_credit": 0.0,
            "opened_on": self.day(6),
        }
        return self.add("disputes", "DSP", "dispute_id", **{**columns, **given})

    def hold(self, account: Row, reason: str, transaction: Row | None = None, **given: Any) -> Row:
        """Add a fraud hold on an account."""
        columns = {
            "account_id": account["account_id"],
            "reason": reason,
            "transaction_id": transaction["transaction_id"] if transaction else None,
            "status": "active",
            "placed_on": self.day(1),
        }
        return self.add("fraud_holds", "HLD", "hold_id", **{**columns, **given})

    def ticket(self, owner: Row, ago: int, **given: Any) -> Row:
        """Add a ticket; a closed answer about a transfer unless told otherwise."""
        columns = {
            "customer_id": owner["customer_id"],
            "category": "transfers",
            "status": "closed",
            "resolution": "answered",
            "reason": None,
            "team": None,
            "priority": None,
            "related_record": owner["customer_id"],
            "summary": "Asked how long a transfer takes; answered.",
            "opened_on": self.day(ago),
        }
        return self.add("tickets", "TKT", "ticket_id", **{**columns, **given})

    def client(self, *, current: Row | None = None, **given: Any) -> Client:
        """Add the customer who writes, with what every customer has, and a namesake.

        Args:
            current: Columns of the current account.
            given: Columns of the customer.
        """
        owner = self.customer(**given)
        account = self.account(owner, **(current or {}))
        savings = self.account(owner, "savings")
        cards = (self.card(account), self.card(account), self.card(account, "virtual"))
        for number in range(3):
            self.payment(self.rng.choice(cards), self.rng.choice(people.DAILY), self.cents(4, 60), 3 + 9 * number)
        self.ticket(owner, self.rng.randrange(60, 300))
        self.payee(owner, ago=self.rng.randrange(90, 400))
        namesake = self.account(self.customer(last_name=owner["full_name"].split(" ", 1)[1]))
        self.payment(self.card(namesake), self.rng.choice(people.DAILY), self.cents(4, 60), 5)
        return Client(owner, account, savings, cards)

    def others(self, count: int = 2) -> None:
        """Add customers who have nothing to do with the task, with at least one record of each kind."""
        for number in range(count):
            owner = self.customer()
            account = self.account(owner)
            self.account(owner, "savings")
            first, second = self.card(account), self.card(account, status="frozen", frozen_by="customer")
            bought = self.payment(first, self.rng.choice(people.SHOPS), self.cents(30, 90), 12)
            self.payment(second, self.rng.choice(people.SHOPS), self.cents(30, 90), 40)
            self.booking(account, "direct_debit", self.rng.choice(people.COMPANIES), self.cents(20, 60), 15)
            self.fee(account, "overdraft", 9.5, 20 + number)
            payee = self.payee(owner)
            self.transfer(account, payee, self.cents(40, 200), -4, "scheduled")
            self.transfer(account, payee, self.cents(40, 200), 6)
            self.standing_order(account, payee, float(self.tens(100, 600)), 12)
            self.dispute(bought)
            if number == 0:
                self.hold(account, "account_takeover")
            complaint = {"category": "complaints", "status": "open", "resolution": "escalated", "team": "complaints"}
            self.ticket(owner, 5, **complaint, priority="normal", summary="Complains about the waiting time.")
