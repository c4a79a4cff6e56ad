"""Write a suite of your own in one file, check it, and evaluate an agent on it.

python examples/own_suite.py
tbadapters check examples/own_suite.py
"""

import asyncio
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tbadapters import (
    EndState,
    Expectation,
    GoldenAction,
    Limits,
    Outcome,
    RequiredFact,
    Suite,
    TableRules,
    Task,
    ToolError,
    UserBrief,
    UserFact,
    evaluate,
)
from tbadapters.sandboxes.sqlite import Records, reads, sqlite_suite, writes
from tbadapters.suites.build import Workflow, build_tasks, rule_of
from tbadapters.testing.checks import check_suite
from tbadapters.testing.stand_in import model_endpoint

LIMITS = Limits(model_requests=25)  # of one trial

# 1. What the backend holds. Every trial gets a clean copy.
SCHEMA = """
CREATE TABLE parcels (
  parcel_id TEXT PRIMARY KEY,
  status TEXT NOT NULL CHECK (status IN ('in_transit', 'delivered')),
  address TEXT NOT NULL
);
CREATE TABLE claims (
  claim_id TEXT PRIMARY KEY,
  parcel_id TEXT NOT NULL REFERENCES parcels (parcel_id),
  kind TEXT NOT NULL CHECK (kind IN ('wrong_address', 'damaged')),
  note TEXT NOT NULL
);
"""
RULES = {"claims": TableRules(natural_key=("parcel_id",), free_text=frozenset({"note"}))}

POLICY = """You are the desk of a parcel service. Look every parcel up first.
A parcel in transit may be redirected to an address that the customer gives: ask for it.
A delivered parcel can't be redirected: file a claim of the kind wrong_address instead.
Name the parcel when you tell the customer what was done."""

ParcelId = Annotated[str, Field(description="The parcel's number, such as P-100.")]


# 2. What an agent can do to it. Each call is a transaction; the docstring is what the agent reads.
@reads
async def find_parcel(db: Records, parcel_id: ParcelId) -> dict[str, Any]:
    """Look a parcel up."""
    return db.get("parcels", parcel_id)


@writes
async def redirect_parcel(db: Records, parcel_id: ParcelId, address: str) -> dict[str, Any]:
    """Send a parcel in transit to another address."""
    if db.get("parcels", parcel_id)["status"] == "delivered":
        raise ToolError("A delivered parcel can't be redirected.")
    return db.update("parcels", parcel_id, address=address)


@writes
async def file_claim(
    db: Records, parcel_id: ParcelId, kind: Literal["wrong_address", "damaged"], note: str
) -> dict[str, Any]:
    """File a claim about a parcel."""
    db.get("parcels", parcel_id)
    return db.insert("claims", claim_id=db.new_id("CLM"), parcel_id=parcel_id, kind=kind, note=note)


# 3. A task: the records, what the user says and knows, and the golden actions that lead to the right end.
def build(rng: Random, variation: int) -> Task:
    """Return the task of a parcel in transit (0) or of a delivered one (1)."""
    status = ("in_transit", "delivered")[variation]
    mine, other = (f"P-{number}" for number in rng.sample(range(100, 1000), 2))
    address = f"{rng.randint(1, 90)} {rng.choice(('Mill Lane', 'Station Road', 'Church Street'))}"
    parcels = [
        {"parcel_id": mine, "status": status, "address": "5 Harbour Street"},
        {"parcel_id": other, "status": "in_transit", "address": "8 Park Row"},
    ]
    look = GoldenAction("find_parcel", {"parcel_id": mine})
    redirect = GoldenAction("redirect_parcel", {"parcel_id": mine, "address": address})
    claim = GoldenAction("file_claim", {"parcel_id": mine, "kind": "wrong_address", "note": "Delivered elsewhere."})
    end = EndState("redirected", (look, redirect)) if status == "in_transit" else EndState("claimed", (look, claim))
    fact = UserFact("the new address", f"Please send it to {address}.", ("address", "where should"))
    return Task(
        id="",  # set by build_tasks
        opening=f"Hello, my parcel {mine} is on its way to an address where I don't live any more.",
        user=UserBrief(f"Have the parcel {mine} sent to {address}, or a claim filed.", facts=(fact,)),
        expectation=Expectation((end,), required_facts=(RequiredFact("the parcel's number", (mine,)),)),
        world={"now": "2026-03-02T09:00:00", "tables": {"parcels": parcels, "claims": []}},
        needs_asking=("the new address",) if status == "in_transit" else (),
    )


# 4. The policy once more, as code that reads the records and never the golden actions: the checks hold both together.
def rule(task: Task) -> Outcome:
    """Return what the policy decides."""
    parcel = next(row for row in task.world["tables"]["parcels"] if row["parcel_id"] in task.opening)
    if parcel["status"] == "delivered":
        claim = {"parcel_id": parcel["parcel_id"], "kind": "wrong_address"}
        return Outcome("claimed", created=(("claims", claim),))
    address = task.user.facts[0].answer.removeprefix("Please send it to ").removesuffix(".")
    return Outcome("redirected", rows={"parcels": {parcel["parcel_id"]: {"address": address}}})


WORKFLOWS = [Workflow("moved_house", 2, build, rule)]


def load(*, suite_seed: int = 0) -> Suite:
    """Return the suite; another seed draws other parcels and addresses."""
    return sqlite_suite(
        name="parcels",
        schema=SCHEMA,
        policy=POLICY,
        tools=[find_parcel, redirect_parcel, file_claim],
        tasks=build_tasks("parcels", WORKFLOWS, suite_seed),
        rules=RULES,
        seed=suite_seed,
        reseed=lambda seed: load(suite_seed=seed),
        rule=rule_of(WORKFLOWS),
    )


async def main() -> None:
    """Check the suite, then evaluate an agent on it."""
    suite = load()
    report = await check_suite(suite)
    print("The suite holds its checks." if report.ok else [row for row in report.rows() if not row.ok])
    async with model_endpoint(suite) as endpoint:
        print(endpoint.notice)
        provider = OpenAIProvider(base_url=endpoint.base_url, api_key=endpoint.api_key)
        agent = Agent(OpenAIChatModel(endpoint.model, provider=provider), name="parcel desk")
        print(await evaluate(agent, suite=suite, trials=5, limits=LIMITS))


if __name__ == "__main__":
    asyncio.run(main())
