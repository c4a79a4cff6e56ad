"""Tools: accounts and the money on them."""

from typing import Annotated, Any

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import AccountId, CustomerId, TransactionId
from tbadapters.suites.neobank.tools.ledger import book, money, open_account, today


@reads
async def list_accounts(db: Records, customer_id: CustomerId) -> list[dict[str, Any]]:
    """List a customer's accounts with kind, name, balance, arranged overdraft, status and date of opening."""
    db.get("customers", customer_id)
    return db.all("SELECT * FROM accounts WHERE customer_id = ? ORDER BY account_id", customer_id)


@reads
async def list_transactions(db: Records, account_id: AccountId) -> list[dict[str, Any]]:
    """List an account's card payments, withdrawals, direct debits and incoming payments, newest first."""
    db.get("accounts", account_id)
    return db.all("SELECT * FROM transactions WHERE account_id = ? ORDER BY posted_on DESC, transaction_id", account_id)


@writes
async def return_direct_debit(db: Records, transaction_id: TransactionId) -> dict[str, Any]:
    """Return a direct debit: the amount is credited to the account it was taken from."""
    debit = db.get("transactions", transaction_id)
    if debit["kind"] != "direct_debit":
        raise ToolError(f"The transaction {transaction_id} is no direct debit ({debit['kind']}).")
    if debit["status"] != "posted":
        raise ToolError(f"The direct debit {transaction_id} is {debit['status']} and can't be returned.")
    open_account(db, debit["account_id"])
    db.update("transactions", transaction_id, status="returned")
    account = book(db, debit["account_id"], debit["amount"])
    return {"transaction_id": transaction_id, "status": "returned", "balance": account["balance"]}


@writes
async def open_savings_account(
    db: Records,
    customer_id: CustomerId,
    name: Annotated[
        str, Field(min_length=1, max_length=40, description="The account's name, as the customer wants it.")
    ],
) -> dict[str, Any]:
    """Open an empty savings account."""
    db.get("customers", customer_id)
    taken = "SELECT 1 FROM accounts WHERE customer_id = ? AND name = ? AND status = 'open'"
    if db.one(taken, customer_id, name.strip()):
        raise ToolError(f"{customer_id} already has an account named {name.strip()!r}.")
    return db.insert(
        "accounts",
        account_id=db.new_id("ACC"),
        customer_id=customer_id,
        kind="savings",
        name=name.strip(),
        balance=0.0,
        status="open",
        opened_on=today(db),
    )


@writes
async def close_account(db: Records, account_id: AccountId) -> dict[str, Any]:
    """Close an account that holds no money; its cards are blocked. This can't be undone."""
    account = open_account(db, account_id)
    if account["balance"] != 0:
        raise ToolError(f"The balance of {account_id} is {account['balance']:.2f}; it must be 0.00 to be closed.")
    if db.one("SELECT 1 FROM fraud_holds WHERE account_id = ? AND status = 'active'", account_id):
        raise ToolError(f"The account {account_id} has an active fraud hold and can't be closed.")
    db.run(
        "UPDATE cards SET status = 'blocked', frozen_by = NULL, block_reason = 'account_closed'"
        " WHERE account_id = ? AND status NOT IN ('blocked', 'expired')",
        account_id,
    )
    db.update("accounts", account_id, status="closed")
    return {"account_id": account_id, "status": "closed"}


@writes
async def set_overdraft_limit(
    db: Records, account_id: AccountId, limit: Annotated[float, Field(ge=0, description="New limit in euros.")]
) -> dict[str, Any]:
    """Set the arranged overdraft of a current account."""
    account = open_account(db, account_id)
    if account["kind"] != "current":
        raise ToolError(f"{account_id} is a {account['kind']} account: only current accounts have an overdraft.")
    if account["overdraft_limit"] == money(limit):
        raise ToolError(f"The overdraft of {account_id} already is {limit:.2f}.")
    db.update("accounts", account_id, overdraft_limit=money(limit))
    return {"account_id": account_id, "overdraft_limit": money(limit)}
