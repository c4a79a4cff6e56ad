"""Tools: fees."""

from typing import Any

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import AccountId, FeeId, WaiverReason
from tbadapters.suites.neobank.tools.ledger import book, today


@reads
async def list_fees(db: Records, account_id: AccountId) -> list[dict[str, Any]]:
    """List the fees charged to an account, waived ones too, newest first."""
    db.get("accounts", account_id)
    return db.all("SELECT * FROM fees WHERE account_id = ? ORDER BY charged_on DESC, fee_id", account_id)


@writes
async def waive_fee(db: Records, fee_id: FeeId, reason: WaiverReason) -> dict[str, Any]:
    """Waive a fee: its amount is credited to the account."""
    fee = db.get("fees", fee_id)
    if fee["status"] == "waived":
        raise ToolError(f"The fee {fee_id} was waived already, on {fee['waived_on']}.")
    db.update("fees", fee_id, status="waived", waived_on=today(db), waiver_reason=reason)
    balance = book(db, fee["account_id"], fee["amount"])["balance"]
    return {"fee_id": fee_id, "credited": fee["amount"], "balance": balance}
