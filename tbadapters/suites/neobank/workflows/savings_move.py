"""Money should come from savings to the current account: the kind of savings and the balance decide."""

from random import Random

from tbadapters.core.grading import GoldenAction, Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.wording import euros

NAME = "savings_move"
_OPENINGS = (
    "Hello, please move some of my savings over to my current account. {who}",
    "{who} I need money from my savings on my current account today.",
    "Hi, could you transfer something from savings to my current account? {who}",
)
_ASKS_ACCOUNT = (
    "which savings",
    "which account",
    "which of your",
    "which one",
    "what account",
    "from which",
    "account should",
)
_ASKS_AMOUNT = ("how much", "what amount", "which amount", "the amount", "amount would you", "amount to")


def build(rng: Random, variation: int) -> Task:
    """Return a task: moved (0), locked until maturity (1), not covered (2), from either of two (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    names = [name for name in people.SAVINGS_NAMES if name != client.savings["name"]]
    rng.shuffle(names)
    pot = world.account(client.row, "savings", name=names[0], balance=world.cents(300, 900))
    matures = world.day(-rng.randrange(20, 300))
    locked = world.account(
        client.row, "term_savings", name=names[1], balance=world.cents(2000, 6000), matures_on=matures
    )
    source = locked if variation == 1 else pot
    wanted = world.tens(950, 1800) if variation == 2 else world.tens(50, 290)
    answer = "Take it from either of my instant savings accounts, I don't mind which." if variation == 3 else None
    draft.meet(client)
    draft.ask("which savings account", answer or f"From the one named {source['name']}.", *_ASKS_ACCOUNT)
    draft.ask("amount", f"I need {euros(wanted)}.", *_ASKS_AMOUNT)
    draft.do("list_accounts", customer_id=client.id)
    looked, record, others = draft.actions, source["account_id"], {}
    target = {"to_account_id": client.current["account_id"], "amount": wanted, "reference": "From savings"}
    if source["matures_on"] and source["matures_on"] > world.today.isoformat():
        draft.refuse(client, "transfers", "term_locked", record, "The term account has not matured.")
    elif wanted > source["balance"]:
        draft.refuse(client, "transfers", "insufficient_funds", record, "The account does not hold enough.")
    else:
        draft.do("move_money", from_account_id=record, **target)
        if variation == 3:
            second = {"from_account_id": client.savings["account_id"], **target}
            others["from the other account"] = (*looked, GoldenAction("move_money", second))
    goal = f"Have {euros(wanted)} moved to the current account in one go."
    return draft.task(_OPENINGS, goal=goal, declines=("limit", "close", "overdraft", "part of"), others=others)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 7, between own accounts."""
    reading = Reading(task)
    savings = [row for row in reading.mine("accounts") if row["kind"] != "current"]
    answer = reading.say("which savings account")
    amount = reading.amount(reading.say("amount"))
    if "either" in answer:
        enough = [row for row in savings if row["kind"] == "savings" and row["balance"] >= amount]
        source = enough[-1]
    else:
        source = reading.named(savings, answer)
    if source["kind"] == "term_savings" and reading.age(source["matures_on"]) < 0:
        reading.refuse("transfers", "term_locked", source["account_id"])
    elif source["balance"] < amount:
        reading.refuse("transfers", "insufficient_funds", source["account_id"])
    else:
        (current,) = reading.mine("accounts", kind="current")
        ids = {"from_account_id": source["account_id"], "to_account_id": current["account_id"]}
        reading.create("transfers", **ids, amount=amount, status="completed")
        reading.book(source["account_id"], -amount)
        reading.book(current["account_id"], amount)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
