"""What every test has: no call of ours may block the event loop, and a small suite to run."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from coverage import Coverage
from hypothesis import settings

from tbadapters import Suite, load_suite

DATA = Path(__file__).parent / "data"

settings.register_profile("tbadapters", deadline=None)  # a busy machine is no broken promise
settings.load_profile("tbadapters")


@pytest.fixture(autouse=True)
def unblocked_loop() -> Iterator[BlockBuster]:
    """Fail whatever blocks the loop from code of ours, but for what is meant to."""
    with blockbuster_ctx("tbadapters") as blockbuster:
        for name, function in blockbuster.functions.items():
            # Suites, agents and entry points are imported on the loop's thread, before the first trial.
            function.can_block_in("tbadapters/campaign.py", {"_plans"})
            function.can_block_in("core/plugins.py", {"_points"})
            function.can_block_in("isolation/offspring.py", {"parent_of"})  # procfs is no disk
            if name.startswith("sqlite3."):
                # An in-memory database is queried on the loop: a thread would cost more than the query.
                for module in (
                    "records.py",
                    "schema.py",
                    "sqlite.py",
                    "database_tools.py",
                    "search_collection.py",
                    "search_ranking.py",
                ):
                    function.can_block_in(f"sandboxes/{module}", _EVERY)
        if Coverage.current() is not None:  # its tracer takes a lock of its own, in whatever code it traces
            for name in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
                blockbuster.functions[name].deactivate()
        yield blockbuster


class _Every(set):
    """Every function's name: blockbuster asks for the names of the functions that may block."""

    def __contains__(self, name: object) -> bool:
        return True


_EVERY = _Every()


@pytest.fixture
def desk() -> Suite:
    """A suite of three tasks: tickets whose status must be set."""
    return load_suite(DATA / "desk.py")
