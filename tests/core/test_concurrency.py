"""How many trials are under way: so many as asked for, or what endpoints and machine can feed."""

import anyio
import pytest

from tbadapters.core.concurrency import FIRST, MOST, Slots
from tbadapters.core.records import AttemptRecord

FREE = AttemptRecord("s/w/0", 0, 0, "settled", None, seconds={"total": 10.0})
HELD = AttemptRecord("s/w/0", 0, 0, "settled", None, seconds={"total": 10.0, "held": 8.0})


async def test_a_number_stays():
    """A number that was asked for holds whatever happens."""
    slots = Slots(5)
    for _ in range(100):
        slots.ended(FREE)
        slots.ended(HELD)
    assert slots.limit == slots.most == 5


async def test_it_grows_by_one_a_round():
    """While no trial has to wait, each round adds one slot, up to the most there may be."""
    slots = Slots(None)
    assert slots.limit == FIRST
    for _ in range(FIRST + 1):
        slots.ended(FREE)
    assert slots.limit == FIRST + 1
    for _ in range(10_000):
        slots.ended(FREE)
    assert slots.limit == MOST


async def test_it_shrinks_once_a_round():
    """Trials that had to wait take a quarter of the slots away, once for all that were under way together."""
    slots = Slots(None)
    for _ in range(FIRST):
        slots.ended(HELD)
    assert slots.limit == 12
    for _ in range(1000):
        slots.ended(HELD)
    assert slots.limit == 1


async def test_it_does_not_grow_on_a_machine_that_is_late():
    """While the event loop is late, no slot is added."""
    slots = Slots(None, is_late=lambda: True)
    for _ in range(100):
        slots.ended(FREE)
    assert slots.limit == FIRST


async def test_no_more_hold_a_slot_than_there_are():
    """However many want one, as many hold a slot as the limit says."""
    slots, holding, most = Slots(3), [0], []

    async def work():
        async with slots.one():
            holding[0] += 1
            most.append(holding[0])
            await anyio.lowlevel.checkpoint()
            holding[0] -= 1

    async with anyio.create_task_group() as group:
        for _ in range(30):
            group.start_soon(work)
    assert max(most) == 3
    assert len(most) == 30


@pytest.mark.parametrize("limit", [1, 2])
async def test_a_small_limit_grows_again(limit):
    """From one slot it comes back."""
    slots = Slots(None)
    for _ in range(1000):
        slots.ended(HELD)
    for _ in range(20 * limit):
        slots.ended(FREE)
    assert slots.limit > limit
