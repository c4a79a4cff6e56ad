"""Tools: fraud holds."""

from typing import Annotated, Any, Literal

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import AccountId, CustomerId, HoldId
from tbadapters.suites.neobank.tools.ledger import open_account, today


@reads
async def list_fraud_holds(db: Records, customer_id: CustomerId) -> list[dict[str, Any]]:
    """List the fraud holds on a customer's accounts, with reason, flagged transaction and status."""
    db.get("customers", customer_id)
    return db.all(
        "SELECT h.* FROM fraud_holds h JOIN accounts a USING (account_id) WHERE a.customer_id = ? ORDER BY h.hold_id",
        customer_id,
    )


@writes
async def place_fraud_hold(
    db: Records,
    account_id: AccountId,
    reason: Annotated[Literal["account_takeover"], Field(description="Why the account is held.")],
) -> dict[str, Any]:
    """Hold an account: nothing can be paid from it until the hold is released."""
    open_account(db, account_id)
    if db.one("SELECT 1 FROM fraud_holds WHERE account_id = ? AND status = 'active'", account_id):
        raise ToolError(f"The account {account_id} has an active hold already.")
    return db.insert(
        "fraud_holds",
        hold_id=db.new_id("HLD"),
        account_id=account_id,
        reason=reason,
        status="active",
        placed_on=today(db),
    )


@writes
async def release_fraud_hold(db: Records, hold_id: HoldId) -> dict[str, Any]:
    """Release an active fraud hold: the account works again."""
    hold = db.get("fraud_holds", hold_id)
    if hold["status"] != "active":
        raise ToolError(f"The hold {hold_id} is {hold['status']} already.")
    db.update("fraud_holds", hold_id, status="released")
    return {"hold_id": hold_id, "status": "released"}
