"""Promises about when two values of a record are the same."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tbadapters.core.values import canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (25, 25.0),
        (0.1 + 0.2, 0.3),
        (Decimal("0.5"), 0.5),
        (Decimal(3), 3),
        ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1}),
        ("Jos\u00e9", "Jose\u0301"),
        (["Jos\u00e9"], ["Jose\u0301"]),
        (float("nan"), float("nan")),
        (100.10 - 20.20 - 30.30, 100.10 - 30.30 - 20.20),
    ],
)
def test_the_same(one, other):
    """These count as the same value."""
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (False, 0),
        ("25", 25),
        (None, 0),
        (None, ""),
        ([1, 2], [2, 1]),
        ("Fee", "fee"),
        ("Jos\u00e9", "Jose"),
        (1234567890123.5, 1234567890121.5),
        (9007199254740993, 9007199254740992),
    ],
)
def test_not_the_same(one, other):
    """These count as different values."""
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("other", [25, 25.0, "25.00", Decimal(25), " 25.0 "])
def test_money_is_read_as_decimals(other):
    """An amount is the same amount however it is written."""
    assert canonical("25", money=True) == canonical(other, money=True)


@pytest.mark.parametrize("other", [25.01, "25.1", "2500", None, "twenty-five", True])
def test_another_amount_is_another_value(other):
    """Another amount, or none, is not the same money."""
    assert canonical(25, money=True) != canonical(other, money=True)


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_every_json_value_has_a_hashable_form_equal_to_itself(value):
    """The form of any value can be hashed and equals itself, as money, too."""
    assert {canonical(value)} == {canonical(value)}
    assert {canonical(value, money=True)} == {canonical(value, money=True)}
