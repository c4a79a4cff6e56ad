"""A card does not work and should again: who froze it decides."""

from random import Random
from typing import Any

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.wording import ASKS_CARD

NAME = "card_unfreeze"
_OPENINGS = (
    "Hi there, my card ending in {last4} is declined everywhere. Please switch it back on. {who}",
    "{who} Could you unfreeze my card with the last digits {last4}?",
    "Good morning, I need my card {last4} working again, I'm standing at the till. {who}",
)
_STATES: tuple[dict[str, Any], ...] = (
    {"status": "frozen", "frozen_by": "customer"},
    {"status": "frozen", "frozen_by": "bank"},
    {"status": "blocked", "block_reason": "lost"},
    {"status": "frozen", "frozen_by": "customer"},
    {"status": "frozen", "frozen_by": "third_party"},
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: frozen by the customer (0), by the bank (1), blocked (2), wrong date of birth (3), by a helper (4)."""
    draft = Draft(NAME, rng, variation)
    client = draft.world.client()
    card = rng.choice(client.cards[:2])
    card.update(_STATES[variation])
    draft.meet(client)
    draft.know("which card", f"The one ending in {card['last4']}.", *ASKS_CARD)
    draft.do("list_cards", customer_id=client.id)
    if not draft.verify(client, wrong=variation == 3):
        draft.refuse(client, "cards", "identity_not_confirmed", client.id, "The date of birth did not match.")
    elif card["status"] != "frozen":
        why = "Wanted a blocked card back, which can't be done."
        draft.refuse(client, "cards", "card_not_recoverable", card["card_id"], why)
    elif card["frozen_by"] == "bank":
        draft.escalate(client, "cards", "fraud", card["card_id"], "Wants a card back that the bank froze.")
    else:
        draft.do("unfreeze_card", card_id=card["card_id"])
    goal = "Get the card to work again; not a new one."
    return draft.task(_OPENINGS, goal=goal, declines=("replacement", "block", "close"), last4=card["last4"])


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 4, unfreezing."""
    reading = Reading(task)
    card = reading.named(reading.mine("cards"), task.opening)
    if not reading.identified(category="cards"):
        return reading.outcome()
    if card["status"] in {"blocked", "expired"}:
        reading.refuse("cards", "card_not_recoverable", card["card_id"])
    elif card["frozen_by"] == "bank":
        reading.escalate("cards", "fraud", card["card_id"])
    else:
        reading.set("cards", card["card_id"], status="active", frozen_by=None)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
