"""A scam call, text or link: what the customer gave away decides."""

from random import Random

from tbadapters.core.grading import GoldenAction, Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.wording import ASKS_CARD

NAME = "scam_report"
_OPENINGS = (
    "Help, somebody called me and said they were from your bank, I think it was a scam! {who}",
    "{who} I got a text message with a link in your name, and now I have a bad feeling.",
    "Hello, I fell for one of these fake messages about a parcel, I fear. {who}",
)
_GAVE = {
    "code": ("I read out a one-time code to them.", "I typed my app password into their page."),
    "card": ("Just my card details, the number and the three digits on the back.", "My card details, nothing else."),
    "nothing": ("Nothing, I hung up at once.", "I gave them nothing, I only looked at it."),
}
_ASKS_GAVE = (
    "what did you",
    "did you share",
    "did you give",
    "did you enter",
    "give away",
    "gave away",
    "you share",
    "you enter",
    "you provide",
    "shared any",
    "what information",
    "which information",
    "what details",
    "reveal",
    "disclose",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: a code and one account (0), card details (1), nothing (2), a code and two accounts (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    currents = [client.current]
    if variation == 3:
        currents.append(world.account(client.row, name="Household account"))
    world.account(client.row, name="Old account", status="closed", balance=0.0)
    card = rng.choice(client.cards[:2])
    gave = ("code", "card", "nothing", "code")[variation]
    draft.meet(client)
    draft.ask("what was given away", rng.choice(_GAVE[gave]), *_ASKS_GAVE)
    others = {}
    if gave == "code":
        draft.do("list_accounts", customer_id=client.id)
        for account in currents:
            draft.do("place_fraud_hold", account_id=account["account_id"], reason="account_takeover")
        draft.escalate(client, "fraud", "fraud", client.id, "Gave a password or code to a caller.", priority="urgent")
    elif gave == "card":
        draft.ask("which card", f"The card that ends in {card['last4']}.", *ASKS_CARD)
        draft.do("list_cards", customer_id=client.id)
        draft.do("block_card", card_id=card["card_id"], reason="fraud")
        draft.replace(client, card, "fraud")
    else:
        looked = draft.actions
        draft.escalate(client, "fraud", "fraud", client.id, "Received a scam message, gave nothing away.")
        last = draft.actions[-1]
        others["escalated with high priority"] = (
            *looked,
            GoldenAction(last.tool, {**last.arguments, "priority": "high"}),
        )
    declines = ("dispute", "close", "complaint", *(("hold",) if gave == "card" else ("block", "replacement", "freeze")))
    goal = "Be safe from whoever sent the message."
    return draft.task(_OPENINGS, goal=goal, declines=declines, others=others)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 8, a scam."""
    reading = Reading(task)
    gave = reading.say("what was given away").lower()
    if "code" in gave or "password" in gave:
        for account in reading.mine("accounts", kind="current", status="open"):
            reading.create("fraud_holds", account_id=account["account_id"], reason="account_takeover", status="active")
        reading.escalate("fraud", "fraud", reading.id, "urgent")
    elif "card details" in gave:
        card = reading.named(reading.mine("cards"), reading.say("which card"))
        reading.block(card["card_id"], "fraud")
        reading.replace(card, "fraud")
    else:
        reading.escalate("fraud", "fraud", reading.id)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
