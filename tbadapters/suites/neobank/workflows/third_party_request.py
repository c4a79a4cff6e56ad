"""Somebody writes for the customer: what they ask for, and who they are, decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.wording import ASKS_CARD, ASKS_NAME, euros

NAME = "third_party_request"
_FREEZE = (
    "Hello, my mother has lost her purse and can't write herself. Please freeze her card. {who}",
    "I'm writing for my father: his card must be frozen for the moment. {who}",
)
_CANCEL = (
    "Hello, I look after my aunt's papers. Please cancel her standing order of {amount}. {who}",
    "I help my grandfather with his bank. His standing order of {amount} should be cancelled. {who}",
)
_PHONE = (
    "Hello, my mother has a new phone number, please change it in your records. {who}",
    "I'm writing for my uncle, whose phone number has to be updated. {who}",
)
_ASKS_WRITER = (
    *ASKS_NAME,
    "who are you",
    "your own name",
    "relationship",
    "authorised",
    "authorized",
    "am i chatting with",
    "identify yourself",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: a freeze (0), authorised (1), not authorised (2), authorised for something checked (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    writer, helper = (f"{first} {rng.choice(people.LAST_NAMES)}" for first in rng.sample(people.FIRST_NAMES, 2))
    authorised = {1: writer, 3: writer}.get(variation, rng.choice((None, helper)))
    client = world.client(authorised_person=authorised)
    payee = world.payee(client.row)
    order = world.standing_order(client.current, payee, float(world.tens(40, 200)), 11)
    world.standing_order(client.current, payee, order["amount"] + 5, 12)
    card = rng.choice(client.cards[:2])
    draft.meet(client, speaker=writer)
    if variation == 0:
        draft.know("who writes", f"My name is {writer}.", *_ASKS_WRITER)
        draft.ask("which card", f"It is the card ending in {card['last4']}.", *ASKS_CARD)
        draft.do("list_cards", customer_id=client.id)
        draft.do("freeze_card", card_id=card["card_id"], asked_by="third_party")
    else:
        draft.ask("who writes", f"My name is {writer}.", *_ASKS_WRITER)
        if variation == 3 or authorised != writer:
            why = "Somebody else asked for a change without being entitled to it."
            draft.refuse(client, "third_party", "not_authorised", client.id, why)
        else:
            draft.do("list_standing_orders", account_id=client.current["account_id"])
            draft.do("cancel_standing_order", order_id=order["order_id"])
    openings = (_FREEZE, _CANCEL, _CANCEL, _PHONE)[variation]
    goal = ("Have the card frozen.", "Have the standing order cancelled.")[min(variation, 1)]
    if variation == 3:
        goal = "Have the phone number changed."
    declines = ("replacement", "block", "close", "complaint")
    return draft.task(openings, goal=goal, declines=declines, amount=euros(order["amount"]))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 3."""
    reading = Reading(task)
    writer = reading.say("who writes").removeprefix("My name is ").rstrip(".")
    if "fr" in task.opening and ("freeze" in task.opening or "frozen" in task.opening):
        card = reading.named(reading.mine("cards"), reading.say("which card"))
        reading.set("cards", card["card_id"], status="frozen", frozen_by="third_party")
    elif writer == reading.customer["authorised_person"] and "standing order" in task.opening:
        order = reading.named(reading.mine("standing_orders"), task.opening)
        reading.set("standing_orders", order["order_id"], status="cancelled")
    else:
        reading.refuse("third_party", "not_authorised", reading.id)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
