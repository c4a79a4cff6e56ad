"""A cash machine paid out too little: whose machine it was and how much is missing decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import ASKS_PAYMENT, euros, short_day

NAME = "atm_shortfall"
_OPENINGS = (
    "Hello, a cash machine gave me less money than it took from my account. {who}",
    "{who} The ATM swallowed part of my cash! I asked for more than I got.",
    "Hi, I withdrew money and the machine counted out too few notes, but the full sum was booked. {who}",
)
_ASKS_RECEIVED = (
    "how much did you",
    "how much did the",
    "pay out",
    "gave you",
    "give you",
    "how much cash",
    "how much money",
    "how much came",
    "how much was paid",
    "how much you",
    "actually receive",
    "did you receive",
    "amount you received",
    "did you get",
    "dispensed",
    "came out",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: our machine (0), another bank's (1), too old (2), our machine and much missing (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    machine = rng.choice(people.OTHER_MACHINES if variation == 1 else people.BANK_MACHINES)
    ago = rng.randrange(33, 70) if variation == 2 else rng.randrange(1, 24)
    withdrawn = float(world.tens(350, 500) if variation == 3 else world.tens(80, 240, 20))
    received = float(world.tens(10, 70) if variation == 3 else world.tens(10, int(withdrawn) - 20))
    card = rng.choice(client.cards[:2])
    withdrawal = world.payment(card, machine, withdrawn, ago, kind="atm_withdrawal")
    world.payment(card, machine, withdrawn, ago + 6, kind="atm_withdrawal")
    world.payment(card, rng.choice(people.OTHER_MACHINES), 50.0, ago + 9, kind="atm_withdrawal")
    draft.meet(client)
    answer = f"The withdrawal of {short_day(withdrawal['posted_on'])} at {machine}."
    draft.ask(
        "which withdrawal",
        answer,
        *ASKS_PAYMENT,
        "which withdrawal",
        "what withdrawal",
        "did you withdraw",
        "which cash machine",
        "date of the withdrawal",
        "which machine",
        "which atm",
    )
    draft.ask("cash received", f"Only {euros(received)} came out.", *_ASKS_RECEIVED)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_transactions", account_id=client.current["account_id"])
    record, missing = withdrawal["transaction_id"], withdrawn - received
    if withdrawal["posted_on"] < world.day(RULES.atm_days):
        draft.refuse(client, "disputes", "window_passed", record, "The withdrawal is too old to be disputed.")
    else:
        statement = "The machine paid out less than was booked."
        made = draft.do(
            "open_dispute", transaction_id=record, reason="atm_shortfall", amount=missing, statement=statement
        )
        if machine in people.BANK_MACHINES and missing <= RULES.atm_credit_max:
            draft.do("give_provisional_credit", dispute_id=draft.result(made, "dispute_id"))
    goal = "Get the cash that the machine did not pay out; the card stays in use."
    return draft.task(_OPENINGS, goal=goal, declines=("block", "freeze", "replacement", "close"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 5, cash machine."""
    reading = Reading(task)
    withdrawal = reading.named(reading.mine("transactions", kind="atm_withdrawal"), reading.say("which withdrawal"))
    if reading.age(withdrawal["posted_on"]) > RULES.atm_days:
        reading.refuse("disputes", "window_passed", withdrawal["transaction_id"])
        return reading.outcome()
    missing = withdrawal["amount"] - reading.amount(reading.say("cash received"))
    ours = withdrawal["counterparty"].startswith("Tidewell ATM")
    credit = missing if ours and missing <= RULES.atm_credit_max else 0
    reading.create(
        "disputes",
        transaction_id=withdrawal["transaction_id"],
        reason="atm_shortfall",
        amount=missing,
        provisional_credit=credit,
    )
    if credit:
        reading.book(withdrawal["account_id"], credit)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
