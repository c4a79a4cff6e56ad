"""Promises of the comparison of a rule's outcome with what golden actions lead to."""

import pytest

from tbadapters.core.grading import Outcome
from tbadapters.core.state import State, TableRules
from tbadapters.testing.decisions import disagreement

RULES = {
    "cards": TableRules(volatile=frozenset({"seen"}), money=frozenset({"fee"})),
    "tickets": TableRules(natural_key=("card",), free_text=frozenset({"body"})),
}
INITIAL = State(
    {
        "cards": {k: {"id": k, "status": "open", "abroad": 0, "fee": 5.0, "seen": 0} for k in ("A", "B", "C")},
        "tickets": {},
    }
)
EXPECTED = State(
    {
        "cards": {
            "A": {"id": "A", "status": "held", "abroad": 1, "fee": 2.5, "seen": 9},
            "B": {"id": "B", "status": "open", "abroad": 0, "fee": 5.0, "seen": 1},
        },
        "tickets": {
            "T1": {"id": "T1", "card": "A", "kind": "fee", "body": "x"},
            "T2": {"id": "T2", "card": "A", "kind": "lost", "body": "y"},
        },
    }
)
CARDS = {"A": {"status": "held", "abroad": True, "fee": "2.50"}, "C": None}
TICKETS = (("tickets", {"card": "A"}), ("tickets", {"card": "A", "kind": "fee"}))


def said(cards=None, created=TICKETS, **tables):
    return disagreement(
        Outcome("x", {"cards": CARDS if cards is None else cards, **tables}, created), INITIAL, EXPECTED, RULES
    )


def test_two_derivations_that_agree():
    """The same fields, deletions and created rows agree, however numbers and booleans are written."""
    assert said() is None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"cards": {**CARDS, "A": {"status": "closed", "abroad": True, "fee": 2.5}}}, "says 'closed'"),
        ({"cards": {**CARDS, "A": {"abroad": True, "fee": 2.5}}}, "cards A status: the rule says 'open'"),
        ({"cards": {**CARDS, "B": {"status": "held"}}}, "cards B status: the rule says 'held'"),
        ({"cards": {"A": CARDS["A"]}}, "cards C: the rule keeps it"),
        ({"cards": {**CARDS, "B": None}}, "cards B: the rule deletes it"),
        ({"cards": {**CARDS, "Z": {"status": "held"}}}, "changes cards Z, which does not exist"),
        ({"cards": {**CARDS, "B": {"colour": "red"}}}, "a column 'colour' that does not exist"),
        ({"created": TICKETS[:1]}, "only the golden actions create"),
        ({"created": (*TICKETS, ("tickets", {"card": "B"}))}, "the rule creates {'card': 'B'}"),
        ({"created": (*TICKETS[:1], ("tickets", {"card": "A", "kind": "id"}))}, "the rule creates"),
        ({"created": (*TICKETS, ("notes", {}))}, "a table 'notes' that does not exist"),
        ({"cards": CARDS, "notes": {"N": {}}}, "a table 'notes' that does not exist"),
    ],
)
def test_two_derivations_that_differ(change, text):
    """Whatever only one of the two knows is named."""
    assert text in said(**change)
