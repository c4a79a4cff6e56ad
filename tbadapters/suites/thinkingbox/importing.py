"""Results of the reference harness as a run folder, so that runs from before get the same figures as ours."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast

import anyio
from anyio import to_thread
from pydantic import ValidationError
from yaml import YAMLError

from tbadapters.core.cost import Prices, price_table_version
from tbadapters.core.errors import UsageError
from tbadapters.core.manifest import SCHEMA, versions
from tbadapters.core.records import AttemptRecord, recordable
from tbadapters.core.state_grader import sentence_of
from tbadapters.core.store import Store, new_folder, write_manifest
from tbadapters.core.suite import Suite
from tbadapters.core.task_info import TaskInfo
from tbadapters.suites.thinkingbox.building import DOMAINS, NAME, TestFunctions, build_tasks
from tbadapters.suites.thinkingbox.files import DataFolder, read_yaml
from tbadapters.suites.thinkingbox.grader import GOLDEN, ThinkingBoxGrader
from tbadapters.suites.thinkingbox.rows import Row, Trial, record_of

Explain = Callable[[AttemptRecord], Awaitable[AttemptRecord | None]]
_AT_ONCE = 32  # rows that are held in memory


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the file a row stands.

    Attributes:
        uid: The test's uid.
        repetition: Which repetition it is, where the row says so.
        start: Its first byte.
        line: Its line, from 1.
    """

    uid: str
    repetition: int | None
    start: int
    line: int


@dataclass(frozen=True, slots=True)
class Results:
    """A file of rows; only where they stand is kept, for they may be hundreds of megabytes.

    Attributes:
        file: The file, JSON Lines.
        places: The rows.
        cut_off: Whether the last line is no whole row, as a run that was killed leaves it.
        digest: A digest of the file.
    """

    file: Path
    places: tuple[Place, ...]
    cut_off: bool
    digest: str

    @classmethod
    def of(cls, file: Path) -> Results:
        """Look through a file.

        Raises:
            UsageError: it can't be read, holds no row, a line is no row, or a row is there twice.
        """
        places: list[Place] = []
        met: dict[bytes, int] = {}
        digest = hashlib.sha256()
        broken: tuple[int, str] | None = None
        start = 0
        try:
            with file.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    digest.update(line)
                    if broken is not None:
                        raise _no_row(file, *broken)
                    if line.strip():
                        _check_new(file, line, number, met)
                        try:
                            row = _row(line)
                            places.append(Place(row.uid, row.repetition, start, number))
                        except ValueError as error:
                            broken = number, _why(error)
                    start += len(line)
        except OSError as error:
            raise UsageError(f"{file} can't be read: {error.strerror}.") from error
        if broken is not None and not places:
            raise _no_row(file, *broken)
        if not places:
            raise UsageError(f"{file} holds no row: it must be a JSON Lines file written by `tb infer`.")
        return cls(file, tuple(places), broken is not None, digest.hexdigest()[:16])

    @property
    def uids(self) -> list[str]:
        """The tests' uids, in the order in which they appear."""
        return list(dict.fromkeys(place.uid for place in self.places))

    @property
    def trials(self) -> int:
        """Rows of the test that has most."""
        return max(Counter(place.uid for place in self.places).values())

    def rows(self) -> Iterator[tuple[Row, int]]:
        """Yield each row with its trial's index: repetitions of a test in their order, from 0."""
        by_uid: dict[str, list[Place]] = defaultdict(list)
        for place in self.places:
            by_uid[place.uid].append(place)
        ordered = {
            uid: sorted(own, key=lambda place: (place.repetition is None, place.repetition, place.line))
            for uid, own in by_uid.items()
        }
        with self.file.open("rb") as lines:
            for own in ordered.values():
                for index, place in enumerate(own):
                    lines.seek(place.start)
                    yield _row(lines.readline()), index


def _check_new(file: Path, line: bytes, number: int, met: dict[bytes, int]) -> None:
    """Refuse a row that was met before: counted twice, a trial makes every interval too narrow.

    Two trials never are the same to the byte, for rows hold ids of calls and seconds.
    """
    first = met.setdefault(hashlib.sha256(line.strip()).digest(), number)
    if first != number:
        raise UsageError(f"Line {number} of {file} is line {first} again: take out what is in the file twice.")


def _row(line: bytes) -> Row:
    return Row.model_validate(json.loads(line))


def _why(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
    return str(error)


def _no_row(file: Path, line: int, why: str) -> UsageError:
    return UsageError(f"Line {line} of {file} is no row of `tb infer` ({why}).")


@dataclass(frozen=True, kw_only=True)
class Import:
    """What rows become.

    Attributes:
        results: The rows.
        name: What tables and folders call the agent.
        model: The name of the agent's model, for its price.
        prices: The user's own prices.
        known: What is known of the tests, by uid; of any other only what its uid tells.
        explain: Replays a failed trial for its effects; None: they are not known.
    """

    results: Results
    name: str
    model: str
    prices: Prices = field(default_factory=dict)
    known: Mapping[str, TaskInfo] = field(default_factory=dict)
    explain: Explain | None = None

    async def into(self, parent: Path) -> Path:
        """Write a run folder below ``parent`` and return it.

        Raises:
            UsageError: a row of the file is no longer what it was.
            UnusableFolder: the folder can't be written.
        """
        folder = await to_thread.run_sync(new_folder, parent, self.suite_name, self.name)
        await to_thread.run_sync(lambda: write_manifest(folder, self.manifest()))
        rows = self.results.rows()
        unexplained = 0
        async with Store.open(folder) as store:
            while chunk := await to_thread.run_sync(lambda: list(islice(rows, _AT_ONCE))):
                records, unknown = await self._records(chunk)
                unexplained += unknown
                for record in records:
                    await store.add(recordable(record))
        if unexplained:
            await to_thread.run_sync(lambda: write_manifest(folder, self.manifest(unexplained=unexplained)))
        return folder

    async def _records(self, rows: Sequence[tuple[Row, int]]) -> tuple[list[AttemptRecord], int]:
        """Return some rows as records, the failed ones explained, in their order; and how many could not be."""
        infos = self.infos
        records = [record_of(row, Trial(infos[row.uid].id, index, self.model, self.prices)) for row, index in rows]
        explain = self.explain
        if explain is None:
            return records, 0
        failed = [place for place, record in enumerate(records) if record.passed is False]
        explained: dict[int, AttemptRecord] = {}
        limiter = anyio.CapacityLimiter(2 * (os.cpu_count() or 1))

        async def one(place: int) -> None:
            async with limiter:
                found = await explain(records[place])
                if found is not None:
                    explained[place] = found

        async with anyio.create_task_group() as group:
            for place in failed:
                group.start_soon(one, place)
        known = [explained.get(place, record) for place, record in enumerate(records)]
        return known, len(failed) - len(explained)

    @cached_property
    def infos(self) -> dict[str, TaskInfo]:
        """What is known of each test, by uid."""
        uids = self.results.uids
        told = _told_by_uids([uid for uid in uids if uid not in self.known])
        return {uid: self.known[uid] if uid in self.known else told[uid] for uid in uids}

    @property
    def suite_name(self) -> str:
        """The suite's name: the benchmark's, or its part's where all tests are of one."""
        domains = {info.id.split("/")[1] for info in self.infos.values()}
        return f"{NAME}/{domains.pop()}" if len(domains) == 1 else NAME

    def manifest(self, *, unexplained: int = 0) -> dict[str, Any]:
        """Return the manifest. Its run can't be resumed: what the agent was is not known.

        Args:
            unexplained: Failed trials that could not be replayed.
        """
        notes = [
            f"imported from {self.results.file.name} of `tb infer`: verdicts, calls and tokens are as they are there"
        ]
        if self.explain is not None:
            notes.append("effects and their causes come from replaying the failed trials' calls")
        if unexplained:
            notes.append(f"failed trials that could not be replayed, whose effects are not known: {unexplained}")
        if self.results.cut_off:
            notes.append("the last line of the file is no whole row and was left out")
        return {
            "schema": SCHEMA,
            "name": self.name,
            "settings": {
                "agent": self.name,
                "framework": "thinkingbox",
                "suite": self.suite_name,
                "suite_seed": 0,
                "suite_digest": f"imported {self.results.digest}",
                "trials": self.results.trials,
                "limits": {},
                "user": "as in the imported run",
                "instructions": "append",
                "seed": 0,
            },
            "suite_source": None,
            "notes": notes,
            "tasks": [info.to_dict() for info in self.infos.values()],
            "prices": {model: price.to_dict() for model, price in self.prices.items()},
            "versions": versions(),
            "price_table": price_table_version(),
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def _told_by_uids(uids: Sequence[str]) -> dict[str, TaskInfo]:
    """Return what tests' uids tell: the domain and the name; the file's name between where two have the same."""
    parts = {uid: (_domain(uid.partition(":")[0]), uid.rpartition(":")[2]) for uid in uids}
    met = Counter(parts.values())
    found = {}
    for uid, (domain, name) in parts.items():
        stem = "" if met[domain, name] == 1 else f"{Path(uid.partition(':')[0]).stem}/"
        found[uid] = TaskInfo(f"{NAME}/{domain}/{stem}{name}", (domain,))
    return found


def _domain(file: str) -> str:
    """Return the domain that a test file's name begins with; its own name where it is none of the benchmark's."""
    known = (domain for scenario, domain in DOMAINS.items() if file.startswith(scenario))
    return next(known, Path(file).stem)


def tests_with(data: Path, uids: Sequence[str]) -> list[str] | None:
    """Return which tests of a checkout a suite is loaded with that has all of these: None for the published ones.

    Raises:
        UsageError: the checkout is none, or has no such test.
    """
    folder = DataFolder.of(data)
    functions = TestFunctions(folder)
    published = {function.uid for function in functions.of(folder.listed(None))}
    return None if published.issuperset(uids) else [function.uid for function in functions.of(uids)]


def known_tests(data: Path, uids: Sequence[str]) -> dict[str, TaskInfo]:
    """Return what a checkout tells of tests, by uid: their tasks' ids as in a run of ours, tags and golden calls.

    Args:
        data: The checkout.
        uids: The tests; those that are no part of the published benchmark must be there, too.

    Raises:
        UsageError: the checkout is none, or has no such test.
        SuiteError: its data is not as it should be.
    """
    folder = DataFolder.of(data)
    functions = TestFunctions(folder).of(folder.listed(tests_with(data, uids)))
    built, _ = build_tasks(folder, functions, folder.agent("think"))
    return {one.function.uid: TaskInfo.of(one.task) for one in built if one.function.uid in set(uids)}


def model_of(file: Path) -> str | None:
    """Return the agent model's name as the reference keeps it beside its rows (``<stem>_run_metadata.yaml``), or None.

    Nothing else of that file is read into anything: it holds the run's keys in clear.
    """
    try:
        told = read_yaml(file.with_name(f"{file.stem}_run_metadata.yaml").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, YAMLError):
        return None
    for name in ("setup_config", "orchestrator", "agent_model", "deployment"):
        told = told.get(name) if isinstance(told, Mapping) else None
    return told if isinstance(told, str) else None


async def check_servers(suite: Suite, rows: Import) -> None:
    """Open a session of each part that rows are of, before anything is written: no failed trial could be explained else.

    Raises:
        SandboxFault: a server can't be started or set up.
    """
    named = {info.id for info in rows.infos.values()}
    for part in suite.parts or (suite,):
        task = next((task for task in part.tasks if task.id in named), None)
        if task is not None:
            async with suite.backend.open(task):
                pass


def explainer(suite: Suite) -> Explain:
    """Return what explains a suite's failed trials by replaying their calls; the suite's backend must be running.

    It returns None where a trial can't be replayed, which the log says.
    """

    async def explain(record: AttemptRecord) -> AttemptRecord | None:
        if record.verdict is None or record.task not in suite.task_ids:
            return None
        grader = cast("ThinkingBoxGrader", suite.backend.grader(suite.task(record.task)))
        why = await grader.explained(record.tool_calls)
        if why is None:
            return None
        reasons = (*record.verdict.reasons, *(sentence_of(effect) for effect in why.effects))
        verdict = replace(record.verdict, effects=why.effects, reasons=reasons, end_state=GOLDEN)
        calls = tuple(call.with_found(why.changes) for call in record.tool_calls)
        return replace(record, verdict=verdict, tool_calls=calls)

    return explain
