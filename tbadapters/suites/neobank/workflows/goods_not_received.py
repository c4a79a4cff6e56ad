"""Something was paid and never came: the merchant must have been asked first, and had time to deliver."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import ASKS_PAYMENT, euros, short_day

NAME = "goods_not_received"
_OPENINGS = (
    "Hello, something that I ordered at {shop} has never arrived, and I want my money back. {who}",
    "{who} I paid {shop} by card, but nothing was delivered. What can you do?",
    "Hi, {shop} took my money and never sent the goods. {who} Please help me get it back.",
)
_CONTACTED = (
    "Yes, I wrote to them twice and got no answer.",
    "Yes, I called them last week, they keep putting me off.",
)
_SILENT = ("No, I haven't been in touch with them so far.", "No, not yet, I came to you first.")
_ASKS_CONTACT = ("contacted", "contact the", "contact with", "contact them", "in touch", "reached out", "reach out")


def build(rng: Random, variation: int) -> Task:
    """Return a task: disputed (0), merchant not asked (1), too early (2), too old (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    shop, other = rng.sample(people.SHOPS, 2)
    ago = {2: rng.randrange(4, 13), 3: rng.randrange(124, 180)}.get(variation, rng.randrange(18, 100))
    amount = world.cents(35, 420)
    card = rng.choice(client.cards)
    payment = world.payment(card, shop, amount, ago)
    world.payment(card, shop, round(amount + rng.randrange(2, 9), 2), ago + 2)
    world.payment(card, other, amount, ago + 5)
    contacted = variation != 1
    draft.meet(client)
    answer = f"It's the order of {short_day(payment['posted_on'])}, {euros(amount)}."
    draft.ask("which payment", answer, *ASKS_PAYMENT)
    draft.ask("merchant contacted", rng.choice(_CONTACTED if contacted else _SILENT), *_ASKS_CONTACT)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_transactions", account_id=client.current["account_id"])
    record = payment["transaction_id"]
    if payment["posted_on"] < world.day(RULES.dispute_days):
        draft.refuse(client, "disputes", "window_passed", record, "The payment is too old to be disputed.")
    elif not contacted:
        draft.refuse(client, "disputes", "merchant_not_contacted", record, "The merchant must be asked first.")
    elif payment["posted_on"] > world.day(RULES.delivery_days):
        draft.refuse(client, "disputes", "too_early", record, "The merchant still has time to deliver.")
    else:
        statement = "Ordered and paid, not delivered, the merchant does not help."
        draft.do("open_dispute", transaction_id=record, reason="not_received", amount=amount, statement=statement)
    goal = f"Get the money for the order at {shop} back; the card stays in use."
    return draft.task(_OPENINGS, goal=goal, declines=("block", "freeze", "replacement", "close"), shop=shop)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 5, not received."""
    reading = Reading(task)
    shops = [row for row in reading.mine("transactions") if row["counterparty"] in task.opening]
    payment = reading.named(shops, reading.say("which payment"))
    age, record = reading.age(payment["posted_on"]), payment["transaction_id"]
    if age > RULES.dispute_days:
        reading.refuse("disputes", "window_passed", record)
    elif reading.say("merchant contacted").startswith("No"):
        reading.refuse("disputes", "merchant_not_contacted", record)
    elif age < RULES.delivery_days:
        reading.refuse("disputes", "too_early", record)
    else:
        reading.create(
            "disputes",
            transaction_id=record,
            reason="not_received",
            amount=payment["amount"],
            status="open",
            provisional_credit=0,
        )
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
