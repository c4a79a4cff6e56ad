"""Tools: payees, transfers and standing orders."""

from typing import Annotated, Any

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import (
    AccountId,
    Amount,
    CustomerId,
    OrderId,
    PayeeId,
    RecallReason,
    TransferId,
)
from tbadapters.suites.neobank.tools.ledger import book, money, open_account, pay_out, today

_TRANSFER = "SELECT t.*, p.name AS payee_name FROM transfers t LEFT JOIN payees p USING (payee_id)"
_ORDER = "SELECT s.*, p.name AS payee_name FROM standing_orders s JOIN payees p USING (payee_id)"


@reads
async def list_payees(db: Records, customer_id: CustomerId) -> list[dict[str, Any]]:
    """List the payees that a customer has saved, with IBAN and the day on which each was added."""
    db.get("customers", customer_id)
    return db.all("SELECT * FROM payees WHERE customer_id = ? ORDER BY payee_id", customer_id)


@reads
async def list_transfers(db: Records, account_id: AccountId) -> list[dict[str, Any]]:
    """List the transfers from an account: scheduled, held, completed and cancelled ones."""
    db.get("accounts", account_id)
    return db.all(f"{_TRANSFER} WHERE t.from_account_id = ? ORDER BY t.execute_on DESC, t.transfer_id", account_id)


@writes
async def pay_payee(
    db: Records,
    *,
    account_id: AccountId,
    payee_id: PayeeId,
    amount: Amount,
    reference: Annotated[str, Field(description="Text for the payee.")] = "",
) -> dict[str, Any]:
    """Pay a saved payee from an account, at once."""
    account, payee = open_account(db, account_id), db.get("payees", payee_id)
    if account["customer_id"] != payee["customer_id"]:
        raise ToolError(f"{payee_id} is not on the payee list of {account['customer_id']}.")
    if account["kind"] != "current":
        raise ToolError(f"{account_id} is a {account['kind']} account: payees are paid from a current account.")
    balance = pay_out(db, account_id, money(amount))["balance"]
    transfer = _transferred(db, account_id, amount, reference, payee_id=payee_id)
    return {"transfer_id": transfer["transfer_id"], "status": "completed", "balance": balance}


@writes
async def move_money(
    db: Records,
    *,
    from_account_id: AccountId,
    to_account_id: AccountId,
    amount: Amount,
    reference: Annotated[str, Field(description="Text for the statement.")] = "",
) -> dict[str, Any]:
    """Move money between two accounts of the same customer, at once."""
    source, target = open_account(db, from_account_id), open_account(db, to_account_id)
    if from_account_id == to_account_id or source["customer_id"] != target["customer_id"]:
        raise ToolError("Money is moved between two different accounts of the same customer.")
    balance = pay_out(db, from_account_id, money(amount))["balance"]
    book(db, to_account_id, money(amount))
    transfer = _transferred(db, from_account_id, amount, reference, to_account_id=to_account_id)
    return {"transfer_id": transfer["transfer_id"], "status": "completed", "balance": balance}


@writes
async def cancel_transfer(db: Records, transfer_id: TransferId) -> dict[str, Any]:
    """Cancel a transfer that is scheduled and has not been executed."""
    transfer = db.get("transfers", transfer_id)
    if transfer["status"] != "scheduled":
        raise ToolError(f"The transfer {transfer_id} is {transfer['status']}; only a scheduled one can be cancelled.")
    db.update("transfers", transfer_id, status="cancelled")
    return {"transfer_id": transfer_id, "status": "cancelled"}


@writes
async def request_recall(db: Records, transfer_id: TransferId, reason: RecallReason) -> dict[str, Any]:
    """Ask the payee's bank to send a completed transfer back."""
    transfer = db.get("transfers", transfer_id)
    if transfer["status"] != "completed" or transfer["payee_id"] is None:
        raise ToolError(f"Only a completed transfer to a payee can be recalled; {transfer_id} is {transfer['status']}.")
    db.update("transfers", transfer_id, status="recall_requested", recall_reason=reason)
    return {"transfer_id": transfer_id, "status": "recall_requested"}


@reads
async def list_standing_orders(db: Records, account_id: AccountId) -> list[dict[str, Any]]:
    """List the standing orders on an account, with payee, monthly amount and next execution."""
    db.get("accounts", account_id)
    return db.all(f"{_ORDER} WHERE s.account_id = ? ORDER BY s.order_id", account_id)


@writes
async def change_standing_order(db: Records, order_id: OrderId, amount: Amount) -> dict[str, Any]:
    """Change the monthly amount of an active standing order."""
    order = _active_order(db, order_id)
    if order["amount"] == money(amount):
        raise ToolError(f"The amount of {order_id} already is {amount:.2f}.")
    db.update("standing_orders", order_id, amount=money(amount))
    return {"order_id": order_id, "amount": money(amount), "next_on": order["next_on"]}


@writes
async def cancel_standing_order(db: Records, order_id: OrderId) -> dict[str, Any]:
    """Cancel an active standing order."""
    _active_order(db, order_id)
    db.update("standing_orders", order_id, status="cancelled")
    return {"order_id": order_id, "status": "cancelled"}


def _active_order(db: Records, order_id: str) -> dict[str, Any]:
    order = db.get("standing_orders", order_id)
    if order["status"] != "active":
        raise ToolError(f"The standing order {order_id} is {order['status']}.")
    return order


def _transferred(db: Records, account_id: str, amount: float, reference: str, **to: str) -> dict[str, Any]:
    return db.insert(
        "transfers",
        transfer_id=db.new_id("TRF"),
        from_account_id=account_id,
        **to,
        amount=money(amount),
        reference=reference,
        status="completed",
        execute_on=today(db),
    )
