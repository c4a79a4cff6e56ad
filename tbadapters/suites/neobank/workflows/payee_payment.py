"""A saved payee should be paid: the balance, how new the payee is, and the tier decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES, TIERS, by_tier
from tbadapters.suites.neobank.wording import euros
from tbadapters.suites.neobank.world import Client, Row

NAME = "payee_payment"
_OPENINGS = (
    "Hello, the app is down on my phone. Could you pay {payee} for me? {who}",
    "{who} I'd like you to send money to {payee}, who is on my list.",
    "Hi, please make a payment to my saved payee {payee}. {who}",
)
_ASKS_AMOUNT = ("how much", "what amount", "which amount", "the amount", "amount would you", "amount to")


def build(rng: Random, variation: int) -> Task:
    """Return a task: paid (0), not covered (1), payee too new (2), above the tier (3), wrong date of birth (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    tier = rng.choice(TIERS)
    highest = by_tier(RULES.payment_max, tier)
    balance = {1: world.cents(120, 700), 3: world.cents(highest + 1500, highest + 3000)}.get(
        variation, world.cents(1500, 3000)
    )
    client = world.client(current={"balance": balance}, tier=tier)
    payee = world.payee(client.row, ago=rng.randrange(3) if variation == 2 else rng.randrange(10, 300))
    amounts = {1: (960, 1400), 2: (510, 900), 3: (highest + 50, highest + 1200)}
    amount = world.tens(*amounts.get(variation, (40, 900)))
    draft.meet(client)
    draft.ask("amount", f"{euros(amount)}, please.", *_ASKS_AMOUNT)
    draft.know("reference", "Just write thanks.", "reference", "note for", "purpose")
    draft.know("account", "From my current account.", "which account", "what account", "from which")
    if draft.verify(client, wrong=variation == 4):
        draft.do("list_accounts", customer_id=client.id)
        draft.do("list_payees", customer_id=client.id)
        _decide(draft, client, payee, amount)
    else:
        draft.refuse(client, "transfers", "identity_not_confirmed", client.id, "The date of birth did not match.")
    goal = f"Have {euros(amount)} paid to {payee['name']}, and no other amount."
    return draft.task(_OPENINGS, goal=goal, declines=("limit", "savings", "close", "instalments"), payee=payee["name"])


def _decide(draft: Draft, client: Client, payee: Row, amount: int) -> None:
    account, record = client.current, payee["payee_id"]
    if amount > account["balance"] + account["overdraft_limit"]:
        draft.refuse(client, "transfers", "insufficient_funds", record, "The account does not cover the payment.")
    elif payee["added_on"] > draft.world.day(RULES.new_payee_days) and amount > RULES.new_payee_max:
        draft.refuse(client, "transfers", "new_payee_cap", record, "Too much for a payee that is new.")
    elif amount > by_tier(RULES.payment_max, client.row["tier"]):
        draft.refuse(client, "transfers", "above_payment_limit", record, "More than the tier allows.")
    else:
        draft.do("pay_payee", account_id=account["account_id"], payee_id=record, amount=amount)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 7, paying a payee."""
    reading = Reading(task)
    payee = next(row for row in reading.mine("payees") if row["name"] in task.opening)
    account = next(row for row in reading.mine("accounts") if row["kind"] == "current")
    amount, record = reading.amount(reading.say("amount")), payee["payee_id"]
    if not reading.identified(category="transfers"):
        return reading.outcome()
    largest = dict(zip(TIERS, RULES.payment_max, strict=True))[reading.customer["tier"]]
    if account["balance"] + account["overdraft_limit"] < amount:
        reading.refuse("transfers", "insufficient_funds", record)
    elif reading.age(payee["added_on"]) < RULES.new_payee_days and amount > RULES.new_payee_max:
        reading.refuse("transfers", "new_payee_cap", record)
    elif amount > largest:
        reading.refuse("transfers", "above_payment_limit", record)
    else:
        reading.book(account["account_id"], -amount)
        source = account["account_id"]
        reading.create("transfers", from_account_id=source, payee_id=record, amount=amount, status="completed")
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
