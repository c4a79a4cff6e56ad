"""A new savings account, perhaps with a first deposit: papers and the number of accounts decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import euros

NAME = "savings_opening"
_OPENINGS = (
    "Hello, I'd like to open another savings account. {who}",
    "{who} Please set up a new savings account for me.",
    "Hi, I want to put money aside for something. Can you open a savings account? {who}",
)
_DEPOSITS = (
    "Hello, please open a savings account for me and put some money into it from my current account. {who}",
    "{who} I want a new savings account, with a first deposit from my current account.",
)
_ASKS_NAME = (
    "name the account",
    "name for the",
    "what name",
    "which name",
    "account be named",
    "account be called",
    "call it",
    "to call",
    "to name",
    "name it",
    "call the",
)
_ASKS_AMOUNT = ("how much", "what amount", "which amount", "deposit", "pay in")


def build(rng: Random, variation: int) -> Task:
    """Return a task: opened empty (0), opened with a deposit (1), papers expired (2), too many accounts (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client(kyc_status="expired" if variation == 2 else "verified")
    free = [name for name in people.SAVINGS_NAMES if name != client.savings["name"]]
    rng.shuffle(free)
    for name in free[: 2 if variation == 3 else 1]:
        world.account(client.row, "savings", name=name)
    world.account(client.row, "savings", name=free[3], status="closed", balance=0.0)
    matures = world.day(-200)
    world.account(client.row, "term_savings", name=free[4], matures_on=matures)
    name, amount = free[5], world.tens(50, 600)
    held = [row for row in world.tables["accounts"] if row["customer_id"] == client.id and row["kind"] == "savings"]
    count = sum(row["status"] == "open" for row in held)
    opens = client.row["kyc_status"] == "verified" and count < RULES.savings_max
    deposit = variation == 1
    draft.meet(client)
    (draft.ask if opens else draft.know)("account name", f"Please call it {name}.", *_ASKS_NAME)
    if deposit:
        draft.ask("first deposit", f"I'd like to start with {euros(amount)}.", *_ASKS_AMOUNT)
    draft.do("list_accounts", customer_id=client.id)
    if client.row["kyc_status"] == "expired":
        draft.escalate(client, "accounts", "compliance", client.id, "Wants a new account; the papers are expired.")
    elif count >= RULES.savings_max:
        draft.refuse(client, "accounts", "too_many_accounts", client.id, "Has as many savings accounts as allowed.")
    else:
        made = draft.do("open_savings_account", customer_id=client.id, name=name)
        if deposit:
            ids = {"from_account_id": client.current["account_id"], "to_account_id": draft.result(made, "account_id")}
            draft.do("move_money", **ids, amount=amount, reference="First deposit")
    goal = f"Have a savings account named {name}" + (f" with {euros(amount)} on it." if deposit else ", empty for now.")
    declines = ("close", "limit") if deposit else ("close", "deposit", "transfer")
    return draft.task(_DEPOSITS if deposit else _OPENINGS, goal=goal, declines=declines)


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 10, savings."""
    reading = Reading(task)
    if reading.customer["kyc_status"] == "expired":
        reading.escalate("accounts", "compliance", reading.id)
    elif len(reading.mine("accounts", kind="savings", status="open")) >= RULES.savings_max:
        reading.refuse("accounts", "too_many_accounts", reading.id)
    else:
        name = reading.say("account name").removeprefix("Please call it ").rstrip(".")
        deposit = "deposit" in task.opening or "put some money" in task.opening
        amount = reading.amount(reading.say("first deposit")) if deposit else 0
        owner = {"customer_id": reading.id}
        reading.create("accounts", **owner, kind="savings", name=name, status="open", balance=amount)
        if amount:
            (current,) = reading.mine("accounts", kind="current")
            reading.create("transfers", from_account_id=current["account_id"], amount=amount, status="completed")
            reading.book(current["account_id"], -amount)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
