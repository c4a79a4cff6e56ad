"""Promises of the comparison of states."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tbadapters.core.state import State, TableRules, compare

STEADY = settings(deadline=None, max_examples=80)

RULES = {
    "accounts": TableRules(key=("id",), money=frozenset({"balance"})),
    "tickets": TableRules(
        natural_key=("account",),
        free_text=frozenset({"body"}),
        volatile=frozenset({"opened"}),
        references={"account": "accounts", "parent": "tickets"},
        key=("id",),
    ),
    "notes": TableRules(natural_key=("ticket",), references={"ticket": "tickets", "about": "*"}, key=("id",)),
}


def state(**tables):
    return State({name: {str(row["id"]): row for row in rows} for name, rows in tables.items()})


def kinds(effects):
    return [(e.kind, e.table, e.key, e.column) for e in effects]


def account(key, **columns):
    return {"id": key, "status": "open", "balance": 10.0, **columns}


def ticket(key, account, **columns):
    return {"id": key, "account": account, "category": "fee", "parent": None, "body": "b", "opened": 1, **columns}


def note(key, ticket, **columns):
    return {"id": key, "ticket": ticket, "kind": "call", "about": None, **columns}


def test_a_field_that_should_have_changed_is_missing():
    """An expected change that did not happen is missing, with the three values."""
    before, right = state(accounts=[account("A")]), state(accounts=[account("A", status="closed")])
    (effect,) = compare(before, before, right, RULES)
    assert (effect.kind, effect.table, effect.key, effect.column) == ("missing", "accounts", "A", "status")
    assert (effect.initial, effect.final, effect.expected) == ("open", "open", "closed")


def test_a_field_that_should_have_stayed_is_unexpected():
    """A change of a field that should have stayed is unexpected."""
    before, after = state(accounts=[account("A")]), state(accounts=[account("A", status="closed")])
    assert kinds(compare(before, after, before, RULES)) == [("unexpected", "accounts", "A", "status")]


def test_another_value_in_the_right_field_is_a_wrong_value():
    """The right field with a third value is a wrong value, and only that."""
    before = state(accounts=[account("A")])
    after, right = state(accounts=[account("A", status="held")]), state(accounts=[account("A", status="closed")])
    assert kinds(compare(before, after, right, RULES)) == [("wrong_value", "accounts", "A", "status")]


def test_acting_on_another_record_is_missing_and_unexpected():
    """The right change on the wrong record is one missing and one unexpected effect."""
    before = state(accounts=[account("A"), account("B")])
    right = state(accounts=[account("A", status="closed"), account("B")])
    after = state(accounts=[account("A"), account("B", status="closed")])
    assert kinds(compare(before, after, right, RULES)) == [
        ("missing", "accounts", "A", "status"),
        ("unexpected", "accounts", "B", "status"),
    ]


def test_a_ticket_for_another_account_is_missing_and_unexpected():
    """A created row with another natural key is another record."""
    before = state(accounts=[account("A"), account("B")], tickets=[])
    right = state(accounts=[account("A"), account("B")], tickets=[ticket("T1", "A")])
    after = state(accounts=[account("A"), account("B")], tickets=[ticket("T1", "B")])
    assert sorted(e.kind for e in compare(before, after, right, RULES)) == ["missing", "unexpected"]


def test_created_rows_match_whatever_their_ids():
    """Ids of created rows are counters: another order of creation is the same state, references included."""
    before = state(accounts=[account("A"), account("B")], tickets=[], notes=[])
    accounts = [account("A"), account("B")]
    right = state(
        accounts=accounts, tickets=[ticket("T1", "A"), ticket("T2", "B")], notes=[note("N1", "T2", about="T1")]
    )
    after = state(
        accounts=accounts, tickets=[ticket("T1", "B"), ticket("T2", "A")], notes=[note("N7", "T1", about="T2")]
    )
    assert compare(before, after, right, RULES) == ()


def test_a_reference_to_the_wrong_created_row_is_found():
    """A created row that refers to the wrong one of two created rows is not the same."""
    before = state(accounts=[account("A"), account("B")], tickets=[], notes=[])
    accounts, tickets = [account("A"), account("B")], [ticket("T1", "A"), ticket("T2", "B")]
    right = state(accounts=accounts, tickets=tickets, notes=[note("N1", "T2", about="T1")])
    after = state(accounts=accounts, tickets=tickets, notes=[note("N1", "T2", about="T2")])
    assert kinds(compare(before, after, right, RULES)) == [("wrong_value", "notes", "N1", "about")]


def test_an_old_row_may_refer_to_a_created_one():
    """References of rows that were there before are rewritten, too."""
    before = state(accounts=[account("A"), account("B")], tickets=[ticket("T0", "A")])
    right = state(
        accounts=[account("A"), account("B")],
        tickets=[ticket("T0", "A", parent="T2"), ticket("T1", "A"), ticket("T2", "B")],
    )
    same = state(
        accounts=[account("A"), account("B")],
        tickets=[ticket("T0", "A", parent="T1"), ticket("T1", "B"), ticket("T2", "A")],
    )
    other = state(
        accounts=[account("A"), account("B")],
        tickets=[ticket("T0", "A", parent="T2"), ticket("T1", "B"), ticket("T2", "A")],
    )
    assert compare(before, same, right, RULES) == ()
    assert kinds(compare(before, other, right, RULES)) == [("wrong_value", "tickets", "T0", "parent")]


def test_rows_that_share_a_natural_key_are_paired_to_differ_least():
    """Of several rows with one natural key, those that are most alike are compared with each other."""
    before = state(accounts=[account("A")], tickets=[])
    right = state(
        accounts=[account("A")],
        tickets=[
            ticket("T1", "A", category="fee"),
            ticket("T2", "A", category="card"),
            ticket("T3", "A", category="id"),
        ],
    )
    after = state(
        accounts=[account("A")],
        tickets=[
            ticket("T1", "A", category="card"),
            ticket("T2", "A", category="id"),
            ticket("T3", "A", category="limit"),
        ],
    )
    (effect,) = compare(before, after, right, RULES)
    assert (effect.kind, effect.key, effect.column, effect.final, effect.expected) == (
        "wrong_value",
        "T3",
        "category",
        "limit",
        "fee",
    )


def test_twin_rows_are_told_apart_by_what_refers_to_them():
    """Two tickets alike in every field are paired by their notes."""
    accounts = [account("A")]
    before = state(accounts=accounts, tickets=[], notes=[])
    right = state(
        accounts=accounts,
        tickets=[ticket("T1", "A"), ticket("T2", "A")],
        notes=[note("N1", "T1", kind="call"), note("N2", "T2", kind="mail")],
    )
    after = state(
        accounts=accounts,
        tickets=[ticket("T1", "A"), ticket("T2", "A")],
        notes=[note("N1", "T1", kind="mail"), note("N2", "T2", kind="call")],
    )
    assert compare(before, after, right, RULES) == ()


def test_twin_rows_are_told_apart_even_if_what_refers_to_them_is_wrong():
    """Twins whose notes hold a wrong value are still paired by what the notes hold otherwise: one effect, not four."""
    accounts = [account("A")]
    before = state(accounts=accounts, tickets=[], notes=[])
    twins = [ticket("T1", "A"), ticket("T2", "A")]
    right = state(
        accounts=accounts,
        tickets=twins,
        notes=[note("N1", "T1", about="T2"), note("N2", "T2", about="T1", kind="mail")],
    )
    after = state(
        accounts=accounts,
        tickets=twins,
        notes=[note("N1", "T2", about="T1", kind="fax"), note("N2", "T1", about="T2", kind="mail")],
    )
    assert kinds(compare(before, after, right, RULES)) == [("wrong_value", "notes", "N1", "kind")]


def test_of_two_bad_pairings_the_better_one_is_taken():
    """Where no row is right, those are compared that differ in fewer fields."""
    accounts = [account("A")]
    before = state(accounts=accounts, tickets=[ticket("T0", "A")], notes=[])
    tickets = [ticket("T0", "A")]
    right = state(
        accounts=accounts, tickets=tickets, notes=[note("N1", "T0"), note("N2", "T0", kind="mail", about="x")]
    )
    after = state(
        accounts=accounts,
        tickets=tickets,
        notes=[note("N1", "T0", kind="mail", about="y"), note("N2", "T0", about="y")],
    )
    assert kinds(compare(before, after, right, RULES)) == [
        ("wrong_value", "notes", "N1", "about"),
        ("wrong_value", "notes", "N2", "about"),
    ]


def test_an_additional_twin_is_unexpected_and_a_lost_one_missing():
    """The number of created rows counts, not only that there is one."""
    one = state(accounts=[account("A")], tickets=[ticket("T1", "A")])
    two = state(accounts=[account("A")], tickets=[ticket("T1", "A"), ticket("T2", "A")])
    before = state(accounts=[account("A")], tickets=[])
    assert [e.kind for e in compare(before, two, one, RULES)] == ["unexpected"]
    assert [e.kind for e in compare(before, one, two, RULES)] == ["missing"]


def test_free_text_and_volatile_columns_do_not_count():
    """What an agent words itself and what nobody can be right about is not compared, in old and created rows."""
    before = state(accounts=[account("A")], tickets=[ticket("T0", "A")])
    right = state(accounts=[account("A")], tickets=[ticket("T0", "A", body="x"), ticket("T1", "A", body="x", opened=2)])
    after = state(accounts=[account("A")], tickets=[ticket("T0", "A", opened=9), ticket("T1", "A", body="y", opened=3)])
    assert compare(before, after, right, RULES) == ()


def test_deletions_are_compared():
    """A row that should be gone is missing, one that should not be gone is unexpected."""
    both, one = state(accounts=[account("A"), account("B")]), state(accounts=[account("A")])
    assert kinds(compare(both, both, one, RULES)) == [("missing", "accounts", "B", None)]
    assert kinds(compare(both, one, both, RULES)) == [("unexpected", "accounts", "B", None)]
    assert compare(both, one, one, RULES) == ()


def test_deleting_a_row_that_should_have_changed_is_both():
    """A record that was deleted instead of changed is an unexpected deletion, and its change is missing."""
    before, right = state(accounts=[account("A")]), state(accounts=[account("A", status="closed")])
    assert kinds(compare(before, state(accounts=[]), right, RULES)) == [
        ("unexpected", "accounts", "A", None),
        ("missing", "accounts", "A", "status"),
    ]


def test_a_changed_key_is_another_row():
    """A row under another key is a deleted row and a created one."""
    before, after = state(accounts=[account("A")]), state(accounts=[account("B")])
    assert kinds(compare(before, after, before, RULES)) == [
        ("unexpected", "accounts", "A", None),
        ("unexpected", "accounts", "B", None),
    ]


def test_tables_without_rules_are_compared_by_key():
    """A table that no rules speak of is compared in all columns, created rows by key."""
    before, right = state(things=[]), state(things=[{"id": 1, "size": 2}])
    assert kinds(compare(before, state(things=[{"id": 1, "size": 3}]), right)) == [
        ("wrong_value", "things", "1", "size")
    ]
    assert [e.kind for e in compare(before, state(things=[{"id": 2, "size": 2}]), right)] == ["unexpected", "missing"]


def test_a_table_may_be_absent_from_a_state():
    """A table that one state does not have is empty there."""
    right = state(accounts=[account("A")])
    assert [e.kind for e in compare(State({}), State({}), right, RULES)] == ["missing"]


def test_a_circle_of_references_is_matched():
    """Two created rows that refer to each other are matched whatever their ids."""
    accounts = [account("A"), account("B")]
    before = state(accounts=accounts, tickets=[])
    right = state(accounts=accounts, tickets=[ticket("T1", "A", parent="T2"), ticket("T2", "B", parent="T1")])
    swapped = state(accounts=accounts, tickets=[ticket("T1", "B", parent="T2"), ticket("T2", "A", parent="T1")])
    wrong = state(accounts=accounts, tickets=[ticket("T1", "A", parent="T1"), ticket("T2", "B", parent="T1")])
    assert compare(before, swapped, right, RULES) == ()
    assert kinds(compare(before, wrong, right, RULES)) == [("wrong_value", "tickets", "T1", "parent")]


CATEGORIES = ("fee", "card", "id")


@st.composite
def created(draw):
    """Draw a state with created tickets (in chains) and notes on them, laid on two accounts."""
    tickets = []
    for index in range(draw(st.integers(0, 5))):
        parent = draw(st.sampled_from([None, *(t["id"] for t in tickets)]))
        tickets.append(
            ticket(f"T{index}", draw(st.sampled_from("AB")), category=draw(st.sampled_from(CATEGORIES)), parent=parent)
        )
    notes = [
        note(
            f"N{index}",
            draw(st.sampled_from([t["id"] for t in tickets])),
            kind=draw(st.sampled_from(["call", "mail"])),
            about=draw(st.sampled_from([None, "A", *(t["id"] for t in tickets)])),
        )
        for index in range(draw(st.integers(0, 4)) if tickets else 0)
    ]
    accounts = [
        account("A", status=draw(st.sampled_from(["open", "held"]))),
        account("B", balance=draw(st.floats(0, 99))),
    ]
    return state(accounts=accounts, tickets=tickets, notes=notes)


BEFORE = state(accounts=[account("A"), account("B"), account("C")], tickets=[], notes=[])


def renumbered(original, rng):
    """Return the state with the ids of created rows permuted, as another order of creation would give them."""
    names = {}
    for table in ("tickets", "notes"):
        keys = list(original.tables[table])
        names.update(zip(keys, rng.sample(keys, len(keys)), strict=True))
    return State(
        {
            "accounts": original.tables["accounts"],
            **{
                table: {
                    names[key]: {c: names.get(v, v) if isinstance(v, str) else v for c, v in row.items()}
                    for key, row in sorted(original.tables[table].items(), key=lambda _: rng.random())
                }
                for table in ("tickets", "notes")
            },
        }
    )


@STEADY
@given(created())
def test_a_state_equals_itself(after):
    """Whatever was expected, reaching it exactly has no effect to report."""
    assert compare(BEFORE, after, after, RULES) == ()


@STEADY
@given(created(), st.integers(0, 10**6))
def test_the_order_of_creation_does_not_matter(after, seed):
    """Permuted ids of created rows, references along, are the same state."""
    assert compare(BEFORE, renumbered(after, random.Random(seed)), after, RULES) == ()


@STEADY
@given(created(), st.data())
def test_every_changed_field_of_a_created_row_is_found(after, data):
    """A single graded field with another value is found, whatever the ids, and never called missing alone."""
    places = [(t, key, c) for t, c in (("tickets", "category"), ("notes", "kind")) for key in after.tables[t]]
    if not places:
        return
    table, key, column = data.draw(st.sampled_from(places))
    tables = {name: dict(rows) for name, rows in after.tables.items()}
    tables[table][key] = {**tables[table][key], column: "another"}
    spoilt = renumbered(State(tables), random.Random(data.draw(st.integers(0, 99))))
    effects = compare(BEFORE, spoilt, after, RULES)
    assert {(e.kind, e.table, e.column) for e in effects if e.final == "another"} == {("wrong_value", table, column)}


@STEADY
@given(created(), created())
def test_missing_and_unexpected_rows_add_up(one, other):
    """In each table, missing less unexpected rows are the rows created too few; and who differs, differs both ways."""
    there, back = compare(BEFORE, one, other, RULES), compare(BEFORE, other, one, RULES)
    assert bool(there) == bool(back)
    for table in ("tickets", "notes"):
        rows = [e.kind for e in there if e.table == table and e.column is None]
        too_few = len(other.tables[table]) - len(one.tables[table])
        assert rows.count("missing") - rows.count("unexpected") == too_few


@STEADY
@given(before=st.integers(0, 2), after=st.integers(0, 2), right=st.integers(0, 2), key=st.sampled_from(["A", "B"]))
def test_each_old_field_has_the_one_right_class(before, after, right, key):
    """For a field of an old row the three values decide the class, as the table in the module says."""

    def with_value(value):
        return state(accounts=[account(k, status=value if k == key else "open") for k in "AB"])

    effects = compare(with_value(before), with_value(after), with_value(right), RULES)
    if after == right:
        assert effects == ()
    else:
        kind = "unexpected" if right == before else "missing" if after == before else "wrong_value"
        assert kinds(effects) == [(kind, "accounts", key, "status")]
