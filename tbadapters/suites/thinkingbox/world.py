"""A task's world: the scenario's initial records with the test's laid over them, server by server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

Config = Mapping[str, Any]


def merged(below: Any, above: Any) -> Any:
    """Return ``above`` laid over ``below``: mappings recurse, lists add up, everything else is replaced, null included.

    The rules are the reference's. What is not merged is shared, never copied.
    """
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        result = dict(below)
        for key, value in above.items():
            result[key] = merged(below[key], value) if key in below else value
        return result
    if isinstance(below, list) and isinstance(above, list):
        return [*below, *above]
    return above


class World(Mapping[str, Any]):
    """What each server is initialised with, by the server's name; merged when it is first looked at.

    It is shared and never changed, so that 507 tasks need one copy of each scenario; a digest stands for its content
    wherever a task is described.
    """

    def __init__(self, scenario: Mapping[str, Config | None], init: Mapping[str, Config | None]) -> None:
        self._scenario, self._init = scenario, init

    @cached_property
    def _merged(self) -> Mapping[str, Config]:
        names = dict.fromkeys((*self._scenario, *self._init))
        return {name: _config(self._scenario.get(name), self._init.get(name)) for name in names}

    @cached_property
    def digest(self) -> str:
        """A digest of the merged content."""
        return sha256(json.dumps(self._merged, sort_keys=True, default=str).encode()).hexdigest()[:16]

    def __getitem__(self, server: str) -> Config:
        return self._merged[server]

    def __iter__(self) -> Iterator[str]:
        return iter(self._merged)

    def __len__(self) -> int:
        return len(self._merged)

    def __deepcopy__(self, memo: dict[int, Any]) -> World:
        return self

    def __repr__(self) -> str:
        return f"World({self.digest})"


def _config(scenario: Config | None, init: Config | None) -> Config:
    config = (merged(scenario, init) if scenario else init) if init is not None else scenario
    laid = dict(config or {})
    if "sources" in laid and laid["sources"] is None:  # some servers iterate over it without asking
        laid["sources"] = []
    return laid
