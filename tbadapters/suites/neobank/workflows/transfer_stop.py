"""A transfer should not go through, or come back: how far it got decides, and why."""

from random import Random

from tbadapters.core.grading import Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES
from tbadapters.suites.neobank.wording import euros

NAME = "transfer_stop"
_OPENINGS = (
    "Hello, I need you to stop a transfer to {payee}, please be quick. {who}",
    "{who} My transfer to {payee} must not happen. Can you get it back?",
    "Hi, about the money I sent to {payee}: please stop it. {who}",
)
_WHY = {
    "wrong_payee": "I picked the wrong person from my list.",
    "wrong_amount": "I typed the wrong amount, there is a zero too many.",
    "duplicate": "I sent it twice by mistake.",
}
_CHANGED_MIND = ("I changed my mind about buying it.", "We had an argument, and I don't want to pay any more.")
_ASKS_WHICH = (
    "which transfer",
    "which one",
    "which of the",
    "what transfer",
    "transfer id",
    "how much was the transfer",
    "amount of the transfer",
    "which amount",
    "what amount",
)
_ASKS_WHY = ("why", "reason", "what happened", "what went wrong", "how come")


def build(rng: Random, variation: int) -> Task:
    """Return a task: scheduled (0), recalled (1), no reason for a recall (2), too late (3), held (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    client = world.client()
    payee = world.payee(client.row)
    status = {0: "scheduled", 4: "held"}.get(variation, "completed")
    ago = {0: -rng.randrange(1, 9), 3: rng.randrange(12, 30), 4: 0}.get(variation, rng.randrange(1, 9))
    amount = float(world.tens(120, 900))
    transfer = world.transfer(client.current, payee, amount, ago, status)
    world.transfer(client.current, payee, amount + rng.choice((15, 25, 35)), ago, status)
    world.transfer(client.current, world.payee(client.row), amount, ago, status)
    why = rng.choice(tuple(_WHY))
    draft.meet(client)
    draft.ask("which transfer", f"The one of {euros(amount)}.", *_ASKS_WHICH)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_transfers", account_id=client.current["account_id"])
    sentence = rng.choice(_CHANGED_MIND) if variation == 2 else _WHY[why]
    (draft.ask if status == "completed" else draft.know)("why", sentence, *_ASKS_WHY)
    record = transfer["transfer_id"]
    if status == "scheduled":
        draft.do("cancel_transfer", transfer_id=record)
    elif status == "held":
        draft.escalate(client, "transfers", "payments", record, "Wants to stop a transfer that is held.")
    elif variation == 2:
        draft.refuse(client, "transfers", "not_recallable", record, "Changed their mind about a completed transfer.")
    elif transfer["execute_on"] < world.day(RULES.recall_days):
        draft.refuse(client, "transfers", "recall_window_passed", record, "The transfer is too old to be recalled.")
    else:
        draft.do("request_recall", transfer_id=record, reason=why)
    goal = "Keep the money of one transfer, the others are right."
    return draft.task(_OPENINGS, goal=goal, declines=("freeze", "block", "dispute", "close"), payee=payee["name"])


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 7, stopping a transfer."""
    reading = Reading(task)
    payee = next(row for row in reading.mine("payees") if row["name"] in task.opening)
    transfers = reading.mine("transfers", payee_id=payee["payee_id"])
    transfer = reading.named(transfers, reading.say("which transfer"))
    key, why = transfer["transfer_id"], reading.say("why")
    words = {"wrong person": "wrong_payee", "wrong amount": "wrong_amount", "twice": "duplicate"}
    reason = next((reason for phrase, reason in words.items() if phrase in why), None)
    if transfer["status"] == "scheduled":
        reading.set("transfers", key, status="cancelled")
    elif transfer["status"] == "held":
        reading.escalate("transfers", "payments", key)
    elif reason is None:
        reading.refuse("transfers", "not_recallable", key)
    elif reading.age(transfer["execute_on"]) > RULES.recall_days:
        reading.refuse("transfers", "recall_window_passed", key)
    else:
        reading.set("transfers", key, status="recall_requested", recall_reason=reason)
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
