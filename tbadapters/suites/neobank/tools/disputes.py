"""Tools: disputed payments."""

from typing import Annotated, Any

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import Amount, CustomerId, DisputeId, DisputeReason, TransactionId
from tbadapters.suites.neobank.tools.ledger import book, money, today

_DISPUTABLE = {
    "unrecognised": "card_payment",
    "not_received": "card_payment",
    "wrong_amount": "card_payment",
    "atm_shortfall": "atm_withdrawal",
}


@reads
async def list_disputes(db: Records, customer_id: CustomerId) -> list[dict[str, Any]]:
    """List the disputes about a customer's transactions, with status and provisional credit."""
    db.get("customers", customer_id)
    return db.all(
        "SELECT d.*, t.counterparty, t.account_id FROM disputes d JOIN transactions t USING (transaction_id)"
        " JOIN accounts a USING (account_id) WHERE a.customer_id = ? ORDER BY d.dispute_id",
        customer_id,
    )


@writes
async def open_dispute(
    db: Records,
    *,
    transaction_id: TransactionId,
    reason: DisputeReason,
    amount: Amount,
    statement: Annotated[str, Field(min_length=1, description="What the customer says, in your own words.")],
) -> dict[str, Any]:
    """Open a dispute about a posted card payment or withdrawal, over all or a part of its amount."""
    transaction = db.get("transactions", transaction_id)
    if transaction["kind"] != _DISPUTABLE[reason]:
        raise ToolError(f"A {transaction['kind']} can't be disputed as {reason}.")
    if transaction["status"] != "posted":
        raise ToolError(f"The transaction {transaction_id} is {transaction['status']} and can't be disputed.")
    if money(amount) > transaction["amount"]:
        raise ToolError(f"The transaction {transaction_id} is only {transaction['amount']:.2f}.")
    if db.one("SELECT 1 FROM disputes WHERE transaction_id = ? AND status = 'open'", transaction_id):
        raise ToolError(f"There is an open dispute about {transaction_id} already.")
    return db.insert(
        "disputes",
        dispute_id=db.new_id("DSP"),
        transaction_id=transaction_id,
        reason=reason,
        amount=money(amount),
        statement=statement,
        status="open",
        opened_on=today(db),
    )


@writes
async def give_provisional_credit(db: Records, dispute_id: DisputeId) -> dict[str, Any]:
    """Credit the disputed amount to the customer's account until the dispute is decided."""
    dispute = _open_dispute(db, dispute_id)
    if dispute["provisional_credit"]:
        raise ToolError(f"Provisional credit for {dispute_id} was given already.")
    db.update("disputes", dispute_id, provisional_credit=dispute["amount"])
    account_id = db.get("transactions", dispute["transaction_id"])["account_id"]
    balance = book(db, account_id, dispute["amount"])["balance"]
    return {"dispute_id": dispute_id, "provisional_credit": dispute["amount"], "balance": balance}


@writes
async def withdraw_dispute(db: Records, dispute_id: DisputeId) -> dict[str, Any]:
    """Withdraw an open dispute; provisional credit is taken back from the account."""
    dispute = _open_dispute(db, dispute_id)
    taken_back = dispute["provisional_credit"]
    db.update("disputes", dispute_id, status="withdrawn", provisional_credit=0)
    if taken_back:
        book(db, db.get("transactions", dispute["transaction_id"])["account_id"], -taken_back)
    return {"dispute_id": dispute_id, "status": "withdrawn", "taken_back": taken_back}


def _open_dispute(db: Records, dispute_id: str) -> dict[str, Any]:
    dispute = db.get("disputes", dispute_id)
    if dispute["status"] != "open":
        raise ToolError(f"The dispute {dispute_id} is not open ({dispute['status']}).")
    return dispute
