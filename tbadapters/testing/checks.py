"""Checks of a suite: nobody should be graded by a suite that does not hold them.

Public suites of this kind have shipped golden actions that silently fail, tasks that a do-nothing agent passes, and
free text compared letter by letter. ``check_suite`` looks for each of these, on the published tasks and on fresh ones.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import anyio.lowlevel

from tbadapters.core.errors import TbAdaptersError, describe
from tbadapters.core.numbers import counted
from tbadapters.core.suite import Suite, Task
from tbadapters.core.suite_report import CheckRow
from tbadapters.testing.findings import Finding
from tbadapters.testing.mutations import Mutator
from tbadapters.testing.probes import PROBES

SHARE_NEEDED = {"altered argument": 0.99}
"""Share of a check's findings that must hold, where it is not all of them."""
_MUTATIONS = ("dropped action", "altered argument", "extra action")
_FLOOR = {
    "null agent": "null",
    "always refusing": "refusing",
    "always escalating": "escalating",
    "read-only": "read-only",
}


class Failure(NamedTuple):
    """One thing that does not hold: in which task of which suite seed, and what."""

    seed: int
    task: str
    detail: str


@dataclass(slots=True)
class Check:
    """One check's count.

    Attributes:
        name: What must hold.
        held: Findings that hold.
        of: All findings.
        failures: The rest.
        skipped: Why it could not be applied to this suite at all, or None.
        remark: What else its reader should know.
    """

    name: str
    held: int = 0
    of: int = 0
    failures: list[Failure] = field(default_factory=list)
    skipped: str | None = None
    remark: str = ""

    @property
    def ok(self) -> bool:
        """Whether enough of its findings hold."""
        return self.skipped is not None or self.held >= SHARE_NEEDED.get(self.name, 1.0) * self.of

    def count(self, finding: Finding, seed: int) -> None:
        """Count one finding."""
        self.of += 1
        if finding.fault is None:
            self.held += 1
        else:
            self.failures.append(Failure(seed, finding.task, finding.fault))

    def row(self) -> CheckRow:
        """Return the check as a line of a table."""
        if self.skipped:
            return CheckRow(self.name, 0, 0, ok=True, note=f"not checked: {self.skipped}")
        first = self.failures[0] if self.failures else None
        more = f" (and {len(self.failures) - 1} more)" if len(self.failures) > 1 else ""
        told = first.detail.removeprefix(f"{first.task}: ") if first else ""  # some errors name the task themselves
        fault = f"{first.task}, seed {first.seed}: {told}{more}" if first else ""
        return CheckRow(self.name, self.held, self.of, self.ok, "; ".join(filter(None, [fault, self.remark])))


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the checks of a suite found.

    Attributes:
        suite: The suite's name.
        tasks: Number of tasks of the published seed.
        seeds: The suite seeds that were looked at, the published one first.
        checks: The checks, in order.
    """

    suite: str
    tasks: int
    seeds: tuple[int, ...]
    checks: Mapping[str, Check]

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        return all(check.ok for check in self.checks.values())

    @property
    def summary(self) -> str:
        """The findings in one line: the checks that do not hold, if there are any."""
        failed = [row.name for row in self.rows() if not row.ok]
        found = f"not ok: {', '.join(failed)}" if failed else "all checks hold"
        return f"{self.suite}: {found} ({counted(self.tasks, 'task')})"

    @property
    def mutation_score(self) -> float | None:
        """Share of the dropped, altered and extra actions that the grader caught; None where there was none."""
        made = sum(self.checks[name].of for name in _MUTATIONS)
        return sum(self.checks[name].held for name in _MUTATIONS) / made if made else None

    @property
    def floor(self) -> dict[str, float]:
        """Pass rates of agents that do nothing, always refuse, always escalate in words, and only read."""
        rates = {}
        for name, agent in _FLOOR.items():
            check = self.checks[name]
            rates[agent] = (check.of - check.held) / check.of if check.of else 0.0
        return rates

    def rows(self) -> list[CheckRow]:
        """Return one row a check, then the grader mutation score and the floor."""
        rows = [check.row() for check in self.checks.values()]
        made = sum(self.checks[name].of for name in _MUTATIONS)
        caught = sum(self.checks[name].held for name in _MUTATIONS)
        score = "none made" if self.mutation_score is None else f"{self.mutation_score:.2%} of the mutations are caught"
        rows.append(CheckRow("grader mutation score", caught, made, all(self.checks[n].ok for n in _MUTATIONS), score))
        passes = {agent: self.checks[name].of - self.checks[name].held for name, agent in _FLOOR.items()}
        of = sum(self.checks[name].of for name in _FLOOR)
        floor = ", ".join(f"{agent} {rate:.1%}" for agent, rate in self.floor.items())
        rows.append(CheckRow("floor", of - sum(passes.values()), of, not any(passes.values()), f"pass rates: {floor}"))
        return rows


async def check_suite(suite: Suite, *, seeds: Iterable[int] = range(1, 11)) -> CheckReport:
    """Return what the checks find on a suite's tasks and on those of fresh seeds.

    Sandboxes are called directly, without an agent.

    Args:
        suite: The suite.
        seeds: Suite seeds that are looked at beside the suite's own, where it can be built from others.
    """
    fresh = [seed for seed in seeds if seed != suite.seed] if suite.reseed else []
    checks = {name: Check(name) for name in [*PROBES, "fresh seeds"]}
    if suite.rule is None:
        checks["decidability"].skipped = "the suite has no rule (give sqlite_suite rule=rule_of(workflows))"
    if suite.reseed is None:
        checks["fresh seeds"].skipped = "the suite can't be built from another seed"
    mutator = Mutator(suite)
    await _check_tasks(suite, mutator, checks, per_argument=3)
    left = sum(len(arguments) for arguments in mutator.unaltered.values())
    if left:
        checks[
            "altered argument"
        ].remark = f"{left} arguments of the published tasks have no other value that is accepted"
    for seed in fresh:
        await _check_fresh(suite, seed, checks)
    return CheckReport(suite.name, len(suite.tasks), (suite.seed, *fresh), checks)


async def _check_tasks(
    suite: Suite, mutator: Mutator, checks: Mapping[str, Check], *, per_argument: int
) -> dict[str, bool]:
    """Count all findings on a suite's tasks; return which tasks all of them hold for."""
    clean = {}
    for task in suite.tasks:
        clean[task.id] = True
        async for name, finding in _findings(suite, task, mutator, per_argument):
            checks[name].count(finding, suite.seed)
            clean[task.id] &= finding.fault is None or name in SHARE_NEEDED
        await anyio.lowlevel.checkpoint()
    return clean


async def _findings(
    suite: Suite, task: Task, mutator: Mutator, per_argument: int
) -> AsyncIterator[tuple[str, Finding]]:
    for name, probe in PROBES.items():
        try:
            for finding in await probe(suite, task, mutator, per_argument):
                yield name, finding
        except TbAdaptersError as error:  # a golden action that errors makes each check fail, the rest goes on
            yield name, Finding(task.id, str(error))
        except Exception as error:  # noqa: BLE001  a rule or a grader of the suite may raise anything
            yield name, Finding(task.id, describe(error))


async def _check_fresh(suite: Suite, seed: int, checks: Mapping[str, Check]) -> None:
    """Count all findings on the tasks of another seed, and whether these are the same tasks with other records."""
    if suite.reseed is None:
        return
    summary = checks["fresh seeds"]
    try:
        other = suite.reseed(seed)
    except Exception as error:  # noqa: BLE001  a builder may raise anything: it is a finding
        summary.count(Finding(suite.name, f"can't be built: {describe(error)}"), seed)
        return
    clean = await _check_tasks(other, Mutator(other), checks, per_argument=1)
    published = {task.id: task for task in suite.tasks}
    for task_id in [*published, *(task.id for task in other.tasks if task.id not in published)]:
        task = next((task for task in other.tasks if task.id == task_id), None)
        summary.count(Finding(task_id, _fresh_fault(published.get(task_id), task, clean.get(task_id, False))), seed)


def _fresh_fault(published: Task | None, fresh: Task | None, clean: bool) -> str | None:
    if published is None or fresh is None:
        return "the task exists in one of the two sets only"
    if published.world == fresh.world and published.opening == fresh.opening:
        return "the task is the same as the published one"
    return None if clean else "a check above does not hold"
