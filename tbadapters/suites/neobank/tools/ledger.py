"""What several tools do to accounts, and the errors that they have in common."""

from typing import Any

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records


def today(db: Records) -> str:
    """Return the day of the frozen clock, YYYY-MM-DD."""
    return db.now[:10]


def money(amount: float) -> float:
    """Return an amount with two decimals.

    Raises:
        ToolError: it has more of them.
    """
    rounded = round(amount, 2)
    if abs(rounded - amount) > 1e-9:
        raise ToolError(f"{amount} has more than two decimals.")
    return rounded


def book(db: Records, account_id: str, amount: float) -> dict[str, Any]:
    """Add ``amount`` (negative: take it away) to an account's balance and return the account."""
    account = db.get("accounts", account_id)
    return db.update("accounts", account_id, balance=round(account["balance"] + amount, 2))


def open_account(db: Records, account_id: str) -> dict[str, Any]:
    """Return an account.

    Raises:
        ToolError: there is none, or it is closed.
    """
    account = db.get("accounts", account_id)
    if account["status"] != "open":
        raise ToolError(f"The account {account_id} is closed.")
    return account


def pay_out(db: Records, account_id: str, amount: float) -> dict[str, Any]:
    """Take money from an open account that covers it and return the account.

    Raises:
        ToolError: the account is closed, held, or does not cover the amount.
    """
    account = open_account(db, account_id)
    if db.one("SELECT 1 FROM fraud_holds WHERE account_id = ? AND status = 'active'", account_id):
        raise ToolError(f"The account {account_id} has an active fraud hold: nothing can be paid from it.")
    available = round(account["balance"] + account["overdraft_limit"], 2)
    if amount > available:
        raise ToolError(f"The account {account_id} has {available:.2f} available, not {amount:.2f}.")
    return book(db, account_id, -amount)
