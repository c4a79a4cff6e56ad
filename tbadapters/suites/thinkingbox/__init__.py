"""The ``thinkingbox`` suite: ThinkingBox-Bench and any other tests in its format, from the user's own checkout.

The data is Microsoft's and stays where it is; its release notes ask that it be used for evaluation only. ``load`` reads
scenarios and tests, ``backend.py`` runs the tool servers and grades by the tests' own functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from difflib import get_close_matches
from hashlib import sha256
from os import PathLike
from typing import Any, Literal

from tbadapters.core.errors import InvalidOption, SuiteError, UnknownName
from tbadapters.core.suite import Suite, joined
from tbadapters.core.tools import Tool
from tbadapters.sandboxes.search_choice import TYPESENSE_PORT, SearchChoice, find_search
from tbadapters.suites.thinkingbox.backend import Servers, ThinkingBoxBackend
from tbadapters.suites.thinkingbox.building import NAME, Built, LeftOut, TestFunctions, build_tasks, policy_of
from tbadapters.suites.thinkingbox.check import check_thinkingbox
from tbadapters.suites.thinkingbox.clock import clock_note, clock_options, frozen_at
from tbadapters.suites.thinkingbox.files import AgentFile, DataFolder, Scenario
from tbadapters.suites.thinkingbox.tools import ListedTools, chosen_tools

__all__ = ["load"]

VERSION = "1"
_NAMED = 3  # tests that are left out and named in the note


def load(
    *,
    part: str | None = None,
    data: str | PathLike[str] | None = None,
    tests: str | PathLike[str] | Sequence[str] | None = None,
    agent: str = "think",
    clock: str | datetime = "policy",
    protocol: Literal["thinkingbox", "default"] = "thinkingbox",
    search: Literal["auto", "stand-in"] = "auto",
    python: str | PathLike[str] | None = None,
) -> Suite:
    """Return the suite, or a part of it.

    Args:
        part: ``retail``, ``travel``, ``auto_insurance``, ``neobank``, ``consulting`` or another scenario, a task, a test
            as ``file.py:function`` or its function alone; None for all. ``load_suite("thinkingbox/retail")`` gives it.
        data: A checkout of ``thinkingbox-data``, or any folder in its layout; None for what THINKINGBOX_DATA names.
        tests: Which tests: a test list (``.yaml``), or uids (``file.py:function``, ``file.py``); None for the
            published benchmark, or all tests of a folder that has no such list.
        agent: The agent file in ``dataset/agent`` whose text an agent is told beside the scenario's.
        clock: ``"policy"`` freezes the servers' clock at the date that the policies name, ``"wall"`` leaves it alone
            (canonical), a moment freezes it there.
        protocol: How the conversation goes on: the benchmark's way, or this project's default.
        search: ``"auto"`` uses the Typesense that answers at its usual place (canonical), else the stand-in.
        python: The interpreter that runs the servers; None for that of ``tbadapters thinkingbox setup``.

    Raises:
        UsageError: there is no data, or no such part of it.
        SuiteError: the data is not as it should be.
    """
    _check(protocol=protocol, search=search)
    folder, moment = DataFolder.of(data), _moment(clock)
    told = folder.agent(agent)
    chosen, missing = _chosen(folder, told, tests, part)
    given = _given(part=part, tests=tests, agent=agent, clock=clock, protocol=protocol, search=search, python=python)
    servers = Servers(folder, None if python is None else str(python), clock_options(moment))
    loader = _Loader(servers, told, moment, protocol, _search(search), given | {"data": str(folder.root)})
    return loader.suite(chosen, missing)


def _check(**options: str) -> None:
    known = {"protocol": ("thinkingbox", "default"), "search": ("auto", "stand-in")}
    for name, value in options.items():
        if value not in known[name]:
            raise InvalidOption(f"{name}={value!r}: one of {', '.join(map(repr, known[name]))} is needed.")


def _moment(clock: str | datetime) -> datetime | None:
    """Return the moment at which the servers' clock stands still; it may be given as text, too, as a manifest holds it."""
    moment = clock
    if isinstance(clock, str) and clock[:1].isdecimal():
        with suppress(ValueError):
            moment = datetime.fromisoformat(clock)
    return frozen_at(clock if isinstance(moment, datetime) and moment.tzinfo is None else moment)


def _search(search: str) -> SearchChoice:
    return SearchChoice(None, "127.0.0.1", TYPESENSE_PORT, "Fake") if search == "stand-in" else find_search()


def _chosen(
    folder: DataFolder, agent: AgentFile, tests: str | PathLike[str] | Sequence[str] | None, part: str | None
) -> tuple[list[Built], list[LeftOut]]:
    """Return the tasks of some tests, or of a part of them, and what is left out of these.

    A part with a colon that is not among the tests is a test all the same: one that is not part of the benchmark, or
    whose file is named in another way.
    """
    listed = folder.listed(tests)
    single = part is not None and ":" in part and part not in listed
    built, left_out = build_tasks(folder, TestFunctions(folder).of([str(part)] if single else listed), agent)
    return _part_of(built, left_out, None if single else part)


def _part_of(
    built: Sequence[Built], left_out: Sequence[LeftOut], part: str | None
) -> tuple[list[Built], list[LeftOut]]:
    """Return the tasks of a domain, a scenario, a test's uid or function, or a task's id, and what is left out of these.

    Raises:
        UnknownName: there is no such part.
        SuiteError: nothing is left of it.
    """

    def named(one: Built | LeftOut) -> bool:
        ids = (one.domain, one.function.config.scenario, one.function.uid, one.function.name)
        return part is None or part in ids or (isinstance(one, Built) and one.task.id == f"{NAME}/{part}")

    chosen, missing = [one for one in built if named(one)], [one for one in left_out if named(one)]
    if missing and not chosen:
        raise SuiteError(f"No test can be run: {_left_out_note(missing)}.")
    if not chosen:
        raise UnknownName(f"part of the suite {NAME!r}", str(part), _nearest(str(part), built))
    return chosen, missing


def _nearest(part: str, built: Sequence[Built]) -> Iterable[str]:
    """Return the names among which a misspelt part is looked for: domains, or tasks where it is more like one of these."""
    domains = dict.fromkeys(one.domain for one in built)
    tasks = dict.fromkeys(one.task.id.removeprefix(f"{NAME}/") if "/" in part else one.function.name for one in built)
    return next((names for names in (domains, tasks) if get_close_matches(part, names)), domains)


def _left_out_note(left_out: Sequence[LeftOut]) -> str:
    named = ", ".join(f"{one.function.uid} ({one.need})" for one in left_out[:_NAMED])
    more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
    return f"left out, for what only the reference harness has: {named}{more}"


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given, as a manifest can hold them."""
    defaults = {name: parameter.default for name, parameter in inspect.signature(load).parameters.items()}
    kept = {name: value for name, value in options.items() if name != "part" and value != defaults[name]}
    return {name: list(v) if isinstance(v, list | tuple) else str(v) for name, v in kept.items()}


@dataclass(frozen=True)
class _Loader:
    """Makes suites of tasks."""

    servers: Servers
    agent: AgentFile
    moment: datetime | None
    protocol: Literal["thinkingbox", "default"]
    search: SearchChoice | None
    options: Mapping[str, Any]

    def suite(self, built: Sequence[Built], left_out: Sequence[LeftOut]) -> Suite:
        """Return the suite of all tasks; one a domain, joined."""
        backend = ThinkingBoxBackend(self.servers, built, agent=self.agent, search=self.search)
        version = self._version(built)
        parts = []
        for domain in dict.fromkeys(one.domain for one in built):
            own = [one for one in built if one.domain == domain]
            parts.append(
                Suite(
                    name=f"{NAME}/{domain}",
                    tasks=tuple(one.task for one in own),
                    policy=policy_of(self._scenario(own[0]), self.agent),
                    tool_list=self._tools(own[0]),
                    backend=backend,
                    conversation=self.protocol,
                    version=version,
                    notes=tuple(self._notes(own, [one for one in left_out if one.domain == domain])),
                    options=self.options,
                    check=check_thinkingbox,
                )
            )
        return replace(joined(parts, name=NAME), options=self.options)

    def _scenario(self, one: Built) -> Scenario:
        return self.servers.data.scenario(one.function.config.scenario)

    def _tools(self, one: Built) -> ListedTools:
        scenario = self._scenario(one)

        def listed() -> tuple[Tool, ...]:
            return chosen_tools(scenario, self.agent, {name: self.servers.listed(name) for name in one.task.world})

        return ListedTools((str(self.servers.data.root), one.domain, *one.task.world), listed)

    def _version(self, built: Sequence[Built]) -> str:
        """Return what decides a trial beside the tasks: the servers' code, the tests', and under what they run."""
        tests = sha256()
        for file in sorted({one.function.file for one in built}):
            tests.update(file.read_bytes())
        clock = "wall" if self.moment is None else self.moment.isoformat()
        search = self.search.name if self.search else "none"
        return (
            f"{VERSION}; tests {tests.hexdigest()[:12]}; servers {self.servers.digest[:12]}; clock {clock}; "
            f"search {search}; protocol {self.protocol}"
        )

    def _notes(self, built: Sequence[Built], left_out: Sequence[LeftOut]) -> Iterator[str]:
        """Yield what a reader of the figures must know: where the way is not the canonical one."""
        clock = clock_note(self.moment)
        if clock is not None:
            yield clock
        names = {name for one in built for name in one.task.world}
        if self.search is not None and self.search.note is not None and any(map(self.servers.searches, names)):
            yield self.search.note
        if self.protocol != "thinkingbox":
            yield f"conversation: protocol {self.protocol!r}, not canonical"
        if left_out:
            yield _left_out_note(left_out)
