"""A card should work on a journey: where it goes and when it ends decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import ASKS_CARD, long_day

NAME = "travel_abroad"
_OPENINGS = (
    "Hi, I'm going on a trip soon and want to pay with my card over there. {who}",
    "{who} I'm about to travel and my card has to work outside of the country.",
    "Good evening, could you make sure that my debit card works while I'm away on holiday? {who}",
)
_COUNTRIES = ("Japan", "Canada", "Morocco", "Brazil", "Kenya", "Vietnam", "Turkey", "Iceland", "Chile")
_ASKS_PLACE = ("where", "which country", "what country", "destination", "travelling to", "traveling to", "going to")
_ASKS_RETURN = (
    "when do you",
    "when will you",
    "when are you",
    "return",
    "come back",
    "coming back",
    "be back",
    "dates",
    "how long",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: a plain journey (0), the card expires before its end (1), a restricted country (2)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    card = rng.choice(client.cards[:2])
    back = world.day(-rng.randrange(20, 60))
    if variation == 1:
        card["expires_on"] = world.day(-rng.randrange(5, 20))
    country = rng.choice(RULES.restricted_countries if variation == 2 else _COUNTRIES)
    draft.meet(client)
    draft.ask("which card", f"My debit card, the last digits are {card['last4']}.", *ASKS_CARD)
    draft.ask("destination", f"I'm flying to {country}.", *_ASKS_PLACE)
    draft.ask("day of return", f"I'm back on {long_day(back)}.", *_ASKS_RETURN)
    draft.do("list_cards", customer_id=client.id)
    declines = ["replacement", "freeze", "block", "limit", "dispute"]
    if country in RULES.restricted_countries:
        draft.refuse(client, "cards", "country_restricted", card["card_id"], f"Wants to use the card in {country}.")
    else:
        draft.do("set_abroad_use", card_id=card["card_id"], enabled=True)
        if card["expires_on"] <= back:
            draft.replace(client, card, "cards")
            declines.remove("replacement")
    goal = "Be able to pay with one debit card on the journey, with a new card if this one runs out before."
    return draft.task(_OPENINGS, goal=goal, declines=declines)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 4, use abroad."""
    reading = Reading(task)
    card = reading.named(reading.mine("cards"), reading.say("which card"))
    where = reading.say("destination")
    if any(country in where for country in RULES.restricted_countries):
        reading.refuse("cards", "country_restricted", card["card_id"])
        return reading.outcome()
    reading.set("cards", card["card_id"], abroad_use=1)
    if card["expires_on"] <= reading.day(reading.say("day of return")):
        reading.replace(card, "cards")
    return reading.outcome()


WORKFLOW = Workflow(NAME, 3, build, rule)
