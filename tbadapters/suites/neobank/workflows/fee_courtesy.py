"""A fee should be given back as a courtesy: kind, age, amount and earlier waivers decide."""

from random import Random

from tbadapters.core.grading import GoldenAction, Outcome
from tbadapters.core.suite import Task
from tbadapters.suites.build import Workflow
from tbadapters.suites.neobank.draft import Draft
from tbadapters.suites.neobank.reading import Reading
from tbadapters.suites.neobank.rules import RULES, TIERS, by_tier
from tbadapters.suites.neobank.wording import short_day
from tbadapters.suites.neobank.world import Row, World

NAME = "fee_courtesy"
_WORDS = {
    "overdraft": "an overdraft fee",
    "foreign_use": "a fee for paying abroad",
    "returned_payment": "a fee for a returned payment",
}
_OPENINGS = (
    "Hello, you charged me {fee}, which I find unfair. Can I have it back? {who}",
    "{who} I see {fee} on my account. I'd be glad if you could waive it.",
    "Hi, I've been a loyal customer for years and now {fee}? Please refund it. {who}",
)
_ASKS_FEE = (
    "which fee",
    "which one",
    "which of the",
    "what fee",
    "date of the fee",
    "what date",
    "which date",
    "when was",
    "fee id",
    "both fees",
    "amount of the fee",
)


def build(rng: Random, variation: int) -> Task:
    """Return a task: waived (0), waivers used (1), too old (2), too high or of another kind (3), either of two (4)."""
    draft = Draft(NAME, rng, variation)
    world = draft.world
    tier = rng.choice(TIERS[:2] if variation == 1 else TIERS)
    client = world.client(tier=tier)
    account = client.current
    kind = rng.choice(("overdraft", "foreign_use"))
    amount = world.cents(6, 24)
    if variation == 3 and rng.random() < 0.5:
        kind = "returned_payment"
    elif variation == 3:
        amount = world.cents(27, 48)
    ago = rng.randrange(64, 110) if variation == 2 else rng.randrange(3, 40)
    fee = world.fee(account, kind, amount, ago)
    twin = world.fee(account, kind, amount, ago + 14)
    used = by_tier(RULES.waivers, tier) if variation == 1 else 0
    _waived_before(world, account, used)
    draft.meet(client)
    answer = f"The one of {short_day(fee['charged_on'])}."
    if variation == 4:
        answer = "One of the two will do, I don't mind which of them."
    draft.ask("which fee", answer, *_ASKS_FEE)
    draft.do("list_accounts", customer_id=client.id)
    draft.do("list_fees", account_id=account["account_id"])
    draft.do("list_fees", account_id=client.savings["account_id"])
    reason = _refusal(draft, fee, used, by_tier(RULES.waivers, tier))
    others = {}
    if reason:
        draft.refuse(client, "fees", reason, fee["fee_id"], "The fee can't be waived as a courtesy.")
    else:
        looked = draft.actions
        draft.do("waive_fee", fee_id=fee["fee_id"], reason="courtesy")
        draft.tell_amount("the amount given back", amount)
        if variation == 4:
            others["the other fee"] = (
                *looked,
                GoldenAction("waive_fee", {"fee_id": twin["fee_id"], "reason": "courtesy"}),
            )
    goal = "Get one fee back, not more than one."
    declines = ("both", "complaint", "close", "savings")
    return draft.task(_OPENINGS, goal=goal, declines=declines, others=others, fee=_WORDS[kind])


def _waived_before(world: World, account: Row, used: int) -> None:
    """Add earlier waivers: ``used`` that count, and one that is too long ago to."""
    for charged in (420, *(65 + 90 * number for number in range(used))):
        day = world.day(charged - 5)
        world.fee(account, "overdraft", 8.5, charged, status="waived", waived_on=day, waiver_reason="courtesy")


def _refusal(draft: Draft, fee: Row, used: int, allowed: int) -> str | None:
    if fee["kind"] not in {"overdraft", "foreign_use"}:
        return "fee_not_waivable"
    if fee["charged_on"] < draft.world.day(RULES.fee_days):
        return "fee_too_old"
    if fee["amount"] > RULES.fee_max:
        return "fee_too_high"
    return "waivers_used" if used >= allowed else None


def rule(task: Task) -> Outcome:
    """Return what the policy decides: section 6, courtesy."""
    reading = Reading(task)
    kind = next(kind for kind, words in _WORDS.items() if words in task.opening)
    fees = reading.mine("fees")
    asked = [fee for fee in fees if fee["kind"] == kind and fee["status"] == "charged"]
    answer = reading.say("which fee")
    fee = asked[0] if "don't mind" in answer else reading.named(asked, answer)
    courtesies = [
        waived
        for waived in fees
        if waived["waiver_reason"] == "courtesy" and reading.age(waived["waived_on"]) <= RULES.waiver_year_days
    ]
    allowed = dict(zip(TIERS, RULES.waivers, strict=True))[reading.customer["tier"]]
    checks = {
        "fee_not_waivable": kind not in {"overdraft", "foreign_use"},
        "fee_too_old": reading.age(fee["charged_on"]) > RULES.fee_days,
        "fee_too_high": fee["amount"] > RULES.fee_max,
        "waivers_used": len(courtesies) >= allowed,
    }
    against = [reason for reason, holds in checks.items() if holds]
    if against:
        reading.refuse("fees", against[0], fee["fee_id"])
    else:
        today = reading.today.isoformat()
        reading.set("fees", fee["fee_id"], status="waived", waiver_reason="courtesy", waived_on=today)
        reading.book(fee["account_id"], fee["amount"])
    return reading.outcome()


WORKFLOW = Workflow(NAME, 5, build, rule)
