"""One trial as a reader wants it: what was said and called in order, and each effect side by side."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tbadapters.core.records import AttemptRecord
from tbadapters.core.state import Effect
from tbadapters.core.suite import Task
from tbadapters.core.task_info import TaskInfo, call_line
from tbadapters.core.tools import ToolCall
from tbadapters.reports.text import money


@dataclass(frozen=True, slots=True)
class CallView:
    """An executed tool call; ``caused`` numbers (from 1) the effects that it caused."""

    index: int
    line: str
    result: str
    is_error: bool
    wrote: bool
    actor: str | None
    caused: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the conversation: something said or noted, or a tool call."""

    kind: str
    text: str
    call: CallView | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of an effect; a value is None where there was no row or no value."""

    column: str
    initial: str | None
    final: str | None
    expected: str | None

    @property
    def differs(self) -> bool:
        """Whether the final value is not the expected one."""
        return self.final != self.expected


@dataclass(frozen=True, slots=True)
class EffectView:
    """One effect, its values side by side.

    Attributes:
        number: From 1.
        kind: Its class.
        place: Table, key and column.
        cells: One a column.
        caused_by: The tool call that did it, as a line, or None.
        call: That call's index, or None.
        golden: The golden action whose effect is missing or wrong, as a line, or None.
    """

    number: int
    kind: str
    place: str
    cells: tuple[Cell, ...]
    caused_by: str | None
    call: int | None
    golden: str | None


@dataclass(frozen=True, slots=True)
class TrialView:
    """A trial, ready to be shown.

    Tokens and cost are the agent's; ``apart`` says what the simulated user and the judge took, ``earlier`` what ended
    each attempt before the one that decided.
    """

    task: str
    index: int
    attempt: int
    verdict: str
    end_reason: str
    end_state: str | None
    reasons: tuple[str, ...]
    fault: str | None
    steps: tuple[Step, ...]
    effects: tuple[EffectView, ...]
    model_requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds: float
    apart: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()


def trial_view(
    record: AttemptRecord, task: Task | TaskInfo | None = None, earlier: Iterable[AttemptRecord] = ()
) -> TrialView:
    """Return a trial ready to be shown; with its task, golden actions are named in words.

    Args:
        record: The attempt that decided the trial.
        task: The trial's task.
        earlier: The trial's attempts before that one.
    """
    info = TaskInfo.of(task) if isinstance(task, Task) else task
    verdict = record.verdict
    effects = tuple(_effects(record, info))
    caused: dict[int, list[int]] = defaultdict(list)
    for effect in effects:
        if effect.call is not None:
            caused[effect.call].append(effect.number)
    return TrialView(
        task=record.task,
        index=record.index,
        attempt=record.attempt,
        verdict={True: "passed", False: "failed", None: "no verdict"}[record.passed],
        end_reason=record.end_reason,
        end_state=verdict.end_state if verdict else None,
        reasons=verdict.reasons if verdict else (),
        fault=_fault(record),
        steps=tuple(_steps(record, caused)),
        effects=effects,
        model_requests=len(record.requests),
        input_tokens=record.usage.input_tokens,
        output_tokens=record.usage.output_tokens,
        cost=record.cost,
        seconds=record.seconds.get("total", 0.0),
        apart=tuple(_apart(record)),
        earlier=tuple(filter(None, map(_fault, earlier))),
    )


def _fault(record: AttemptRecord) -> str | None:
    fault = record.fault
    return None if fault is None else f"{fault.owner} ({fault.code}): {fault.message}"


def _apart(record: AttemptRecord) -> Iterator[str]:
    for name, spent in (("simulated user", record.user), ("judge", record.judge)):
        if spent.requests:
            yield f"{name} {spent.usage.total_tokens:,} tokens, {money(spent.cost)}"


def _steps(record: AttemptRecord, caused: Mapping[int, list[int]]) -> Iterator[Step]:
    left = {call.index: call for call in record.tool_calls}
    for entry in record.transcript:
        if entry.kind == "model_request":
            continue  # counted above; a line each would bury the conversation
        if entry.kind == "tool_call":
            call = left.pop((entry.data or {}).get("index", -1), None)
            if call is not None:
                yield Step("tool_call", "", _call(call, caused))
                continue
        yield Step(entry.kind, entry.text)
    for call in left.values():  # nothing that was executed may go unseen
        yield Step("tool_call", "", _call(call, caused))


def _call(call: ToolCall, caused: Mapping[int, list[int]]) -> CallView:
    numbers = tuple(caused.get(call.index, ()))
    line, result = call_line(call.name, call.arguments), call.result
    return CallView(call.index, line, result.text, result.is_error, call.wrote, call.actor, numbers)


def _effects(record: AttemptRecord, info: TaskInfo | None) -> Iterator[EffectView]:
    verdict = record.verdict
    if verdict is None:
        return
    calls = {call.index: call for call in record.tool_calls}
    for number, effect in enumerate(verdict.effects, start=1):
        call = calls.get(effect.caused_by) if effect.caused_by is not None else None
        yield EffectView(
            number=number,
            kind=effect.kind,
            place=".".join(part for part in (effect.table, effect.key, effect.column) if part is not None),
            cells=tuple(_cells(effect)),
            caused_by=None if call is None else call_line(call.name, call.arguments),
            call=effect.caused_by,
            golden=_golden(effect, verdict.end_state, info),
        )


def _golden(effect: Effect, end_state: str | None, info: TaskInfo | None) -> str | None:
    if effect.golden is None:
        return None
    named = info.golden(end_state, effect.golden) if info else None
    return named or f"golden action {effect.golden}"


def _cells(effect: Effect) -> Iterator[Cell]:
    sides = (effect.initial, effect.final, effect.expected)
    rows = [side for side in sides if isinstance(side, Mapping)]
    if effect.column is not None or not rows:
        yield Cell(effect.column or "row", *map(_value, sides))
        return
    for column in dict.fromkeys(str(name) for row in rows for name in row):
        yield Cell(column, *(_value(s.get(column)) if isinstance(s, Mapping) else _value(s) for s in sides))


def _value(value: Any) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
