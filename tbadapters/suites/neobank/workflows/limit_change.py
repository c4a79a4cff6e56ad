"""A daily limit of a card is to be changed: down is free, up depends on the tier, the account and holds."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES, TIERS, by_tier
from tbadapters.suites.neobank.wording import ASKS_CARD, euros
from tbadapters.suites.neobank.world import Client, Row

NAME = "limit_change"
_WORDS = {"spend_limit": "spending limit", "atm_limit": "cash withdrawal limit"}
_MAXIMA = {"spend_limit": RULES.spend_max, "atm_limit": RULES.atm_max}
_TOOLS = {"spend_limit": "set_spend_limit", "atm_limit": "set_atm_limit"}
_OPENINGS = (
    "Hello, I'd like another daily {limit} on my debit card. {who}",
    "{who} Can you change the daily {limit} of one of my cards for me?",
    "Hi! The daily {limit} on my card doesn't suit me any more, please change it. {who}",
)
_ASKS_AMOUNT = (
    "what limit",
    "which limit",
    "new limit",
    "new daily limit",
    "limit be",
    "set the limit to",
    "set it to",
    "how much",
    "what amount",
    "which amount",
    "how high",
    "limit would you like",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: up and allowed (0), above the tier (1), account too new (2), down (3), a fraud hold (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    column = rng.choice(tuple(_WORDS))
    tier = rng.choice(TIERS)
    opened = world.day(rng.randrange(20, 85) if variation == 2 else rng.randrange(120, 700))
    client = world.client(current={"opened_on": opened}, tier=tier)
    if variation == 4:
        world.hold(client.savings, "account_takeover")
    card = rng.choice(client.cards[:2])
    highest = by_tier(_MAXIMA[column], tier)
    if variation == 1:
        wanted = highest + world.tens(50, 400, 50)
    elif variation == 3:
        wanted = world.tens(50, int(card[column]) - 50)
    else:
        wanted = world.tens(int(card[column]) + 20, highest)
    draft.meet(client)
    draft.ask("which card", f"The debit card ending in {card['last4']}.", *ASKS_CARD)
    draft.ask("new limit", f"I'd like it to be {euros(wanted)} a day.", *_ASKS_AMOUNT)
    draft.do("list_cards", customer_id=client.id)
    _decide(draft, client, card, column, wanted)
    goal = f"Have the daily {_WORDS[column]} of one debit card set to {euros(wanted)}, and nothing else."
    declines = ["replacement", "freeze", "block", "close"]
    if wanted > card[column]:
        declines.append("limit")
    return draft.task(_OPENINGS, goal=goal, declines=declines, limit=_WORDS[column])


def _decide(draft: Draft, client: Client, card: Row, column: str, wanted: int) -> None:
    if wanted < card[column]:
        draft.do(_TOOLS[column], card_id=card["card_id"], amount=wanted)
        return
    draft.verify(client)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_fraud_holds", customer_id=client.id)
    if draft.world.tables.get("fraud_holds"):
        draft.escalate(client, "cards", "fraud", card["card_id"], "Wants a higher limit while an account is held.")
    elif client.current["opened_on"] > draft.world.day(RULES.new_account_days):
        why = "Wants a higher limit on an account that is too new."
        draft.refuse(client, "cards", "account_too_new", card["card_id"], why)
    elif wanted > by_tier(_MAXIMA[column], client.row["tier"]):
        draft.refuse(client, "cards", "above_tier_limit", card["card_id"], "Wants more than the tier allows.")
    else:
        draft.do(_TOOLS[column], card_id=card["card_id"], amount=wanted)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 4, daily limits."""
    reading = Reading(task)
    card = reading.named(reading.mine("cards"), reading.say("which card"))
    column = "atm_limit" if "cash" in task.opening else "spend_limit"
    wanted = reading.amount(reading.say("new limit"))
    if wanted > card[column]:
        if not reading.identified(category="cards"):
            return reading.outcome()
        account = reading.row("accounts", account_id=card["account_id"])
        maxima = {"spend_limit": RULES.spend_max, "atm_limit": RULES.atm_max}[column]
        if reading.mine("fraud_holds", status="active"):
            reading.escalate("cards", "fraud", card["card_id"])
            return reading.outcome()
        if reading.age(account["opened_on"]) < RULES.new_account_days:
            reading.refuse("cards", "account_too_new", card["card_id"])
            return reading.outcome()
        if wanted > dict(zip(TIERS, maxima, strict=True))[reading.customer["tier"]]:
            reading.refuse("cards", "above_tier_limit", card["card_id"])
            return reading.outcome()
    reading.set("cards", card["card_id"], **{column: wanted})
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
