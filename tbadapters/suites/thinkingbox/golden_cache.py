"""Preparation file for the benchmark's servers: a task's golden state is worked out once, not at every effects call.

The servers rebuild it from the task's init whenever they are asked for effects, which is most of what a trial costs. It
depends on the init alone, so what the task's process found is kept there and found again by its forks. Nothing is
changed where a server does not have all the names that are replaced here. Runs in the server's process: standard
library only.
"""

from __future__ import annotations

import types
from typing import Any

NAMES = (
    "SandboxToolsSystem",
    "apply_golden_set_to_database",
    "calculate_database_hash",
    "get_stable_database_state",
)


class Golden:
    """The golden state that was worked out last, and the server's functions that find it again.

    It stands in for the golden system, too: the system's database, and a data patch that is already in it.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.server = {name: getattr(module, name) for name in NAMES}
        self.db: Any = None
        self.hash: Any = None
        self.stable: Any = None
        self.hashed: Any = None
        self.hashed_stable: Any = None
        module.apply_golden_set_to_database = self.remember
        module.calculate_database_hash = self.hash_of
        module.get_stable_database_state = self.stable_of
        self.server["calculate_database_hash"].__globals__["get_stable_database_state"] = self.stable_for_hash

    async def remember(self, system: Any, case: Any) -> Any:
        """Work it out as the server does, and keep it."""
        db = await self.server["apply_golden_set_to_database"](system, case)
        self.db, self.hash, self.stable = db, None, None
        plain = db.to_state_dict
        states: list[Any] = []

        def state() -> Any:
            if not states:
                states.append(plain())
            return states[0]

        object.__setattr__(db, "to_state_dict", state)
        return db

    def keep(self) -> None:
        """Let the effects calls of this process and its forks find what was worked out."""
        self.module.SandboxToolsSystem = lambda *_, **__: self
        self.module.apply_golden_set_to_database = self.found

    def apply_data_patch(self, _patch: Any) -> None:
        """The golden database holds the task's patch."""

    async def found(self, _system: Any, _case: Any) -> Any:
        """Return the golden database."""
        return self.db

    def hash_of(self, db: Any) -> Any:
        """Return a database's hash."""
        if db is not self.db:
            return self.server["calculate_database_hash"](db)
        if self.hash is None:
            self.hash = self.server["calculate_database_hash"](db)
        return self.hash

    def stable_for_hash(self, db: Any, *arguments: Any) -> Any:
        """Return what a hash is made of; it is kept for the comparison that follows in the same effects call."""
        stable = self.server["get_stable_database_state"](db, *arguments)
        if db is self.db:
            self.stable = stable
        else:
            self.hashed, self.hashed_stable = db, stable
        return stable

    def stable_of(self, db: Any) -> Any:
        """Return the fields of a database that count."""
        if db is self.db and self.stable is not None:
            return self.stable
        if db is not self.hashed:
            return self.server["get_stable_database_state"](db)
        self.hashed = None
        return self.hashed_stable


GOLDEN: list[Golden] = []


def after_import(module: types.ModuleType, _options: dict[str, Any]) -> None:
    """Watch the server work out golden states."""
    if all(hasattr(module, name) for name in NAMES):
        GOLDEN.append(Golden(module))


def after_fork(kind: str, _module: types.ModuleType) -> None:
    """Keep what was found once the task's process has run init and effects."""
    if kind == "task" and GOLDEN and GOLDEN[0].db is not None:
        GOLDEN[0].keep()
