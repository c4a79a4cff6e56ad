"""An account is held: the hold's reason, the flagged payment and what the customer says of it decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.world import Client, Row

NAME = "hold_review"
_OPENINGS = (
    "Hello, nothing can be paid from my account any more. Please lift whatever you put on it. {who}",
    "{who} My account is on hold and I have bills to pay. Please release it.",
    "Hi, your app says that there is a hold on my account. I want it gone. {who}",
)
_MINE = ("Yes, that was me, it's a sofa that I bought.", "Yes, I made that payment myself.")
_NOT_MINE = ("No, that wasn't me.", "No, I don't know anything about that payment.")
_ASKS_MINE = (
    "did you make",
    "was it you",
    "was that you",
    "recognise",
    "recognize",
    "made by you",
    "you make the",
    "you made",
    "do you know",
    "flagged",
    "yours",
    "authorise",
    "authorize",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: made by the customer (0), not made (1), made and large (2), legal order (3), takeover (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    reason = {3: "legal_order", 4: "account_takeover"}.get(variation, "unusual_payment")
    amount = world.cents(1700, 4200) if variation == 2 else world.cents(350, 1400)
    payment = world.payment(rng.choice(client.cards), rng.choice(people.SHOPS), amount, 1, status="pending")
    hold = world.hold(client.current, reason, payment if reason == "unusual_payment" else None)
    world.hold(client.savings, "account_takeover", status="released", placed_on=world.day(300))
    made = variation != 1
    draft.meet(client)
    answer = rng.choice(_MINE if made else _NOT_MINE)
    draft.do("list_fraud_holds", customer_id=client.id)
    draft.verify(client)
    if reason == "unusual_payment":
        draft.ask("payment made", answer, *_ASKS_MINE)
        draft.do("list_transactions", account_id=client.current["account_id"])
    _decide(draft, client, hold, payment, made=made)
    goal = "Get the hold off the account, if the bank does that."
    declines = ("replacement", "close", "dispute", "complaint", *(("block",) if made else ()))
    return draft.task(_OPENINGS, goal=goal, declines=declines)


def _decide(draft: Draft, client: Client, hold: Row, payment: Row, *, made: bool) -> None:
    record = hold["hold_id"]
    if hold["reason"] == "legal_order":
        draft.refuse(client, "fraud", "legal_order", record, "Asked for the release of a legal hold.")
    elif hold["reason"] == "account_takeover":
        why = "Asks for the release of a takeover hold."
        draft.escalate(client, "fraud", "fraud", record, why, priority="high")
    elif not made:
        draft.do("block_card", card_id=payment["card_id"], reason="fraud")
        draft.escalate(client, "fraud", "fraud", record, "The flagged payment is not theirs.", priority="high")
    elif payment["amount"] <= RULES.hold_release_max:
        draft.do("release_fraud_hold", hold_id=record)
    else:
        draft.escalate(client, "fraud", "fraud", record, "Made the flagged payment, which is a large one.")


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 8, a hold."""
    reading = Reading(task)
    (hold,) = reading.mine("fraud_holds", status="active")
    key = hold["hold_id"]
    if not reading.identified(category="fraud"):
        return reading.outcome()
    if hold["reason"] == "legal_order":
        reading.refuse("fraud", "legal_order", key)
        return reading.outcome()
    if hold["reason"] == "account_takeover":
        reading.escalate("fraud", "fraud", key, "high")
        return reading.outcome()
    payment = reading.row("transactions", transaction_id=hold["transaction_id"])
    if reading.say("payment made").startswith("No"):
        reading.block(payment["card_id"], "fraud")
        reading.escalate("fraud", "fraud", key, "high")
    elif payment["amount"] > RULES.hold_release_max:
        reading.escalate("fraud", "fraud", key)
    else:
        reading.set("fraud_holds", key, status="released")
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
