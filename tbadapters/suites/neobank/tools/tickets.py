"""Tools: tickets, by which a request is refused or handed over."""

from typing import Annotated, Any, Literal

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.sandboxes.sqlite import Records, reads, writes
from tbadapters.suites.neobank.tools.arguments import (
    Category,
    CustomerId,
    Priority,
    RefusalReason,
    RelatedRecord,
    Summary,
    Team,
    TicketId,
)
from tbadapters.suites.neobank.tools.ledger import today

# What a ticket can be about: prefix of the id -> how the record is found, together with its customer.
_OWNERS = {
    "CUS": "SELECT customer_id FROM customers WHERE customer_id = ?",
    "ACC": "SELECT customer_id FROM accounts WHERE account_id = ?",
    "CRD": "SELECT customer_id FROM cards WHERE card_id = ?",
    "TXN": "SELECT customer_id FROM transactions JOIN accounts USING (account_id) WHERE transaction_id = ?",
    "FEE": "SELECT customer_id FROM fees JOIN accounts USING (account_id) WHERE fee_id = ?",
    "PAY": "SELECT customer_id FROM payees WHERE payee_id = ?",
    "TRF": "SELECT customer_id FROM transfers JOIN accounts ON account_id = from_account_id WHERE transfer_id = ?",
    "STO": "SELECT customer_id FROM standing_orders JOIN accounts USING (account_id) WHERE order_id = ?",
    "DSP": "SELECT customer_id FROM disputes JOIN transactions USING (transaction_id) JOIN accounts USING (account_id)"
    " WHERE dispute_id = ?",
    "HLD": "SELECT customer_id FROM fraud_holds JOIN accounts USING (account_id) WHERE hold_id = ?",
}


@reads
async def list_tickets(db: Records, customer_id: CustomerId) -> list[dict[str, Any]]:
    """List a customer's tickets, newest first, each with its notes."""
    db.get("customers", customer_id)
    tickets = db.all("SELECT * FROM tickets WHERE customer_id = ? ORDER BY opened_on DESC, ticket_id", customer_id)
    notes = "SELECT body, written_on FROM ticket_notes WHERE ticket_id = ? ORDER BY note_id"
    return [{**ticket, "notes": db.all(notes, ticket["ticket_id"])} for ticket in tickets]


@writes
async def record_refusal(
    db: Records,
    *,
    customer_id: CustomerId,
    category: Category,
    reason: RefusalReason,
    related_record: RelatedRecord,
    summary: Summary,
) -> dict[str, Any]:
    """Record that a request was refused, and why, in a closed ticket."""
    return _ticket(
        db,
        customer_id,
        related_record,
        category=category,
        status="closed",
        resolution="refused",
        reason=reason,
        summary=summary,
    )


@writes
async def escalate(
    db: Records,
    *,
    customer_id: CustomerId,
    category: Category,
    team: Team,
    priority: Priority,
    related_record: RelatedRecord,
    summary: Summary,
) -> dict[str, Any]:
    """Hand a request over to another team in an open ticket."""
    return _ticket(
        db,
        customer_id,
        related_record,
        category=category,
        status="open",
        resolution="escalated",
        team=team,
        priority=priority,
        summary=summary,
    )


@writes
async def raise_ticket_priority(
    db: Records,
    ticket_id: TicketId,
    priority: Annotated[Literal["high", "urgent"], Field(description="The new priority.")],
) -> dict[str, Any]:
    """Raise the priority of an open ticket."""
    ticket = db.get("tickets", ticket_id)
    if ticket["status"] != "open":
        raise ToolError(f"The ticket {ticket_id} is {ticket['status']}.")
    if priority == ticket["priority"] or ticket["priority"] == "urgent":
        raise ToolError(f"The priority of {ticket_id} already is {ticket['priority']}.")
    db.update("tickets", ticket_id, priority=priority)
    return {"ticket_id": ticket_id, "priority": priority}


@writes
async def add_ticket_note(
    db: Records, ticket_id: TicketId, body: Annotated[str, Field(min_length=1, description="The note's text.")]
) -> dict[str, Any]:
    """Add a note to a ticket."""
    db.get("tickets", ticket_id)
    note = db.insert("ticket_notes", note_id=db.new_id("NTE"), ticket_id=ticket_id, body=body, written_on=today(db))
    return {"note_id": note["note_id"], "ticket_id": ticket_id}


def _ticket(db: Records, customer_id: str, related_record: str, **columns: Any) -> dict[str, Any]:
    db.get("customers", customer_id)
    query = _OWNERS.get(related_record[:3])
    owner = db.one(query, related_record) if query else None
    if owner is None:
        raise ToolError(f"There is no record {related_record!r} that a ticket can be about.")
    if owner["customer_id"] != customer_id:
        raise ToolError(f"The record {related_record!r} is not one of {customer_id}.")
    ticket = db.insert(
        "tickets",
        ticket_id=db.new_id("TKT"),
        customer_id=customer_id,
        related_record=related_record,
        opened_on=today(db),
        **columns,
    )
    return {"ticket_id": ticket["ticket_id"], "status": ticket["status"]}
