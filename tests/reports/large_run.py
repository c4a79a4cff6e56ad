"""A run as long as the published ones, of trials as long as a talkative agent's: 507 tasks x 20, made from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import anyio
from synthetic_runs import END_STATES, FLAWS

from tbadapters.core.grading import Verdict
from tbadapters.core.messages import Entry, ModelRequest, Usage
from tbadapters.core.records import AttemptRecord, FaultRecord
from tbadapters.core.store import Store, write_manifest
from tbadapters.core.task_info import TaskInfo
from tbadapters.core.tools import Change, ToolCall, ToolResult

DOMAINS = {"retail": 98, "auto_insurance": 100, "travel": 104, "neobank": 104, "consulting": 101}
EASE = {"retail": 0.75, "auto_insurance": 0.5, "travel": 0.55, "neobank": 0.6, "consulting": 0.5}
SYLLABLES = ("ac", "be", "con", "der", "est", "fi", "gal", "hu", "in", "jor", "ket", "lo", "mar", "nu", "or", "pel")
WORDS = [a + b for a in SYLLABLES for b in SYLLABLES] + [
    a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES
]
COLUMNS = ("id", "customer", "status", "amount", "currency", "opened_on", "policy", "branch", "note", "reference")


def tasks() -> tuple[TaskInfo, ...]:
    """Return 507 tasks in five domains."""
    return tuple(
        TaskInfo(f"thinkingbox/{domain}/test_{domain}_workflow.py:test_case_{number:03}", (domain,), END_STATES)
        for domain, size in DOMAINS.items()
        for number in range(size)
    )


def records(trials: int = 20, seed: int = 0, skill: float = 0.0) -> Iterator[AttemptRecord]:
    """Yield every trial: about ten turns and a dozen calls, some 20 kB; one of a hundred without a verdict."""
    for task in tasks():
        ease = random.Random(f"{seed}{task.id}").gauss(EASE[task.tags[0]] + skill, 0.35)
        for index in range(trials):
            yield _record(task, index, ease, random.Random(f"{seed}{task.id}{index}"))


def keep(folder: Path, *, trials: int = 20, seed: int = 0, skill: float = 0.0, agent: str = "my-agent") -> None:
    """Fill a run folder with such a run."""
    folder.mkdir(parents=True)
    settings = {"suite": "thinkingbox", "agent": agent, "framework": "langgraph", "trials": trials, "seed": seed}
    manifest = {
        "settings": {**settings, "limits": {}},
        "tasks": [task.to_dict() for task in tasks()],
    }
    write_manifest(folder, manifest)
    anyio.run(_kept, folder, records(trials, seed, skill))


async def _kept(folder: Path, made: Iterator[AttemptRecord]) -> None:
    async with Store.open(folder) as store:
        for record in made:
            await store.add(record)


def _record(task: TaskInfo, index: int, ease: float, chance: random.Random) -> AttemptRecord:
    fault = FaultRecord("provider", "rate_limit", "429: slow down") if chance.random() < 0.01 else None
    passed = chance.random() < ease
    effects = () if passed else chance.choice(FLAWS)
    verdict = Verdict(passed, float(passed), effects, tuple(f"{e.kind} in {e.table}" for e in effects), "refunded")
    calls = tuple(_call(task, number, chance) for number in range(chance.randint(6, 18)))
    transcript = [Entry("user", _text(chance, 40))]
    for call in calls:
        transcript += [Entry("model_request", "a-model"), Entry("tool_call", "", {"index": call.index})]
        if chance.random() < 0.45:
            transcript += [Entry("agent", _text(chance, 90)), Entry("user", _text(chance, 25))]
    transcript.append(Entry("agent", _text(chance, 120)))
    requests = tuple(ModelRequest("a-model", Usage(6000 + 900 * n, 4000, 180, 60)) for n in range(len(calls) + 2))
    ended = "fault" if fault else "settled" if chance.random() < 0.9 else "tool_calls"
    return AttemptRecord(
        task=task.id,
        index=index,
        attempt=0,
        end_reason=ended,
        verdict=None if fault else verdict,
        fault=fault,
        transcript=tuple(transcript),
        tool_calls=calls,
        requests=requests,
        cost=0.031 + 0.01 * chance.random(),
        seconds={"setup": 0.01, "agent": 20 * chance.random(), "grading": 0.01, "total": 21.5},
    )


def _call(task: TaskInfo, number: int, chance: random.Random) -> ToolCall:
    # What is read is mostly the same from trial to trial of a task; how it is asked for is the agent's own.
    world = random.Random(f"{task.id}{number % 9}")
    rows = [{name: _text(world, 2) for name in COLUMNS} for _ in range(world.randint(1, 4))]
    rows[0]["note"] = _text(chance, 6)
    arguments = {"record_id": _text(world, 1), "reason": _text(chance, 10), "limit": chance.randint(1, 50)}
    changes = (Change("accounts", "ACC-7", "balance"),) if number % 4 == 1 else ()
    name = ("get_records", "update_record", "search_policy", "list_orders")[number % 4]
    result = ToolResult(json.dumps(rows), None, chance.random() < 0.03, changes)
    return ToolCall(number, name, arguments, result, None, 0.002)


def _text(chance: random.Random, words: int) -> str:
    # As in real speech, a word's frequency is one over its rank (Zipf's law).
    picked = (WORDS[int(len(WORDS) ** chance.random()) - 1] for _ in range(words))
    return " ".join(picked)
