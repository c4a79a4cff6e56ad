"""A fee may have been charged in error: what happened to the card, or the customer's tier, decides."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.wording import short_day

NAME = "fee_in_error"
_OPENINGS = {
    "card_replacement": (
        "Hello, on {day} I was charged for a replacement card. I don't think that is right. {who}",
        "{who} Why did I have to pay for my new card on {day}? Please give that back.",
    ),
    "monthly": (
        "Hi, on {day} you took a monthly account fee. Is that correct? I'd like it back. {who}",
        "{who} There is a monthly fee on my account from {day}. Please refund it.",
    ),
}


def build(rng: Random, variation: int) -> Task:
    """Return a task: a stolen card (0), a lost card (1), monthly fee of premium (2), monthly fee of others (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    tier = "premium" if variation == 2 else rng.choice(("standard", "plus"))
    client = world.client(tier=tier)
    account, ago = client.current, rng.randrange(5, 130)
    kind = "card_replacement" if variation < 2 else "monthly"
    lost, stolen = (world.card(account, status="blocked", block_reason=why) for why in ("lost", "stolen"))
    if kind == "card_replacement":
        fee = world.fee(account, kind, 14.9, ago, card_id=(stolen, lost)[variation]["card_id"])
        world.fee(account, kind, 14.9, ago + 40, card_id=(lost, stolen)[variation]["card_id"])
    else:
        fee = world.fee(account, kind, world.cents(26, 32), ago)
        world.fee(account, "overdraft", 8.5, ago + 3)
    draft.meet(client)
    draft.know("which fee", f"The one of {short_day(fee['charged_on'])}.", "which fee", "which one", "what date")
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_fees", account_id=account["account_id"])
    if kind == "card_replacement":
        draft.do("list_cards", customer_id=client.id)
        wrong = fee["card_id"] == stolen["card_id"]
    else:
        wrong = client.row["tier"] == "premium"
    if wrong:
        draft.do("waive_fee", fee_id=fee["fee_id"], reason="charged_in_error")
        draft.tell_amount("the amount given back", fee["amount"])
    else:
        draft.refuse(client, "fees", "fee_correct", fee["fee_id"], "The fee was charged as the price list says.")
    goal = f"Get the fee of {short_day(fee['charged_on'])} back, and no other."
    declines = ("complaint", "close", "replacement")
    return draft.task(_OPENINGS[kind], goal=goal, declines=declines, day=short_day(fee["charged_on"]))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 6, charged in error."""
    reading = Reading(task)
    fee = reading.named(reading.mine("fees"), task.opening)
    if fee["kind"] == "monthly":
        wrong = reading.customer["tier"] == "premium"
    else:
        wrong = reading.row("cards", card_id=fee["card_id"])["block_reason"] == "stolen"
    if wrong:
        today = reading.today.isoformat()
        reading.set("fees", fee["fee_id"], status="waived", waiver_reason="charged_in_error", waived_on=today)
        reading.book(fee["account_id"], fee["amount"])
    else:
        reading.refuse("fees", "fee_correct", fee["fee_id"])
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
