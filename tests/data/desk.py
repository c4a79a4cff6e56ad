"""A tiny suite for tests: a help desk whose tickets must get the right status."""

from typing import Annotated, Any, Literal

from pydantic import Field

from tbadapters.core.grading import EndState, Expectation, GoldenAction, RequiredFact
from tbadapters.core.state import TableRules
from tbadapters.core.suite import Suite, Task, UserBrief, UserFact
from tbadapters.sandboxes.sqlite import Records, reads, sqlite_suite, writes

SCHEMA = """
CREATE TABLE tickets (
  ticket_id TEXT PRIMARY KEY,
  customer TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'hold', 'resolved')),
  note TEXT NOT NULL DEFAULT ''
);
CREATE TABLE calls (
  call_id TEXT PRIMARY KEY,
  ticket_id TEXT NOT NULL REFERENCES tickets (ticket_id),
  day TEXT NOT NULL
);
"""


@reads
async def get_ticket(db: Records, ticket_id: Annotated[str, Field(description="The ticket's id.")]) -> dict[str, Any]:
    """Look a ticket up."""
    return db.get("tickets", ticket_id)


@writes
async def set_status(db: Records, ticket_id: str, status: Literal["open", "hold", "resolved"]) -> dict[str, Any]:
    """Set a ticket's status."""
    db.get("tickets", ticket_id)
    db.update("tickets", ticket_id, status=status)
    return db.get("tickets", ticket_id)


@writes
async def book_call(db: Records, ticket_id: str, day: str) -> dict[str, Any]:
    """Book a call about a ticket."""
    db.get("tickets", ticket_id)
    call_id = db.new_id("CALL")
    db.insert("calls", call_id=call_id, ticket_id=ticket_id, day=day)
    return db.get("calls", call_id)


def _task(number: int) -> Task:
    ticket = f"T-{number}"
    rows = [{"ticket_id": f"T-{n}", "customer": f"C-{n}", "status": "open"} for n in (number, number + 100)]
    return Task(
        id=f"desk/hold/{number}",
        opening=f"Hello, this is customer C-{number}. Please put my ticket {ticket} on hold and book a call.",
        user=UserBrief(
            "wants the ticket on hold and a call",
            (UserFact("the day of the call", "Tuesday suits me.", ("day", "when")),),
            ("resolve",),
        ),
        expectation=Expectation(
            (
                EndState(
                    "held",
                    (
                        GoldenAction("set_status", {"ticket_id": ticket, "status": "hold"}),
                        GoldenAction("book_call", {"ticket_id": ticket, "day": "Tuesday"}),
                    ),
                ),
            ),
            (RequiredFact("the day of the call", ("Tuesday",)),),
        ),
        world={"now": "2026-03-02T09:00:00", "tables": {"tickets": rows}},
        tags=("even" if number % 2 == 0 else "odd",),
        needs_asking=("the day of the call",),
    )


def load(*, size: int = 3) -> Suite:
    """Return the suite with this many tasks."""
    return sqlite_suite(
        name="desk",
        schema=SCHEMA,
        policy="Tickets are put on hold, never resolved, while a call is booked. Ask for the day.",
        tools=[get_ticket, set_status, book_call],
        tasks=tuple(_task(number) for number in range(1, size + 1)),
        rules={"calls": TableRules(natural_key=("ticket_id",), references={"ticket_id": "tickets"})},
    )
