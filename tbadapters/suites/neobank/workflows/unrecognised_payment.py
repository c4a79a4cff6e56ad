"""A card payment that the customer does not recognise: block, replace, dispute; credit small ones."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import ASKS_PAYMENT, euros, short_day

NAME = "unrecognised_payment"
_OPENINGS = (
    "Hello, there is a card payment on my account that I did not make. {who}",
    "{who} Somebody has paid with my card, and it wasn't me!",
    "Hi, I was going through my statement and found a payment that I don't know at all. {who}",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: small (0), large (1), too old (2), still pending (3), small just after a move (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    moved = world.day(rng.randrange(1, 13)) if variation == 4 else None
    client = world.client(address_changed_on=moved)
    shops = rng.sample(people.SHOPS, 3)
    amount = world.cents(130, 900) if variation == 1 else world.cents(15, 95)
    ago = rng.randrange(125, 170) if variation == 2 else rng.randrange(2, 60)
    if variation == 3:
        ago = rng.randrange(3)
    status = "pending" if variation == 3 else "posted"
    card = rng.choice(client.cards[:2])
    payment = world.payment(card, shops[0], amount, ago, status=status)
    world.payment(card, shops[1], round(amount + 0.5, 2), ago + 1)
    world.payment(client.cards[2], shops[2], world.cents(20, 300), ago + 3)
    draft.meet(client)
    answer = f"The one of {euros(amount)} at {shops[0]} on {short_day(payment['posted_on'])}."
    draft.ask("which payment", answer, *ASKS_PAYMENT)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_transactions", account_id=client.current["account_id"])
    record = payment["transaction_id"]
    if payment["status"] == "pending":
        draft.refuse(client, "disputes", "still_pending", record, "The payment is not posted yet.")
    elif payment["posted_on"] < world.day(RULES.dispute_days):
        draft.refuse(client, "disputes", "window_passed", record, "The payment is too old to be disputed.")
    else:
        draft.do("block_card", card_id=card["card_id"], reason="fraud")
        draft.replace(client, card, "disputes")
        statement = "The customer did not make this payment."
        made = draft.do(
            "open_dispute", transaction_id=record, reason="unrecognised", amount=amount, statement=statement
        )
        if amount <= RULES.quick_credit_max:
            draft.do("give_provisional_credit", dispute_id=draft.result(made, "dispute_id"))
    goal = "Get the money of the unknown payment back and be safe from more of them."
    return draft.task(_OPENINGS, goal=goal, declines=("hold", "close", "complaint"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 5, not recognised."""
    reading = Reading(task)
    payment = reading.named(reading.mine("transactions", kind="card_payment"), reading.say("which payment"))
    record = payment["transaction_id"]
    if payment["status"] == "pending":
        reading.refuse("disputes", "still_pending", record)
        return reading.outcome()
    if reading.age(payment["posted_on"]) > RULES.dispute_days:
        reading.refuse("disputes", "window_passed", record)
        return reading.outcome()
    reading.block(payment["card_id"], "fraud")
    reading.replace(reading.row("cards", card_id=payment["card_id"]), "disputes")
    amount = reading.amount(reading.say("which payment"))
    credit = amount if amount <= RULES.quick_credit_max else 0
    reading.create(
        "disputes",
        transaction_id=record,
        reason="unrecognised",
        amount=amount,
        status="open",
        provisional_credit=credit,
    )
    if credit:
        reading.book(payment["account_id"], credit)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
