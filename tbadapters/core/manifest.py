"""The manifest of a run: what it is made of, so that it can be resumed, compared and repeated."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tbadapters.core.approvals import policy_name
from tbadapters.core.cost import price_table_version
from tbadapters.core.figures import COVERAGE_FLOOR
from tbadapters.core.limits import Limits
from tbadapters.core.suite import Suite
from tbadapters.core.task_info import TaskInfo
from tbadapters.core.trial import TrialPlan

SCHEMA = "tbadapters.manifest/1"
_LATER = frozenset({"needs_judge", "max_user_replies", "context"})  # fields of tasks that the first manifests lack
NAMED_PACKAGES = (
    "tbadapters",
    "anyio",
    "genai-prices",
    "langchain",
    "langchain-openai",
    "langgraph",
    "mcp",
    "openai",
    "openai-agents",
    "pydantic-ai-slim",
)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result may depend on, as far as installed."""
    found = {"python": platform.python_version()}
    for package in NAMED_PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def suite_digest(suite: Suite) -> str:
    """Return a digest of all that decides a trial of the suite: tasks, policy, tools."""
    content = {
        "tasks": [_decisive(asdict(task)) for task in suite.tasks],
        "policy": suite.policy,
        "tools": [
            [t.name, t.description, t.parameters, t.needs_approval, *(["ends_turn"] if t.ends_turn else [])]
            for t in suite.tool_list
        ],
        "version": suite.version,
    }
    if suite.parts:
        content["parts"] = [[part.name, suite_digest(replace(part, tasks=()))] for part in suite.parts]
    text = json.dumps(content, sort_keys=True, default=_text)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _decisive(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task without what it says nothing of: a field that is new here must not part a run from its folder."""

    def told(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {name: v for name, v in fields.items() if name not in _LATER or not (v is None or v is False)}

    return told(task) | {"user": told(task["user"])}


def _text(value: object) -> str:
    return repr(sorted(value, key=repr)) if isinstance(value, set | frozenset) else repr(value)


def settings(plan: TrialPlan, *, trials: int, user: str, judge: str | None = None) -> dict[str, Any]:
    """Return what must be the same when a run is resumed. Concurrency, retries and the cost ceiling may change."""
    return ({} if judge is None else {"judge": judge}) | {
        "agent": plan.adapter.name,
        "framework": plan.adapter.framework,
        "suite": plan.suite.name,
        "suite_seed": plan.suite.seed,
        "suite_digest": suite_digest(plan.suite),
        "trials": trials,
        "limits": _told_limits(plan.limits),
        "user": user,
        "instructions": plan.instructions,
        "seed": plan.seed,
        **({} if plan.approvals == "user" else {"approvals": policy_name(plan.approvals)}),
        **({"tool_faults": plan.faults.to_dict()} if plan.faults else {}),
    }


def _told_limits(limits: Limits) -> dict[str, Any]:
    """Return limits, without one that the first manifests lack where it is as it was before there was any."""
    return {n: v for n, v in asdict(limits).items() if n != "user_seconds" or v != Limits().user_seconds}


def _from_anywhere(source: str | None) -> str | None:
    """Return where a suite, or several, were found so that a resume finds them from any working directory."""
    names = (source or "").split(",")
    return ",".join(str(Path(name).resolve()) if name.endswith(".py") else name for name in names) or None


def manifest(
    plan: TrialPlan,
    settings: Mapping[str, Any],
    *,
    name: str,
    coverage_floor: float | None = None,
    isolation: str = "none",
) -> dict[str, Any]:
    """Return a run's manifest as JSON-like data; ``name`` is what tables and folders call the agent."""
    return {
        "schema": SCHEMA,
        "name": name,
        "settings": dict(settings),
        "suite_source": _from_anywhere(plan.suite.source),
        "suite_options": dict(plan.suite.options),
        "notes": list(plan.suite.notes),
        "tasks": [TaskInfo.of(task).to_dict() for task in plan.suite.tasks],
        "prices": {model: price.to_dict() for model, price in plan.prices.items()},
        "coverage_floor": COVERAGE_FLOOR if coverage_floor is None else coverage_floor,
        "isolation": isolation,
        "retries": asdict(plan.retries),
        "versions": versions(),
        "price_table": price_table_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
