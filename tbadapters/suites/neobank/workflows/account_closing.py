"""An account should be closed: nothing may hang on it, and money that is left moves first."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.world import Client, Row

NAME = "account_closing"
_CLOSED_NAME = "Household account"
_OPENINGS = (
    "Hello, I don't need my household account any more, please close it. {who}",
    "{who} Please close the account that is named Household account.",
    "Hi, we have split up, so the household account can go. Close it for me, please. {who}",
)
_ASKS_TARGET = (
    "which account",
    "what account",
    "where should",
    "where would",
    "where do you want",
    "remaining",
    "balance to",
    "money to",
    "transferred to",
    "moved to",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: empty (0), money left (1), a standing order (2), a transfer scheduled (3), overdrawn (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    balance = (0.0, world.cents(40, 600), 0.0, world.cents(40, 600), -world.cents(10, 150))[variation]
    closing = world.account(client.row, name=_CLOSED_NAME, balance=balance)
    payee = world.payee(client.row)
    world.card(closing)
    world.standing_order(closing, payee, 45.0, 9, "active" if variation == 2 else "cancelled")
    world.transfer(closing, payee, 30.0, -3 if variation == 3 else 12, "scheduled" if variation == 3 else "completed")
    world.standing_order(client.current, payee, 60.0, 10)
    target = rng.choice((client.current, client.savings))
    draft.meet(client)
    draft.verify(client)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_transfers", account_id=closing["account_id"])
    draft.do("list_standing_orders", account_id=closing["account_id"])
    words = "my current account" if target is client.current else f"my savings account, {target['name']}"
    add = draft.ask if variation == 1 else draft.know
    add("where the money goes", f"Move what is left to {words}.", *_ASKS_TARGET)
    _decide(draft, client, closing, target)
    goal = "Have the household account closed, and only that one."
    return draft.task(_OPENINGS, goal=goal, declines=("complaint", "dispute", "savings", "replacement", "cancel"))


def _decide(draft: Draft, client: Client, closing: Row, target: Row) -> None:
    tables, record = draft.world.tables, closing["account_id"]
    waiting = [
        row
        for row in tables["transfers"]
        if row["from_account_id"] == record and row["status"] in {"scheduled", "held"}
    ]
    orders = [row for row in tables["standing_orders"] if row["account_id"] == record and row["status"] == "active"]
    if closing["balance"] < 0:
        draft.refuse(client, "accounts", "overdrawn", record, "The account is overdrawn and can't be closed.")
    elif waiting:
        draft.refuse(client, "accounts", "transfers_pending", record, "A transfer from the account is still waiting.")
    elif orders:
        draft.refuse(client, "accounts", "standing_order_active", record, "A standing order is still active.")
    else:
        if closing["balance"]:
            ids = {"from_account_id": record, "to_account_id": target["account_id"]}
            draft.do("move_money", **ids, amount=closing["balance"], reference="Closing balance")
        draft.do("close_account", account_id=record)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 10, closing."""
    reading = Reading(task)
    closing = next(row for row in reading.mine("accounts") if row["name"] == _CLOSED_NAME)
    key = closing["account_id"]
    if not reading.identified(category="accounts"):
        return reading.outcome()
    if closing["balance"] < 0:
        reading.refuse("accounts", "overdrawn", key)
    elif any(row["status"] in {"scheduled", "held"} for row in reading.rows("transfers", from_account_id=key)):
        reading.refuse("accounts", "transfers_pending", key)
    elif reading.rows("standing_orders", account_id=key, status="active"):
        reading.refuse("accounts", "standing_order_active", key)
    else:
        left = closing["balance"]
        if left:
            words = reading.say("where the money goes")
            kind = "savings" if "savings" in words else "current"
            target = next(row for row in reading.mine("accounts", kind=kind) if row["name"] != _CLOSED_NAME)
            ids = {"from_account_id": key, "to_account_id": target["account_id"]}
            reading.create("transfers", **ids, amount=left, status="completed")
            reading.book(target["account_id"], left)
            reading.book(key, -left)
        reading.set("accounts", key, status="closed")
        for card in reading.rows("cards", account_id=key):
            reading.block(card["card_id"], "account_closed")
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
