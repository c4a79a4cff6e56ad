"""A small suite for tests of the checks: a lending library. ``broken`` spoils it in one way that a check must find."""

from dataclasses import replace
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from tbadapters.core.errors import ToolError
from tbadapters.core.grading import EndState, Expectation, GoldenAction, Outcome, Ref, RequiredFact
from tbadapters.core.state import TableRules
from tbadapters.core.suite import Suite, Task, UserBrief, UserFact
from tbadapters.sandboxes.sqlite import Records, reads, sqlite_suite, writes
from tbadapters.suites.build import Workflow, build_tasks, rule_of

SCHEMA = """
CREATE TABLE members (member_id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL UNIQUE);
CREATE TABLE loans (
  loan_id TEXT PRIMARY KEY,
  member_id TEXT NOT NULL REFERENCES members (member_id),
  due TEXT NOT NULL,
  renewed INTEGER NOT NULL DEFAULT 0 CHECK (renewed IN (0, 1)),
  fee REAL NOT NULL DEFAULT 0 CHECK (fee >= 0),
  seen TEXT NOT NULL DEFAULT ''
);
CREATE TABLE tickets (
  ticket_id TEXT PRIMARY KEY,
  member_id TEXT NOT NULL REFERENCES members (member_id),
  loan_id TEXT REFERENCES loans (loan_id),
  reason TEXT NOT NULL CHECK (reason IN ('renewal', 'fee', 'lost')),
  body TEXT NOT NULL
);
CREATE TABLE notes (
  note_id TEXT PRIMARY KEY,
  ticket_id TEXT NOT NULL REFERENCES tickets (ticket_id),
  team TEXT NOT NULL,
  body TEXT NOT NULL
);
"""
RULES = {
    "loans": TableRules(money=frozenset({"fee"}), volatile=frozenset({"seen"})),
    "tickets": TableRules(natural_key=("member_id", "loan_id"), free_text=frozenset({"body"})),
    "notes": TableRules(natural_key=("ticket_id",), free_text=frozenset({"body"})),
}
Team = Literal["desk", "stacks"]


@reads
async def get_member(db: Records, member_id: Annotated[str, Field(description="The member's id.")]) -> dict[str, Any]:
    """Look a member up."""
    return db.get("members", member_id)


@reads
async def list_loans(db: Records, member_id: str) -> list[dict[str, Any]]:
    """List a member's loans."""
    return db.all("SELECT * FROM loans WHERE member_id = ? ORDER BY loan_id", member_id)


@writes
async def renew_loan(db: Records, loan_id: str, due: str) -> dict[str, Any]:
    """Renew a loan until a date."""
    return db.update("loans", loan_id, due=due, renewed=1)


@writes
async def waive_fee(db: Records, loan_id: str, amount: float) -> dict[str, Any]:
    """Waive a part of a loan's fee."""
    return db.update("loans", loan_id, fee=db.get("loans", loan_id)["fee"] - amount)


@writes
async def mark_seen(db: Records, loan_id: str, remark: str) -> dict[str, Any]:
    """Mark a loan as seen."""
    return db.update("loans", loan_id, seen=remark)


@writes
async def open_ticket(
    db: Records, member_id: str, loan_id: str, reason: Literal["renewal", "fee", "lost"], body: str
) -> dict[str, Any]:
    """Open a ticket about a loan."""
    if db.get("loans", loan_id)["member_id"] != member_id:
        raise ToolError(f"The loan {loan_id!r} is not one of {member_id!r}.")
    ticket = db.new_id("TKT")
    return db.insert("tickets", ticket_id=ticket, member_id=member_id, loan_id=loan_id, reason=reason, body=body)


@writes
async def add_note(db: Records, ticket_id: str, team: Team, body: str) -> dict[str, Any]:
    """Add a note to a ticket, for a team."""
    return db.insert("notes", note_id=db.new_id("NTE"), ticket_id=ticket_id, team=team, body=body)


TOOLS = [get_member, list_loans, renew_loan, waive_fee, mark_seen, open_ticket, add_note]


def world(rng: Random) -> dict[str, Any]:
    first = rng.randrange(100, 800)
    members = [
        {"member_id": f"M{first + n}", "name": f"Member {first + n}", "email": f"m{first + n}@x"} for n in range(3)
    ]
    loans = [
        {
            "loan_id": f"L{first + n}",
            "member_id": members[n // 2]["member_id"],
            "due": f"2026-03-{rng.randrange(10, 20)}",
            "renewed": rng.choice([0, 1]),
            "fee": rng.choice([4.5, 12.0, 30.0]),
        }
        for n in range(6)
    ]
    return {"now": "2026-03-02T09:00:00", "tables": {"members": members, "loans": loans}}


def task(drawn: dict[str, Any], opening: str, *ends: EndState, facts: tuple[RequiredFact, ...] = ()) -> Task:
    member = drawn["tables"]["members"][0]["member_id"]
    user = UserBrief(opening, (UserFact("the member's id", f"My id is {member}.", ("id",)),))
    return Task("", f"I am {member}. {opening}", user, Expectation(ends, facts), drawn)


def ask_to_renew(rng: Random, variation: int) -> Task:
    drawn = world(rng)
    loan = drawn["tables"]["loans"][0]
    member, key = loan["member_id"], loan["loan_id"]
    look = GoldenAction("list_loans", {"member_id": member})
    if loan["renewed"]:
        texts = {"reason": "renewal", "body": "The loan was renewed before."}
        act = GoldenAction("open_ticket", {"member_id": member, "loan_id": key, **texts})
        note = {"ticket_id": Ref(1, "ticket_id"), "team": "desk", "body": "Please look at it."}
        end = EndState("refused", (look, act, GoldenAction("add_note", note)))
        return task(drawn, f"Renew {key}.", end)
    fact = RequiredFact("the new date", ("2026-04-20",))
    act = GoldenAction("renew_loan", {"loan_id": key, "due": "2026-04-20"})
    return task(drawn, f"Renew {key} until 2026-04-20.", EndState("renewed", (look, act)), facts=(fact,))


def renewal_rule(asked: Task) -> Outcome:
    loan = asked.world["tables"]["loans"][0]
    if loan["renewed"]:
        ticket = {"member_id": loan["member_id"], "loan_id": loan["loan_id"], "reason": "renewal"}
        return Outcome("refused", created=(("tickets", ticket), ("notes", {"team": "desk"})))
    return Outcome("renewed", {"loans": {loan["loan_id"]: {"due": "2026-04-20", "renewed": True}}})


def ask_for_fees(rng: Random, variation: int) -> Task:
    drawn = world(rng)
    one, two = drawn["tables"]["loans"][:2]

    def report(loan: dict[str, Any], reason: str) -> GoldenAction:
        keys = {"member_id": loan["member_id"], "loan_id": loan["loan_id"]}
        return GoldenAction("open_ticket", {**keys, "reason": reason, "body": "It was lost by us."})

    waive = GoldenAction("waive_fee", {"loan_id": one["loan_id"], "amount": 2.5})
    end = EndState("reported", (report(one, "fee"), report(two, "lost"), waive))
    return task(drawn, f"Report {one['loan_id']} and {two['loan_id']}.", end)


def fees_rule(asked: Task) -> Outcome:
    one, two = asked.world["tables"]["loans"][:2]
    tickets = [
        ("tickets", {"member_id": loan["member_id"], "loan_id": loan["loan_id"], "reason": reason})
        for loan, reason in ((one, "fee"), (two, "lost"))
    ]
    return Outcome("reported", {"loans": {one["loan_id"]: {"fee": one["fee"] - 2.5}}}, tuple(tickets))


WORKFLOWS = [Workflow("renewal", 4, ask_to_renew, renewal_rule), Workflow("fees", 2, ask_for_fees, fees_rule)]


def load(*, suite_seed: int = 0, broken: str = "") -> Suite:
    """Return the suite, spoilt in the way that ``broken`` names."""
    tasks = build_tasks("library", WORKFLOWS, 0 if broken == "same_tasks" else suite_seed)
    tasks = tuple(TASKS_BROKEN[broken](t) if broken in TASKS_BROKEN else t for t in tasks)
    return sqlite_suite(
        name="library",
        schema=SCHEMA,
        policy="A loan is renewed once. Fees are waived by 2.50.",
        tools=TOOLS,
        tasks=tasks,
        rules={**RULES, **RULES_BROKEN.get(broken, {})},
        seed=suite_seed,
        reseed=lambda seed: load(suite_seed=seed, broken=broken),
        rule=rule_of([replace(w, rule=_other_rule) for w in WORKFLOWS] if broken == "other_rule" else WORKFLOWS),
    )


RULES_BROKEN: dict[str, dict[str, TableRules]] = {
    "ungraded_date": {"loans": replace(RULES["loans"], volatile=frozenset({"seen", "due"}))},
    "graded_text": {"tickets": replace(RULES["tickets"], free_text=frozenset())},
    "by_counter": {"tickets": TableRules(free_text=frozenset({"body"}))},
    "blind": {
        "loans": TableRules(volatile=frozenset({"due", "renewed", "fee", "seen"})),
        "tickets": TableRules(natural_key=("member_id", "loan_id"), free_text=frozenset({"body", "reason"})),
    },
}


def _other_rule(asked: Task) -> Outcome:
    loan = asked.world["tables"]["loans"][0]
    return Outcome(renewal_rule(asked).end_state, {"loans": {loan["loan_id"]: {"fee": 0}}})


def _with_end(one: Task, *actions: GoldenAction, **changes: Any) -> Task:
    end = replace(one.expectation.end_states[0], actions=actions)
    return replace(one, expectation=replace(one.expectation, end_states=(end,), **changes))


def _golden_errors(one: Task) -> Task:
    return _with_end(one, GoldenAction("renew_loan", {"loan_id": "L0", "due": "2026-05-05"}))


def _misfit(one: Task) -> Task:
    first, *rest = one.expectation.end_states[0].actions
    return _with_end(one, first, *rest, GoldenAction("get_member", {"member_id": "M0", "verbose": True}))


def _does_nothing(one: Task) -> Task:
    return _with_end(one, required_facts=())


def _bare_refusal(one: Task) -> Task:
    return _with_end(one, required_facts=(RequiredFact("a refusal", ("refused",)),))


def _bare_escalation(one: Task) -> Task:
    return _with_end(one, required_facts=(RequiredFact("an escalation", ("escalated",)),))


def _only_reading(one: Task) -> Task:
    member = one.world["tables"]["members"][0]["member_id"]
    fact = RequiredFact("that records were looked at", ("looked at your records",))
    return _with_end(one, GoldenAction("get_member", {"member_id": member}), required_facts=(fact,))


def _needless_action(one: Task) -> Task:
    loan = one.world["tables"]["loans"][0]["loan_id"]
    seen = GoldenAction("mark_seen", {"loan_id": loan, "remark": "seen"})
    return _with_end(one, *one.expectation.end_states[0].actions, seen)


def _one_fact_says_all(one: Task) -> Task:
    facts = (RequiredFact("one", ("12 days",)), RequiredFact("two", ("12",)))
    return replace(one, expectation=replace(one.expectation, required_facts=facts))


def _alone(one: Task) -> Task:
    members, loans = one.world["tables"]["members"][:1], one.world["tables"]["loans"][:1]
    alone = {**one.world, "tables": {"members": members, "loans": [{**loans[0], "renewed": 0}]}}
    act = GoldenAction("renew_loan", {"loan_id": loans[0]["loan_id"], "due": "2026-04-20"})
    return replace(_with_end(one, act), world=alone)


TASKS_BROKEN = {
    "golden_errors": _golden_errors,
    "misfit": _misfit,
    "does_nothing": _does_nothing,
    "bare_refusal": _bare_refusal,
    "bare_escalation": _bare_escalation,
    "only_reading": _only_reading,
    "needless_action": _needless_action,
    "one_fact_says_all": _one_fact_says_all,
    "alone": _alone,
}
