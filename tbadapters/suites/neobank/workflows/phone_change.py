"""A new phone number: the last change of it and money about to leave decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES

NAME = "phone_change"
_OPENINGS = (
    "Hello, I have a new phone number, please put it on my file. {who}",
    "{who} Please update my mobile number.",
    "Hi, my phone number has changed. Can you enter the new one? {who}",
)
_ASKS_PHONE = ("new number", "phone number", "mobile number", "new phone", "which number", "what number")


def build(rng: Random, variation: int) -> Task:
    """Return a task: changed (0), changed before (1), much money about to leave (2)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    changed = (
        world.day(rng.randrange(3, 26)) if variation == 1 else rng.choice((None, world.day(rng.randrange(40, 300))))
    )
    client = world.client(phone_changed_on=changed)
    payee = world.payee(client.row)
    second = world.account(client.row, name="Household account")
    low, high = (620, 1100) if variation == 2 else (60, 500)
    leaving = [
        world.transfer(client.current, payee, float(world.tens(low, high)), -3, "scheduled"),
        world.transfer(second, payee, float(world.tens(low, high)), 0, "held"),
    ]
    world.transfer(client.current, payee, 900.0, 5)
    digits = f"151{rng.randrange(10**7, 10**8)}"
    draft.meet(client)
    draft.verify(client)
    draft.do("list_accounts", customer_id=client.id)
    for account in (client.current, second):
        draft.do("list_transfers", account_id=account["account_id"])
    recent = changed is not None and changed >= world.day(RULES.phone_quiet_days)
    pending = sum(transfer["amount"] for transfer in leaving)
    stays = recent or pending > RULES.pending_transfer_max
    answer = f"The new number is +49 {digits[:3]} {digits[3:]}."
    (draft.know if stays else draft.ask)("new phone number", answer, *_ASKS_PHONE)
    if recent:
        draft.refuse(client, "details", "changed_recently", client.id, "The number was changed only days ago.")
    elif stays:
        why = "Wants another phone number while much money is about to leave."
        draft.escalate(client, "details", "fraud", client.id, why, priority="high")
    else:
        draft.do("update_phone", customer_id=client.id, phone=f"+49{digits}")
    goal = "Have the bank's records show the new phone number."
    return draft.task(_OPENINGS, goal=goal, declines=("close", "block", "cancel"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 9, phone number."""
    reading = Reading(task)
    if not reading.identified(category="details"):
        return reading.outcome()
    changed = reading.customer["phone_changed_on"]
    pending = sum(row["amount"] for row in reading.mine("transfers") if row["status"] in {"scheduled", "held"})
    if changed and reading.age(changed) <= RULES.phone_quiet_days:
        reading.refuse("details", "changed_recently", reading.id)
    elif pending > RULES.pending_transfer_max:
        reading.escalate("details", "fraud", reading.id, "high")
    else:
        phone = reading.say("new phone number").partition("+")[2].rstrip(".").replace(" ", "")
        reading.set("customers", reading.id, phone=f"+{phone}", phone_changed_on=reading.today.isoformat())
    return reading.outcome()


WORKFLOW = Workflow(NAME, 3, build, rule)
