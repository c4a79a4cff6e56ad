"""A direct debit should come back: its age decides, and whether it was ever authorised."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import ASKS_PAYMENT, euros, long_day

NAME = "direct_debit_return"
_OPENINGS = (
    "Hi, {company} has collected money from my account, and I want it back. {who}",
    "{who} Please return a direct debit of {company}.",
    "Hello, I'd like to have a direct debit by {company} reversed. {who}",
)
_NEVER = ("No, I never gave them permission.", "Never, I have no contract with them at all.")
_ONCE = ("Yes, I had signed up with them back then.", "Yes, I gave them my account when I joined.")
_ASKS_PERMISSION = (
    "authorise",
    "authorised",
    "authorize",
    "authorized",
    "permission",
    "agree to",
    "mandate",
    "consent",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: recent (0), older and never authorised (1), older and authorised (2), far too old (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    company, other = rng.sample(people.COMPANIES, 2)
    ago = (rng.randrange(3, 50), rng.randrange(65, 300), rng.randrange(65, 300), rng.randrange(400, 500))[variation]
    amount = world.cents(18, 140)
    debit = world.booking(client.current, "direct_debit", company, amount, ago)
    world.booking(client.current, "direct_debit", company, round(amount + 2, 2), ago + 31)
    world.booking(client.current, "direct_debit", other, amount, ago + 2)
    never = variation != 2 and (variation == 1 or rng.random() < 0.5)
    draft.meet(client)
    answer = f"The one of {long_day(debit['posted_on'])}, {euros(amount)}."
    draft.ask("which direct debit", answer, *ASKS_PAYMENT, "which direct debit", "which debit", "what date")
    permission = rng.choice(_NEVER if never else _ONCE)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_transactions", account_id=client.current["account_id"])
    record, old = debit["transaction_id"], debit["posted_on"] < world.day(RULES.debit_return_days)
    too_old = debit["posted_on"] < world.day(RULES.debit_unauthorised_days)
    (draft.ask if old and not too_old else draft.know)("ever authorised", permission, *_ASKS_PERMISSION)
    if not old:
        draft.do("return_direct_debit", transaction_id=record)
        draft.tell_amount("the amount returned", amount)
    elif never and not too_old:
        draft.escalate(client, "disputes", "payments", record, "Never authorised this company to collect.")
    else:
        draft.refuse(client, "disputes", "window_passed", record, "The direct debit is too old to be returned.")
    goal = f"Get one direct debit of {company} back."
    return draft.task(
        _OPENINGS, goal=goal, declines=("block", "freeze", "replacement", "dispute", "close"), company=company
    )


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 5, direct debits."""
    reading = Reading(task)
    debits = [row for row in reading.mine("transactions", kind="direct_debit") if row["counterparty"] in task.opening]
    debit = reading.named(debits, reading.say("which direct debit"))
    age, record = reading.age(debit["posted_on"]), debit["transaction_id"]
    if age <= RULES.debit_return_days:
        reading.set("transactions", record, status="returned")
        reading.book(debit["account_id"], debit["amount"])
    elif age <= RULES.debit_unauthorised_days and "never" in reading.say("ever authorised").lower():
        reading.escalate("disputes", "payments", record)
    else:
        reading.refuse("disputes", "window_passed", record)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
