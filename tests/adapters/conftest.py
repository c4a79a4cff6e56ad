"""Fixtures for tests of adapters: attempts without the core's loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_attempt import FakeAttempt


@pytest.fixture
async def attempt() -> FakeAttempt:
    """One running attempt."""
    return FakeAttempt()


@pytest.fixture
async def new_attempt() -> Callable[..., FakeAttempt]:
    """A maker of attempts, for several at once: ``new_attempt(trial=TrialRef("t", 1))``."""
    return FakeAttempt
