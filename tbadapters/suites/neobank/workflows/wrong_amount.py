"""A merchant charged too much: the difference decides."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import euros

NAME = "wrong_amount"
_OPENINGS = (
    "Hi, {shop} charged my card more than we had agreed. {who}",
    "{who} The amount that {shop} took from my card is wrong, it's too much.",
    "Hello, I have a receipt from {shop}, and the card payment is higher than what it says. {who}",
)
_ASKS_AMOUNT = (
    "right amount",
    "correct amount",
    "agreed",
    "how much should",
    "should have been",
    "amount have been",
    "amount should",
    "should you have paid",
    "have been charged",
    "on the receipt",
    "receipt say",
    "expected amount",
    "amount did you expect",
    "what amount",
    "which amount",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: a difference to dispute (0), too small a one (1), too large a one (2)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    shop, other = rng.sample(people.SHOPS, 2)
    right = world.cents(40, 160)
    difference = (world.cents(12, 180), world.cents(0.4, 4.6), world.cents(520, 1400))[variation]
    card = rng.choice(client.cards)
    payment = world.payment(card, shop, round(right + difference, 2), rng.randrange(2, 70))
    world.payment(card, other, round(right + difference + 3, 2), 4)
    draft.meet(client)
    wording = ("The receipt says {}.", "It should have been {}.", "We had agreed on {}.")
    draft.ask("right amount", rng.choice(wording).format(euros(right)), *_ASKS_AMOUNT)
    draft.know("which payment", f"There is only one payment to {shop}.", "which payment", "which transaction")
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_transactions", account_id=client.current["account_id"])
    record, over = payment["transaction_id"], round(payment["amount"] - right, 2)
    if over < RULES.difference_min:
        draft.refuse(client, "disputes", "below_minimum", record, "The difference is too small for a dispute.")
    elif over > RULES.difference_max:
        draft.escalate(client, "disputes", "disputes", record, "Charged far more than the receipt says.")
    else:
        statement = "The customer was charged more than the receipt says."
        draft.do("open_dispute", transaction_id=record, reason="wrong_amount", amount=over, statement=statement)
    goal = f"Get back what {shop} charged too much; the card stays in use."
    return draft.task(_OPENINGS, goal=goal, declines=("block", "freeze", "replacement", "close"), shop=shop)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 5, charged too much."""
    reading = Reading(task)
    payment = reading.named(reading.mine("transactions"), task.opening)
    difference = round(payment["amount"] - reading.amount(reading.say("right amount")), 2)
    record = payment["transaction_id"]
    if difference < RULES.difference_min:
        reading.refuse("disputes", "below_minimum", record)
    elif difference > RULES.difference_max:
        reading.escalate("disputes", "disputes", record)
    else:
        reading.create(
            "disputes", transaction_id=record, reason="wrong_amount", amount=difference, provisional_credit=0
        )
    return reading.outcome()


WORKFLOW = Workflow(NAME, 3, build, rule)
