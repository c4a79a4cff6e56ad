"""A tiny suite whose calls are not safe to repeat: a till that charges customers."""

from typing import Any

from tbadapters import Suite, Task, ToolError, TrialContext, UserBrief
from tbadapters.core.grading import EndState, Expectation, GoldenAction
from tbadapters.core.state import TableRules
from tbadapters.sandboxes.sqlite import Records, reads, sqlite_suite, writes

SCHEMA = """
CREATE TABLE customers (customer_id TEXT PRIMARY KEY, tier TEXT NOT NULL);
CREATE TABLE charges (charge_id TEXT PRIMARY KEY, customer_id TEXT NOT NULL REFERENCES customers (customer_id),
                      amount INTEGER NOT NULL);
"""


@reads
async def list_charges(db: Records, customer_id: str) -> list[dict[str, Any]]:
    """List what a customer was charged."""
    return db.all("SELECT * FROM charges WHERE customer_id = ?", customer_id)


@writes
async def charge(db: Records, customer_id: str, amount: int) -> dict[str, Any]:
    """Charge a customer."""
    charge_id = db.new_id("CH")
    db.insert("charges", charge_id=charge_id, customer_id=customer_id, amount=amount)
    return db.get("charges", charge_id)


@writes
async def set_tier(db: Records, customer_id: str, tier: str) -> dict[str, Any]:
    """Set a customer's tier; done twice it is the same."""
    db.update("customers", customer_id, tier=tier)
    return db.get("customers", customer_id)


def _task(number: int) -> Task:
    customer = f"C-{number}"
    actions = (
        GoldenAction("charge", {"customer_id": customer, "amount": 25}),
        GoldenAction("set_tier", {"customer_id": customer, "tier": "gold"}),
    )
    return Task(
        id=f"till/upgrade/{number}",
        opening=f"This is {customer}. Charge me 25 and make me gold.",
        user=UserBrief("wants to be gold"),
        expectation=Expectation((EndState("gold", actions),)),
        world={"now": "2026-03-02T09:00:00", "tables": {"customers": [{"customer_id": customer, "tier": "silver"}]}},
    )


def load(*, size: int = 4) -> Suite:
    """Return the suite with this many tasks."""
    return sqlite_suite(
        name="till",
        schema=SCHEMA,
        policy="Gold costs 25.",
        tools=[list_charges, charge, set_tier],
        tasks=tuple(_task(number) for number in range(1, size + 1)),
        rules={"charges": TableRules(natural_key=("customer_id", "amount"))},
    )


def _customer(message: str) -> str:
    return message.split()[2].rstrip(".")


async def careful(message: str, ctx: TrialContext) -> str:
    """Look before charging again, and repeat only what is the same when repeated."""
    customer = _customer(message)
    for _ in range(20):
        try:
            if not await ctx.call("list_charges", customer_id=customer):
                await ctx.call("charge", customer_id=customer, amount=25)
            await ctx.call("set_tier", customer_id=customer, tier="gold")
        except ToolError:
            continue
        return "Done: you are gold. Is there anything else?"
    return "I'm sorry, that can't be done."


async def blind(message: str, ctx: TrialContext) -> str:
    """Repeat whatever failed until it works."""
    customer = _customer(message)
    calls = [("charge", {"amount": 25}), ("set_tier", {"tier": "gold"})]
    while calls:
        name, arguments = calls[0]
        try:
            await ctx.call(name, customer_id=customer, **arguments)
        except ToolError:
            continue
        calls.pop(0)
    return "Done: you are gold. Is there anything else?"


async def giving_up(message: str, ctx: TrialContext) -> str:
    """Give up at the first error."""
    customer = _customer(message)
    try:
        await ctx.call("charge", customer_id=customer, amount=25)
        await ctx.call("set_tier", customer_id=customer, tier="gold")
    except ToolError:
        return "I'm sorry, that can't be done."
    return "Done: you are gold. Is there anything else?"
