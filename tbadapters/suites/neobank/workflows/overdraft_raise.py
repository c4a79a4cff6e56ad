"""A higher arranged overdraft: salaries of the last months and returned payments decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import euros

NAME = "overdraft_raise"
_OPENINGS = (
    "Hello, I'd like to have a higher overdraft on my current account. {who}",
    "{who} Can you raise the arranged overdraft of my account?",
    "Hi, my overdraft is too small for me, please increase it. {who}",
)
_ASKS_AMOUNT = (
    "how much",
    "how high",
    "overdraft limit",
    "what limit",
    "which limit",
    "new limit",
    "what amount",
    "which amount",
    "the amount",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: within the allowance (0), above it (1), a returned payment (2), above the highest (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    employer, first = f"Salary {rng.choice(people.EMPLOYERS)}", rng.randrange(2, 22)
    low, high = (5100, 6300) if variation == 3 else (1800, 3600)
    salaries = [float(world.tens(low, high, 30)) for _ in range(3)]
    for salary, ago in zip(salaries, (first, first + 30, first + 61), strict=True):
        world.booking(client.current, "incoming", employer, salary, ago)
    world.booking(client.current, "incoming", employer, 1500.0, first + 95)
    world.booking(client.current, "incoming", "Refund of the deposit", 740.0, 12)
    # A fee from before the clean span must not count.
    world.fee(client.current, "returned_payment", 6.5, rng.randrange(*((10, 170) if variation == 2 else (190, 400))))
    share = round(sum(salaries) / 3 * RULES.overdraft_share / 100, 2)
    allowance = min(share, RULES.overdraft_max)
    if variation == 1:
        wanted = int(allowance) // 10 * 10 + world.tens(50, 400)
    else:
        wanted = 2000 if variation == 3 else world.tens(250, int(allowance))
    draft.meet(client)
    draft.ask("amount", f"I'd like {euros(wanted)}.", *_ASKS_AMOUNT)
    draft.verify(client)
    draft.do("list_accounts", customer_id=client.id)
    account, record = client.current, client.current["account_id"]
    draft.do("list_fees", account_id=record)
    draft.do("list_transactions", account_id=record)
    fees = [fee for fee in world.tables["fees"] if fee["charged_on"] >= world.day(RULES.clean_days)]
    if fees:
        draft.escalate(client, "accounts", "credit", record, "Wants a higher overdraft; a payment was returned.")
    elif wanted > allowance:
        draft.refuse(client, "accounts", "above_allowance", record, "Wants more than the salaries allow.")
        draft.tell_amount("the allowance", allowance)
    else:
        draft.do("set_overdraft_limit", account_id=account["account_id"], limit=wanted)
    goal = f"Have the overdraft set to {euros(wanted)}, and to no other amount."
    return draft.task(_OPENINGS, goal=goal, declines=("limit", "savings", "close"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 10, overdraft."""
    reading = Reading(task)
    (account,) = reading.mine("accounts", kind="current")
    if not reading.identified(category="accounts"):
        return reading.outcome()
    key = account["account_id"]
    returned = [fee for fee in reading.rows("fees", account_id=key) if fee["kind"] == "returned_payment"]
    pay = sum(
        row["amount"]
        for row in reading.rows("transactions", account_id=key, kind="incoming")
        if row["counterparty"].startswith("Salary") and reading.age(row["posted_on"]) <= RULES.overdraft_months
    )
    allowance = min(RULES.overdraft_max, pay * RULES.overdraft_share / 300)
    wanted = reading.amount(reading.say("amount"))
    if any(reading.age(fee["charged_on"]) <= RULES.clean_days for fee in returned):
        reading.escalate("accounts", "credit", key)
    elif wanted > allowance:
        reading.refuse("accounts", "above_allowance", key)
    else:
        reading.set("accounts", key, overdraft_limit=wanted)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
