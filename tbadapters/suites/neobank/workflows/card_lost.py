"""A card is gone: block it as lost or stolen, replace it unless the address was changed days ago."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.wording import ASKS_CARD

NAME = "card_lost"
_OPENINGS = (
    "Hello, my bank card is gone and I'm worried that somebody uses it. {who}",
    "Hi, I can't find one of my cards anywhere. {who} What happens now?",
    "{who} One of my cards is missing since yesterday, please take care of it.",
)
_LOST = ("I lost it, it must have slipped out of my pocket.", "Lost, I left it somewhere on the tram.")
_STOLEN = ("It was stolen out of my bag.", "Stolen. Somebody took my wallet at the market.")


def build(rng: Random, variation: int) -> Task:
    """Return a task: lost (0), stolen from a premium customer (1), gone just after a move (2)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    tier = "premium" if variation == 1 else rng.choice(("standard", "plus"))
    moved = world.day(rng.randrange(2, 12) if variation == 2 else rng.randrange(30, 200))
    client = world.client(tier=tier, address_changed_on=moved)
    card = rng.choice(client.cards[:2])
    stolen = variation == 1 or (variation == 2 and rng.random() < 0.5)
    draft.meet(client)
    draft.ask("which card", f"It's the debit card ending in {card['last4']}.", *ASKS_CARD)
    how = rng.choice(_STOLEN if stolen else _LOST)
    draft.ask(
        "lost or stolen", how, "lost or stolen", "stolen or lost", "was it stolen", "was it lost", "what happened"
    )
    draft.do("list_cards", customer_id=client.id)
    draft.do("block_card", card_id=card["card_id"], reason="stolen" if stolen else "lost")
    draft.replace(client, card, "cards")
    goal = "Have the missing card blocked and get a new one if the bank sends one."
    return draft.task(_OPENINGS, goal=goal, declines=("dispute", "hold", "close"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 4, lost or stolen."""
    reading = Reading(task)
    card = reading.named(reading.mine("cards"), reading.say("which card"))
    reading.block(card["card_id"], "stolen" if "stolen" in reading.say("lost or stolen").lower() else "lost")
    reading.replace(card, "cards")
    return reading.outcome()


WORKFLOW = Workflow(NAME, 3, build, rule)
