"""Promises about the other values that are tried for an argument."""

from random import Random

import pytest

from tbadapters.core.state import State
from tbadapters.testing.arguments import Template
from tbadapters.testing.variants import choices, holders, variants

STATE = State(
    {
        "cards": {f"C{n}": {"id": f"C{n}", "city": city, "n": n} for n, city in enumerate(["Oslo", "Bonn", "Rome"])},
        "rooms": {str(n): {"id": n} for n in (7, 8)},
    }
)


def others(value, schema=None):
    return list(variants(value, schema or {}, STATE, Random(0)))


def values(value, schema=None):
    return [other for _, other in others(value, schema)]


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("a", {"enum": ["a", "b", "c"]}, {"b", "c"}),
        ("a", {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, {"b"}),
        (True, {"type": "boolean"}, {False}),
        ("C1", {"type": "string"}, {"C0", "C2"}),
    ],
)
def test_other_values_of_a_closed_set_are_all_of_the_rest(value, schema, expected):
    """Of enumerated values, booleans and ids of existing records, all the others are tried, and nothing else."""
    assert set(values(value, schema)) == expected


def test_integer_ids_stay_integers():
    """The other keys of a table come first, in the type of the value."""
    assert values(7)[0] == 8
    assert isinstance(values(7)[0], int)


def test_numbers_move_by_ones_and_tens():
    """A number is tried a little and a lot off, a float by a cent, too; never the number itself."""
    assert {24, 26, 15, 35, 50} <= set(values(25))
    assert 12 in values(24)
    assert {25.01, 24.99, 12.5} <= set(values(25.0))
    assert 25 not in values(25.0)


def test_dates_move_by_days():
    """A date or a moment is tried a day later first."""
    assert values("2026-02-28")[0] == "2026-03-01"
    assert values("2026-02-28T10:00:00")[0] == "2026-03-01T10:00:00"
    assert "9999-12-30" in values("9999-12-31")


def test_texts_are_those_of_the_same_column_or_a_little_off():
    """A text is replaced by others of its column, by another digit, or by a longer text."""
    assert set(values("Oslo")[:2]) == {"Bonn", "Rome"}
    assert "+44 1239" in values("+44 1238")
    assert "Main Street II" in values("Main Street")


def test_parts_of_lists_and_mappings_are_changed_one_by_one():
    """Each part of a nested argument is changed alone, and named by its path."""
    schema = {"items": {"properties": {"size": {"enum": ["s", "m"]}}}}
    changed = others([{"size": "s", "card": "C1"}, {"size": "m"}], schema)
    assert ("[0].size", [{"size": "m", "card": "C1"}, {"size": "m"}]) in changed
    assert ("[0].card", [{"size": "s", "card": "C0"}, {"size": "m"}]) in changed
    assert ("", [{"size": "s", "card": "C1"}]) in changed
    assert others(["C0", "C1", "C2"]) == [("", ["C0", "C1"])]


def test_nothing_else_can_be_said_for_nothing():
    """A null has no other value."""
    assert values(None) == []


def test_choices_and_holders():
    """Constants are choices; a key is looked for in every table, a boolean is no key."""
    assert choices({"const": 4}) == [4]
    assert holders("C1", STATE) == ["cards"]
    assert holders(7, STATE) == ["rooms"]
    assert holders(True, STATE) == []


def test_a_template_takes_records_that_belong_together():
    """Keys of another record come with keys of records that are related to it; without rows nothing fits."""
    state = State(
        {
            "owners": {f"O{n}": {"id": f"O{n}"} for n in range(5)},
            "cards": {f"C{n}": {"id": f"C{n}", "owner": f"O{n}"} for n in range(5)},
        }
    )
    template = Template("block", {"owner": "x", "card": "y", "why": "lost"}, {"owner": "owners", "card": "cards"})
    for seed in range(20):
        arguments = template.laid_on(state, Random(seed))
        assert arguments["why"] == "lost"
        assert arguments["owner"][1:] == arguments["card"][1:]
    assert template.laid_on(State({"owners": state.tables["owners"]}), Random(0)) is None
