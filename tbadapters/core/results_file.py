"""The shape of ``results.json``, schema ``tbadapters.results/1``; described field by field in ``docs/results.md``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tbadapters.core.bill import Bill
from tbadapters.core.messages import Usage
from tbadapters.core.records import AttemptRecord

if TYPE_CHECKING:
    from tbadapters.core.result import RunResult, TaskResult

SCHEMA = "tbadapters.results/1"
NOT_RUN = "not_run"


def result_dict(result: RunResult) -> dict[str, Any]:
    """Return a run's results as JSON-like data."""
    return {
        "schema": SCHEMA,
        "suite": result.suite,
        "agent": result.agent,
        "framework": result.framework,
        "trials_per_task": result.trials_per_task,
        "seed": result.seed,
        "stopped": result.stopped,
        "abandoned": result.abandoned,
        "disturbances": result.disturbances.to_dict(),
        "headline": result.headline,
        "notes": list(result.notes),
        "coverage": result.coverage.to_dict()
        | {
            "floor": result.coverage.floor,
            "sufficient": result.coverage.sufficient,
        },
        "figures": result.figures.to_dict(every_k=True),
        "by_tag": {
            tag: {"tasks": found.observed_all.of, "coverage": found.coverage.to_dict(), "figures": found.to_dict()}
            for tag, found in result.by_tag.items()
        },
        "failures": result.failures.to_dict(),
        "faults": [fault.to_dict() for fault in result.frequent_faults],
        "tool_faults": [found.to_dict() for found in result.tool_faults],
        "spent": _spent(result),
        "tasks": [_task(task) for task in result.by_task.values()],
        "trials": trial_dicts(result),
    }


def _spent(result: RunResult) -> dict[str, Any]:
    faulted = result.without_verdict
    return {
        "valid": _bill(result.bill),
        "without_verdict": {"attempts": len(faulted), "faults": result.infrastructure_faults} | _bill(Bill.of(faulted)),
        "price_basis": result.price_bases(),
    }


def _bill(bill: Bill) -> dict[str, Any]:
    """Return the agent's own at the top, as everywhere, and apart from it the user's and the judge's."""
    return bill.agent.to_dict() | {"user": bill.user.to_dict(), "judge": bill.judge.to_dict()}


def _task(found: TaskResult) -> dict[str, Any]:
    tally = found.tally
    return {
        "id": found.task.id,
        "tags": list(found.task.tags),
        "planned": tally.planned,
        "valid": tally.valid,
        "passed": tally.passed,
        "rate": found.rate,
        "interval": None if found.interval is None else list(found.interval),
    }


def trial_dicts(result: RunResult) -> list[dict[str, Any]]:
    """Return each planned trial as JSON-like data, by task and index."""
    attempts = Counter((r.task, r.index) for r in (*result.records, *result.faulted))
    rows = []
    for found in result.by_task.values():
        trials = {record.index: record for record in found.trials}
        for index in range(found.tally.planned):
            record = trials.get(index)
            row = _not_run(found.task.id, index) if record is None else _trial(record)
            rows.append(row | {"attempts": attempts[found.task.id, index]})
    return rows


def _trial(record: AttemptRecord) -> dict[str, Any]:
    verdict = record.verdict
    return {
        "task": record.task,
        "index": record.index,
        "verdict": {True: "passed", False: "failed", None: None}[record.passed],
        "reward": verdict.reward if verdict else None,
        "end_reason": record.end_reason,
        "end_state": verdict.end_state if verdict else None,
        "effects": [effect.to_dict() for effect in verdict.effects] if verdict else [],
        "reasons": list(verdict.reasons) if verdict else [],
        "fault": record.fault.to_dict() if record.fault else None,
        "abandoned": record.abandoned,
        "tool_calls": len(record.tool_calls),
        "usage": record.usage.to_dict(),
        "usage_by_actor": {actor: usage.to_dict() for actor, usage in record.usage_by_actor.items()},
        "cost": record.cost,
        "user": {"usage": record.user.usage.to_dict(), "cost": record.user.cost},
        "judge": {"usage": record.judge.usage.to_dict(), "cost": record.judge.cost},
        "seconds": round(record.seconds.get("total", 0.0), 6),
    }


def _not_run(task: str, index: int) -> dict[str, Any]:
    return {
        "task": task,
        "index": index,
        "verdict": None,
        "reward": None,
        "end_reason": NOT_RUN,
        "end_state": None,
        "effects": [],
        "reasons": [],
        "fault": None,
        "abandoned": False,
        "tool_calls": 0,
        "usage": Usage().to_dict(),
        "usage_by_actor": {},
        "cost": None,
        "user": {"usage": Usage().to_dict(), "cost": 0.0},
        "judge": {"usage": Usage().to_dict(), "cost": 0.0},
        "seconds": 0.0,
    }
