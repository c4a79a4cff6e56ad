"""Promises of the comparison of states by key."""

import copy
import random
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from shelf import RULES_TOLD, WORLD, stable_hash

from tbadapters.suites.thinkingbox.states import Comparison, compare_effects, shapes_of

SHAPES = {"shelf": shapes_of(RULES_TOLD)}


def compared(result: Mapping[str, Any], golden: Mapping[str, Any], initial: Mapping[str, Any] = WORLD) -> Comparison:
    told = {
        "initial_db_state": initial,
        "result_db_state": result,
        "golden_db_state": golden,
        "result_db_hash": stable_hash(result),
        "golden_db_hash": stable_hash(golden),
    }
    return compare_effects({"shelf": told}, SHAPES)


def changed(**items: Any) -> dict[str, Any]:
    """Return the world with columns of I1 changed."""
    world = copy.deepcopy(WORLD)
    world["items"][0] |= items
    return world


def kinds(comparison: Comparison) -> list[tuple[str, str, str, str | None]]:
    effects = [one.effect for one in comparison.found]
    return [(effect.kind, effect.table, effect.key, effect.column) for effect in effects]


def test_what_the_hash_leaves_out_does_not_count() -> None:
    """Neither marked fields, nor fields beyond the model's where these are marked, nor the order of plain lists differ."""
    result = changed(note="other", tags=["a", "b"])
    result["places"][0] |= {"seen": 7, "colour": "red"}
    comparison = compared(result, WORLD)
    assert comparison.found == ()
    assert comparison.hash_equal is True
    assert comparison.agrees


def test_each_class_of_effect_is_told_by_field() -> None:
    """A wrong value, a change that is missing and one that should not be are told apart, with all three values."""
    comparison = compared(changed(place="A1", tags=["a"]), changed(place="A9"), changed(place="A1"))
    assert kinds(comparison) == [("missing", "items", "I1", "place"), ("unexpected", "items", "I1", "tags")]
    wrong = compared(changed(place="A2"), changed(place="A9"))
    (effect,) = (one.effect for one in wrong.found)
    assert (effect.kind, effect.initial, effect.final, effect.expected) == ("wrong_value", "A1", "A2", "A9")


def test_rows_are_known_by_key_and_not_by_place() -> None:
    """Rows in another order are the same; a created and a removed row are whole effects that show what counts of them."""
    golden = copy.deepcopy(WORLD)
    result = copy.deepcopy(WORLD)
    result["items"].reverse()
    assert compared(result, golden).found == ()
    golden["items"].append({"id": "I3", "place": "A1", "tags": ["z", "y"], "size": {}, "note": "n"})
    del result["items"][0]
    comparison = compared(result, golden)
    assert kinds(comparison) == [("unexpected", "items", "I2", None), ("missing", "items", "I3", None)]
    assert comparison.found[1].effect.expected == {"id": "I3", "place": "A1", "tags": ["y", "z"], "size": {}}


def test_a_composite_key_is_read_from_the_server() -> None:
    """Rows whose key has several fields are told apart by all of them."""
    result = copy.deepcopy(WORLD)
    result["places"][1]["open"] = False
    assert kinds(compared(result, WORLD)) == [("unexpected", "places", "A|2", "open")]


def test_values_inside_of_a_field_are_compared_by_field() -> None:
    """What differs inside of a field is named by its place there, also in a list of records."""
    comparison = compared(changed(size={"height": 8, "width": 2}), WORLD)
    assert kinds(comparison) == [("unexpected", "items", "I1", "size.height")]
    assert comparison.paths["items", "I1", "size.height"] == ("size", "height")
    lines = [{"n": 1, "q": 1}, {"n": 2, "q": 1}]
    before, after = changed(lines=lines), changed(lines=[lines[0], {"n": 2, "q": 5}])
    assert kinds(compared(after, before, before)) == [("unexpected", "items", "I1", "lines[1].q")]
    shorter = changed(lines=lines[:1])
    assert kinds(compared(shorter, before, before)) == [("unexpected", "items", "I1", "lines")]


def test_tables_of_several_servers_are_told_apart() -> None:
    """Where a task has several servers, a table's name begins with its server's, and all hashes must say equal."""
    told = {"initial_db_state": WORLD, "result_db_state": changed(place="A5"), "golden_db_state": WORLD}
    told |= {"result_db_hash": "1", "golden_db_hash": "2"}
    same = {**told, "result_db_state": WORLD, "result_db_hash": "2"}
    comparison = compare_effects({"one": told, "two": same}, {"one": SHAPES["shelf"], "two": SHAPES["shelf"]})
    assert kinds(comparison) == [("unexpected", "one.items", "I1", "place")]
    assert comparison.hash_equal is False
    assert comparison.agrees


def test_a_hash_that_says_otherwise_is_seen() -> None:
    """The comparison and the hash disagree where only one of them finds a difference."""
    told = {"initial_db_state": WORLD, "result_db_state": WORLD, "golden_db_state": WORLD}
    assert not compare_effects({"shelf": {**told, "result_db_hash": "1", "golden_db_hash": "2"}}, SHAPES).agrees
    differing = {**told, "result_db_state": changed(place="A5"), "result_db_hash": "1", "golden_db_hash": "1"}
    assert not compare_effects({"shelf": differing}, SHAPES).agrees


def test_a_server_without_states_is_not_compared() -> None:
    """Where a server tells no three states there is nothing to compare, and nothing to disagree about."""
    comparison = compare_effects({"bank": {"transactions": []}}, {})
    assert not comparison.compared
    assert comparison.agrees
    assert comparison.found == ()


VALUES = st.recursive(
    st.integers(0, 2) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.fixed_dictionaries({"x": inner})
        | st.lists(st.fixed_dictionaries({"y": inner}))
    ),
    max_leaves=4,
)
ROWS = st.lists(
    st.fixed_dictionaries({"id": st.sampled_from(["1", "2", "3"]), "value": VALUES, "note": st.integers(0, 3)}),
    max_size=3,
    unique_by=lambda row: row["id"],
)


@given(ROWS, ROWS, ROWS, st.randoms(use_true_random=False))
def test_a_difference_is_found_exactly_where_the_hash_has_one(
    initial: list[Any], result: list[Any], golden: list[Any], order: random.Random
) -> None:
    """Whatever rows there are, nested as they like and in any order, comparison and hash say the same."""
    try:
        states = [{"items": rows, "places": []} for rows in (initial, result, golden)]
        hashes = [stable_hash(state) for state in states[1:]]
    except TypeError:  # a list of text and numbers can't be sorted, by the servers neither
        return
    order.shuffle(states[1]["items"])
    names = ("initial_db_state", "result_db_state", "golden_db_state")
    told = dict(zip(names, states, strict=True)) | {"result_db_hash": hashes[0], "golden_db_hash": hashes[1]}
    comparison = compare_effects({"shelf": told}, SHAPES)
    assert comparison.agrees
    assert comparison.hash_equal == (not comparison.found)
