"""Runs made of seeded outcomes instead of trials: what the tests of figures and reports read."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path

from tbadapters.core.grading import Verdict
from tbadapters.core.messages import Entry, ModelRequest, Usage
from tbadapters.core.records import AttemptRecord, FaultRecord
from tbadapters.core.result import RunResult
from tbadapters.core.state import Effect
from tbadapters.core.store import Store, write_manifest
from tbadapters.core.task_info import TaskInfo
from tbadapters.core.tools import Change, ToolCall, ToolResult

WORKFLOWS = ("card_block", "dispute", "transfer", "fee_refund", "limit_change", "identity_check")
END_STATES = {
    "refunded": (
        'open_ticket(account="ACC-7", topic="fee")',
        'refund_fee(account="ACC-7", fee="FEE-3", amount="25.00")',
    )
}
WRONG = Effect("wrong_value", "accounts", "ACC-7", "balance", "100.00", "130.00", "125.00", 1, 1)
MISSING = Effect("missing", "tickets", "T-1", None, None, None, {"topic": "fee", "status": "open"}, None, 0)
UNEXPECTED = Effect("unexpected", "cards", "C-9", "status", "active", "blocked", "active", 1)
FLAWS = ((WRONG,), (MISSING,), (UNEXPECTED,), (WRONG, MISSING), ())


def record(
    task: str,
    index: int,
    passed: bool | None,
    *,
    effects: Sequence[Effect] = (),
    attempt: int = 0,
    usage: Usage | None = None,
    cost: float | None = 0.002,
    end_reason: str = "settled",
    said: str = "Done: I refunded the fee of 25.00 to your account.",
    asked: str = "I was charged a fee twice, please put it right.",
    note: str = "needle",
) -> AttemptRecord:
    """Return one attempt; ``passed=None`` is one that a provider's fault ended."""
    wrote = (Change("accounts", "ACC-7", "balance"),)
    calls = (
        ToolCall(0, "get_account", {"account": "ACC-7"}, ToolResult('{"balance": "100.00"}'), seconds=0.001),
        ToolCall(1, "refund_fee", {"account": "ACC-7", "note": note}, ToolResult("ok", changes=wrote), "triage", 0.002),
    )
    transcript = (
        Entry("user", asked),
        Entry("model_request", "gpt-4o-mini"),
        Entry("tool_call", "", {"index": 0}),
        Entry("tool_call", "", {"index": 1}),
        Entry("agent", said),
    )
    fault = None if passed is not None else FaultRecord("provider", "rate_limit", "429: slow down")
    reasons = () if passed is not False else tuple(f"{e.kind} in {e.table}" for e in effects) or ("fee not named",)
    verdict = None if passed is None else Verdict(passed, float(passed), tuple(effects), reasons, "refunded")
    tokens = usage if usage is not None else Usage(1000, 400, 100, 20)
    return AttemptRecord(
        task=task,
        index=index,
        attempt=attempt,
        end_reason="fault" if passed is None else end_reason,
        verdict=verdict,
        fault=fault,
        transcript=transcript,
        tool_calls=calls,
        requests=(ModelRequest("gpt-4o-mini", tokens, "triage"), ModelRequest("gpt-4o-mini", Usage(10, 0, 5))),
        cost=cost,
        seconds={"setup": 0.1, "agent": 1.5, "grading": 0.05, "total": 1.65},
    )


def result_of(
    outcomes: Sequence[Sequence[bool | None]], *, k: int | None = None, agent: str = "my-agent", **options: object
) -> RunResult:
    """Return the run whose task i had these outcomes; ``None`` is a trial without verdict, a short row was cut off."""
    tasks = tuple(TaskInfo(f"bank/t{i}", ("even" if i % 2 == 0 else "odd",), END_STATES) for i in range(len(outcomes)))
    records = [
        record(task.id, index, passed, effects=() if passed is not False else (WRONG,))
        for task, row in zip(tasks, outcomes, strict=True)
        for index, passed in enumerate(row)
    ]
    planned = k or max(len(row) for row in outcomes)
    return RunResult("bank", agent, "langgraph", planned, 0, tasks, tuple(records), **options)


def seeded_result(
    *,
    tasks: int = 30,
    trials: int = 5,
    skill: float = 0.7,
    faults: float = 0.0,
    seed: int = 0,
    agent: str = "my-agent",
    framework: str = "langgraph",
) -> RunResult:
    """Return a run of tasks that differ in difficulty, with every kind of flaw among its failures."""
    chance = random.Random(seed)
    infos, records, faulted = [], [], []
    for number in range(tasks):
        flow = WORKFLOWS[number % len(WORKFLOWS)]
        info = TaskInfo(
            f"neobank/{flow}/{number // len(WORKFLOWS)}", (flow, chance.choice(("refusal", "fact"))), END_STATES
        )
        ease = min(1.0, max(0.0, chance.gauss(skill, 0.3)))
        infos.append(info)
        for index in range(trials):
            if chance.random() < faults:
                again = chance.random() < 0.5
                lost = record(info.id, index, None)
                (faulted if again else records).append(lost)
                if not again:
                    continue
            passed = chance.random() < ease
            ending = "settled" if passed else chance.choice(("settled", "settled", "tool_calls", "agent_ended"))
            flaw = () if passed else chance.choice(FLAWS)
            records.append(record(info.id, index, passed, effects=flaw, end_reason=ending))
    return RunResult("neobank", agent, framework, trials, seed, tuple(infos), tuple(records), tuple(faulted))


def keep(result: RunResult, folder: Path) -> Path:
    """Fill a run folder with a run, as if its trials had been run."""
    folder.mkdir(parents=True)
    settings = {"suite": result.suite, "agent": result.agent, "framework": result.framework, "limits": {}}
    settings |= {"trials": result.trials_per_task, "seed": result.seed}
    write_manifest(folder, {"settings": settings, "tasks": [task.to_dict() for task in result.tasks]})

    async def kept() -> None:
        async with Store.open(folder) as store:
            for attempt in (*result.faulted, *result.records):
                await store.add(attempt)

    asyncio.run(kept())
    return folder
