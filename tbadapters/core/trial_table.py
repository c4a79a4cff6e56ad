"""The planned trials of a run as a table: one row each, every cell a plain value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from tbadapters.core.errors import UsageError
from tbadapters.core.results_file import trial_dicts

if TYPE_CHECKING:
    from tbadapters.core.result import RunResult

Cell = str | int | float | bool | None
_TOKENS = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens")
_EFFECTS = ("wrong_value", "unexpected", "missing")

# Name -> the type of its values, where there is one.
COLUMNS: Mapping[str, type] = {
    "suite": str,
    "agent": str,
    "task": str,
    "tags": str,
    "index": int,
    "verdict": str,
    "reward": float,
    "end_reason": str,
    "end_state": str,
    "looked_clean": bool,
    **dict.fromkeys(_EFFECTS, int),
    "fault_owner": str,
    "fault_code": str,
    "attempts": int,
    "abandoned": bool,
    "model_requests": int,
    "tool_calls": int,
    **dict.fromkeys(_TOKENS, int),
    "cost": float,
    "user_tokens": int,
    "user_cost": float,
    "judge_tokens": int,
    "judge_cost": float,
    "seconds": float,
}


def trial_rows(result: RunResult) -> list[dict[str, Cell]]:
    """Return a row for each planned trial, those that were not run included, by task and index."""
    records = {(record.task, record.index): record for record in result.records}
    rows = []
    for trial in trial_dicts(result):
        record = records.get((trial["task"], trial["index"]))
        effects = Counter(effect["kind"] for effect in trial["effects"])
        fault = trial["fault"] or {}
        row: dict[str, Cell] = {name: trial[name] for name in COLUMNS.keys() & trial.keys()}
        row |= {
            "suite": result.suite,
            "agent": result.agent,
            "tags": " ".join(result.by_task[trial["task"]].task.tags),
            "looked_clean": None if record is None else record.looked_clean,
            **{kind: effects[kind] for kind in _EFFECTS},
            "fault_owner": fault.get("owner"),
            "fault_code": fault.get("code"),
            "model_requests": 0 if record is None else len(record.requests),
            **{name: trial["usage"][name] for name in _TOKENS},
        }
        for who in ("user", "judge"):
            usage = trial[who]["usage"]
            row |= {f"{who}_tokens": usage["input_tokens"] + usage["output_tokens"], f"{who}_cost": trial[who]["cost"]}
        rows.append({name: row[name] for name in COLUMNS})
    return rows


def dataframe(rows: Sequence[Mapping[str, Cell]], library: Literal["pandas", "polars"] | None = None) -> Any:
    """Return rows of ``COLUMNS`` as a data frame whose columns have a type even where no row has a value.

    Raises:
        UsageError: the library is not installed, or no library of this name is known.
    """
    if library not in (None, *_FRAMES):
        raise UsageError(f"library={library!r}: 'pandas', 'polars' or None is needed.")
    wanted = tuple(_FRAMES) if library is None else (library,)
    for name in wanted:
        if find_spec(name) is not None:
            return _FRAMES[name](import_module(name), rows)
    raise UsageError(f"A data frame needs {' or '.join(wanted)}, not installed here: pip install {wanted[0]}.")


def _pandas(pandas: Any, rows: Sequence[Mapping[str, Cell]]) -> Any:
    kinds = {str: "string", int: "Int64", float: "Float64", bool: "boolean"}
    return pandas.DataFrame(
        {name: pandas.array([row[name] for row in rows], dtype=kinds[kind]) for name, kind in COLUMNS.items()}
    )


def _polars(polars: Any, rows: Sequence[Mapping[str, Cell]]) -> Any:
    return polars.DataFrame([dict(row) for row in rows], schema=dict(COLUMNS))


_FRAMES = {"pandas": _pandas, "polars": _polars}
