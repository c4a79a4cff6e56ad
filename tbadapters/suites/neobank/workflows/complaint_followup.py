"""A complaint waits for its answer: how long it has waited decides."""

from datetime import date, timedelta
from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES

NAME = "complaint_followup"
_OPENINGS = (
    "Hello, I complained to you a while ago and have heard nothing since. When do I get an answer? {who}",
    "{who} What about my complaint? I'm still waiting.",
    "Hi, I'd like to know how my complaint is coming along. {who}",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: still in time (0), late (1), very late (2)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    ago = rng.randrange(*((2, 20), (23, 34), (37, 80))[variation])
    complaint = {"category": "complaints", "resolution": "escalated", "team": "complaints", "priority": "normal"}
    ticket = world.ticket(client.row, ago, **complaint, status="open", summary="Complains about the opening hours.")
    world.ticket(client.row, ago + 150, **complaint, status="closed", summary="Complained about a letter; answered.")
    draft.meet(client)
    draft.do("list_tickets", customer_id=client.id)
    if ticket["opened_on"] >= world.day(RULES.answer_days):
        due = date.fromisoformat(ticket["opened_on"]) + timedelta(days=RULES.answer_days)
        draft.tell_day("the day by which the answer is due", due.isoformat())
    else:
        priority = "urgent" if ticket["opened_on"] < world.day(RULES.overdue_days) else "high"
        draft.do("raise_ticket_priority", ticket_id=ticket["ticket_id"], priority=priority)
        draft.do("add_ticket_note", ticket_id=ticket["ticket_id"], body="The customer asked when the answer comes.")
    goal = "Learn when the complaint is answered, and have it speeded up if it is late."
    return draft.task(_OPENINGS, goal=goal, declines=("new complaint", "another complaint", "close"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 11."""
    reading = Reading(task)
    (ticket,) = reading.mine("tickets", status="open", team="complaints")
    age, key = reading.age(ticket["opened_on"]), ticket["ticket_id"]
    if age > RULES.answer_days:
        reading.set("tickets", key, priority="urgent" if age > RULES.overdue_days else "high")
        reading.create("ticket_notes", ticket_id=key)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 3, build, rule)
