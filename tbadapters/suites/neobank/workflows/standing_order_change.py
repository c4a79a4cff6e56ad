"""A standing order should change or end: the next execution and the new amount decide."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import euros

NAME = "standing_order_change"
_CHANGES = (
    "Hello, my standing order to {payee} has to change, the amount is another one now. {who}",
    "{who} Please adjust the monthly standing order to {payee}, I have to pay a different amount.",
)
_ENDS = (
    "Hello, please end a standing order to {payee}, I don't need it any more. {who}",
    "{who} I want to cancel one of my standing orders to {payee}.",
)
_ASKS_ORDER = ("which standing order", "which order", "which one", "which of the", "what standing order", "order id")
_ASKS_AMOUNT = ("new amount", "how much", "what amount", "which amount", "amount should", "amount would")


def build(rng: Random, variation: int) -> Task:
    """Return a task: changed without a check (0), raised with a check (1), due too soon (2), cancelled (3), lowered (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    payee = world.payee(client.row)
    due_in = rng.randrange(3) if variation == 2 else rng.randrange(4, 28)
    # Down to an amount that would need a check if it were a raise.
    low, high = (1300, 1600) if variation == 4 else (300, 600)
    amount = float(world.tens(low, high))
    order = world.standing_order(client.current, payee, amount, due_in)
    world.standing_order(client.current, payee, amount - 145, due_in + 1)
    world.standing_order(client.current, world.payee(client.row), amount, 9)
    above = RULES.order_check_above
    wanted = world.tens(above + 20, 1200) if variation in {1, 4} else world.tens(610, above)
    draft.meet(client)
    draft.ask("which standing order", f"The one that is {euros(amount)} now.", *_ASKS_ORDER)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_standing_orders", account_id=client.current["account_id"])
    record, ends = order["order_id"], variation == 3
    soon = order["next_on"] <= world.day(-RULES.order_notice_days)
    if not ends:
        (draft.know if soon else draft.ask)("new amount", f"It should be {euros(wanted)} from now on.", *_ASKS_AMOUNT)
    if soon:
        draft.refuse(client, "transfers", "too_close_to_execution", record, "The standing order is due too soon.")
    elif ends:
        draft.do("cancel_standing_order", order_id=record)
    else:
        if wanted > max(above, order["amount"]):
            draft.verify(client)
        draft.do("change_standing_order", order_id=record, amount=wanted)
    goal = "Have one standing order ended." if ends else f"Have one standing order set to {euros(wanted)} a month."
    openings = _ENDS if ends else _CHANGES
    return draft.task(openings, goal=goal, declines=("freeze", "block", "close"), payee=payee["name"])


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 7, standing orders."""
    reading = Reading(task)
    payee = next(row for row in reading.mine("payees") if row["name"] in task.opening)
    orders = reading.mine("standing_orders", payee_id=payee["payee_id"])
    order = reading.named(orders, reading.say("which standing order"))
    key = order["order_id"]
    if -reading.age(order["next_on"]) <= RULES.order_notice_days:
        reading.refuse("transfers", "too_close_to_execution", key)
    elif "end a" in task.opening or "cancel" in task.opening:
        reading.set("standing_orders", key, status="cancelled")
    else:
        wanted = reading.amount(reading.say("new amount"))
        checked = wanted > RULES.order_check_above and wanted > order["amount"]
        if not checked or reading.identified(category="transfers"):
            reading.set("standing_orders", key, amount=wanted)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
