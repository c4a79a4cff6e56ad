"""Attempts that are made again: how many, and how long is waited before each."""

import logging

import pytest
import stamina

from tbadapters.core.limits import Retries
from tbadapters.core.retrying import TryAgain, attempts


async def waits(monkeypatch, retries, asked):
    """Return what is waited, in seconds, when every attempt asks for another one."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr("anyio.sleep", sleep)

    async def run():
        async for again in attempts(retries):
            with again:
                raise TryAgain(asked)

    with pytest.raises(TryAgain):
        await run()
    return slept


async def test_backoff_grows_to_its_maximum(monkeypatch):
    """Each wait is twice the last, with a jitter of at most the first, and never above the maximum."""
    slept = await waits(monkeypatch, Retries(attempts=5, wait_initial=1, wait_max=5), None)
    assert len(slept) == 4
    assert 1 <= slept[0] <= 2 <= slept[1] <= 3
    assert slept[2:] == [pytest.approx(4.5, abs=0.5), 5]


@pytest.mark.parametrize("asked", [0.25, 60, 0])
async def test_provider_says_how_long(monkeypatch, asked):
    """What the provider asks to wait comes before the backoff, and before its maximum."""
    assert await waits(monkeypatch, Retries(attempts=3, wait_initial=1, wait_max=5), asked) == [asked, asked]


async def test_other_errors_are_raised_at_once():
    """Only ``TryAgain`` makes another attempt."""
    made = []

    async def run():
        async for again in attempts(Retries(attempts=3, wait_initial=0, wait_max=0)):
            with again:
                made.append(1)
                raise KeyError

    with pytest.raises(KeyError):
        await run()
    assert made == [1]


async def test_switching_off_stamina_switches_off_no_attempt(monkeypatch, caplog):
    """A program that switches its own retries off, or logs them, changes nothing about ours."""
    stamina.set_active(False)
    try:
        with caplog.at_level(logging.DEBUG):
            slept = await waits(monkeypatch, Retries(attempts=3, wait_initial=0, wait_max=0), None)
    finally:
        stamina.set_active(True)
    assert slept == [0, 0]
    assert caplog.records == []
