"""A dispute is to be withdrawn: it must be open, and provisional credit must be there to be taken back."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank import people
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.wording import ASKS_PAYMENT

NAME = "dispute_withdrawal"
_OPENINGS = (
    "Hello, I have to take back a dispute, it was my husband who had paid there. {who}",
    "{who} I disputed a payment, but now I remember what it was. Please withdraw that.",
    "Hi, one of my disputes was a mistake, could you drop it? {who}",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: no credit given (0), credit to take back (1), decided already (2), credit spent (3)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    credited = variation in {1, 3}
    amount = world.cents(35, 95)
    balance = world.cents(3, amount - 5) if variation == 3 else world.cents(400, 2000)
    client = world.client(current={"balance": balance})
    shop, other = rng.sample(people.SHOPS, 2)
    payment = world.payment(client.cards[0], shop, amount, 20)
    status = rng.choice(("won", "lost")) if variation == 2 else "open"
    dispute = world.dispute(payment, provisional_credit=amount if credited else 0.0, status=status)
    world.dispute(world.payment(client.cards[1], other, world.cents(20, 80), 25), reason="not_received")
    draft.meet(client)
    asks = (*ASKS_PAYMENT, "which dispute", "what dispute", "dispute id", "which of your disputes")
    draft.ask("which dispute", f"The dispute about {shop}.", *asks)
    draft.do("list_disputes", customer_id=client.id)
    draft.do("list_accounts", customer_id=client.id)
    record, credit = dispute["dispute_id"], dispute["provisional_credit"]
    if dispute["status"] != "open":
        draft.refuse(client, "disputes", "dispute_closed", record, "The dispute is decided already.")
    elif credit > client.current["balance"]:
        draft.escalate(client, "disputes", "disputes", record, "The credit can't be taken back from the balance.")
    else:
        draft.do("withdraw_dispute", dispute_id=record)
        if credit:
            draft.tell_amount("the amount taken back", credit)
    goal = f"Have the dispute about {shop} withdrawn, and only that one."
    return draft.task(_OPENINGS, goal=goal, declines=("block", "freeze", "replacement", "close"))


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 5, withdrawing."""
    reading = Reading(task)
    payments = reading.mine("transactions", kind="card_payment")
    payment = reading.named(payments, reading.say("which dispute"))
    dispute = reading.row("disputes", transaction_id=payment["transaction_id"])
    account = reading.row("accounts", account_id=payment["account_id"])
    credit = dispute["provisional_credit"]
    if dispute["status"] != "open":
        reading.refuse("disputes", "dispute_closed", dispute["dispute_id"])
    elif credit > 0 and account["balance"] < credit:
        reading.escalate("disputes", "disputes", dispute["dispute_id"])
    else:
        reading.set("disputes", dispute["dispute_id"], status="withdrawn")
        if credit:
            reading.set("disputes", dispute["dispute_id"], provisional_credit=0)
            reading.book(account["account_id"], -credit)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 4, build, rule)
