"""Promises of the text of keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbadapters.core.keys import key_names, key_text

PARTS = st.text(alphabet="ab|\\", min_size=0, max_size=4)
KEYS = st.tuples(PARTS, PARTS)


@given(KEYS, KEYS)
def test_no_two_keys_have_the_same_text(one, other):
    """Composite keys are the same text only if all their parts are."""
    assert (key_text(one) == key_text(other)) == (one == other)


@given(KEYS.filter(all))
def test_a_key_names_each_of_its_parts(parts):
    """A part is found in its key, whatever characters it has."""
    assert all(key_names(key_text(parts), part) for part in parts)


@pytest.mark.parametrize("value", ["", "x", "y", "B", "x|y|B1"])
def test_a_piece_of_a_part_is_not_named(value):
    """What stands between two bars of one part, or is a piece of it, is no part of the key."""
    assert not key_names(key_text(["x|y", "B1"]), value)


def test_a_single_key_is_its_text():
    """A key of one column is written as it is, so that references to it read the same."""
    assert key_text(["x|y"]) == "x|y"
    assert key_names("x|y", "x|y")
    assert key_names("17", 17)
    assert not key_names("A-1", "")
