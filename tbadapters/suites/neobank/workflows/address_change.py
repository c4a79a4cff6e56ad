"""A new address: cards on their way and the country decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES

NAME = "address_change"
_OPENINGS = (
    "Hello, I'm moving and need you to update my address. {who}",
    "{who} I have moved, please change my postal address.",
    "Hi, my address with you is out of date. Could you correct it? {who}",
)
_ASKS_ADDRESS = (
    "new address",
    "your address",
    "full address",
    "postal address",
    "street",
    "postcode",
    "where do you live",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: changed (0), a card is on its way (1), to a far country (2), wrong date of birth (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client(address_changed_on=world.day(rng.randrange(90, 600)))
    shipped = None
    if variation == 1:
        shipped = world.card(client.current, status="shipped", delivery="standard")
    places = [place for place in people.PLACES if place[2] != client.row["city"]]
    road, postcode, city, country = rng.choice(people.PLACES_ELSEWHERE if variation == 2 else places)
    street = f"{road} {rng.randrange(1, 90)}"
    draft.meet(client)
    if draft.verify(client, wrong=variation == 3):
        draft.do("list_cards", customer_id=client.id)
    sentence = f"It's {street}, postcode {postcode}, in {city}, {people.COUNTRY_NAMES[country]}."
    (draft.know if variation in {1, 3} else draft.ask)("new address", sentence, *_ASKS_ADDRESS)
    if variation == 3:
        draft.refuse(client, "details", "identity_not_confirmed", client.id, "The date of birth did not match.")
    elif shipped:
        draft.refuse(
            client, "details", "card_in_delivery", shipped["card_id"], "A card is on its way to the old address."
        )
    elif country not in RULES.residence_countries:
        draft.escalate(client, "details", "compliance", client.id, f"Moves to {people.COUNTRY_NAMES[country]}.")
    else:
        address = {"street": street, "postcode": postcode, "city": city, "country": country}
        draft.do("update_address", customer_id=client.id, **address)
    goal = "Have the bank's records show the new address."
    return draft.task(_OPENINGS, goal=goal, declines=("close", "replacement", "block"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 9, address."""
    reading = Reading(task)
    if not reading.identified(category="details"):
        return reading.outcome()
    shipped = reading.mine("cards", status="shipped")
    street, postcode, city, country = reading.say("new address").removeprefix("It's ").rstrip(".").split(", ")
    code = next(code for code, name in people.COUNTRY_NAMES.items() if name == country)
    if shipped:
        reading.refuse("details", "card_in_delivery", shipped[0]["card_id"])
    elif code not in RULES.residence_countries:
        reading.escalate("details", "compliance", reading.id)
    else:
        reading.set(
            "customers",
            reading.id,
            street=street,
            postcode=postcode.removeprefix("postcode "),
            city=city.removeprefix("in "),
            country=code,
            address_changed_on=reading.today.isoformat(),
        )
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
