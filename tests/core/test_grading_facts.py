"""Promises of the deterministic match of required facts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tbadapters.core.facts import said
from tbadapters.core.grading import RequiredFact
from tbadapters.core.messages import Message


def told(fact, text, role="agent"):
    return said(RequiredFact("fact", (fact,)), [Message(text, role)])


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("1,250.00", "The limit is 1250."),
        ("1250", "The limit is **1,250.00** now"),
        ("$25", "You get 25.00 back."),
        ("25.00", "You get $25 back."),
        ("25", "You get USD 25 back"),
        ("25 EUR", "You get €25.00 back"),
        ("£25.50", "a refund of 25.5 pounds"),
        ("25", "(25)"),
        ("25", "Amount:25, as agreed."),
        ("-25", "Your balance is \u221225.00."),
        ("-25", "Your balance is -$25.00."),
        ("5%", "a rate of 5 percent"),
        ("5%", "a rate of 5.0%."),
        ("TKT-9001", "Your ticket is `tkt-9001`."),
        ("TKT-9001", "See #TKT-9001, please"),
        ("2026-03-02", "until 2026-03-02."),
        ("next  working day", "By the NEXT\nworking day!"),
        ("can't be refunded", "It can\u2019t be refunded."),
        ("10 days", "within 10\u202fdays"),
        ("1 250", "It is 1 250 in all"),
        ("1250", "It is 1\u202f250 in all"),
        ("09:30", "Come at 09:30."),
        ("14.90", "I gave back \\$14.90 to you."),
        ("14.90", "That is $14.90's worth."),
        ("14.90", "$14.90→credited"),
        ("14.90", "≈$14.90+fees"),
        ("14.90", "$14.90\u200b is back"),
        ("14.90", "\u2705$14.90\u2705\ufe0f"),
        ("14.90", "It is 14.90\u00b9, see below."),
        ("14.90", "14,90 € were credited"),
        ("14.90", "EUR 14,90."),
        ("14.90", "**EUR** `14.90`"),
        ("14.90", "A$14.90, or 14.90CHF"),
        ("14.90", "„14.90“"),
        ("25", "It is 25,- EUR"),
        ("1250", "USD 1,250"),
        ("1250", "1.250,00 €"),
        ("1250", "CHF 1'250.00"),
        ("1250000", "1.250.000 €"),
        ("1250", "1\u202f250,00 €"),
        ("1800", "1 800,00 € were moved"),
        ("1800", "The allowance is 1 800 EUR."),
        ("1800", "The allowance is EUR 1 800.00"),
        ("1800", "It is 1.8 thousand euros."),
        ("an amateur", "an amateur 1 800 times"),
        ("14.90", "14.90&nbsp;EUR"),
        ("14.90", "&euro;14.90"),
        ("TKT-9001", "Your ticket is TKT\u20139001."),
        ("250.00", "| 1 | 250.00 EUR |"),
        ("0.50", "It is $.50 only."),
        ("-25", "Your balance is minus $25."),
        ("-25", "Your balance: \u201325.00"),
        ("5%", "a rate of 5 per cent"),
        ("5%", "a 5-percent rate"),
        ("5%", "a rate of 5 %"),
        ("TKT-9001", "TKT-9001's owner"),
        ("TKT-9001", "TKT-9001→done"),
        ("TKT-9001", "TKT-9001->TKT-9002"),
        ("TKT-9002", "TKT-9001->TKT-9002"),
        ("TKT-9001", "-TKT-9001\u200b"),
        ("TKT-9001", "**TKT\u2011\u200b9001**: open"),
        ("TKT-9001", "_TKT-9001_ ('TKT-9001')"),
        ("ref_25", "It is ref\\_25."),
        ("Visa", "your Visa\u2122 card"),
        ("2026-03-02", "until 2026\u201303\u201302"),
        ("3 March 2026", "on Tuesday, **3 March 2026**."),
        ("March 3 2026", "by March 3, 2026"),
    ],
)
def test_the_same_said_differently_counts(fact, text):
    """White space, case, markup, currencies and ways of writing a number do not matter."""
    assert told(fact, text)


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        ("25", "The limit is 1250."),
        ("25", "The limit is 25.50."),
        ("25", "The limit is 2,500."),
        ("25", "Your ticket is TKT-25."),
        ("25", "It was card25."),
        ("25", "It was on 2026-03-25."),
        ("25", "It is -25."),
        ("-25", "It is 25."),
        ("800", "1 800,00 € were moved"),
        ("250", "It is 1 250.00 EUR."),
        ("25", "It is 25 thousand euros."),
        ("9001", "Your ticket is TKT\u20139001."),
        ("1250", "| 1 | 250.00 EUR |"),
        ("14.90", "a rate of 14.90%"),
        ("14.90", "a rate of 14.90 percent"),
        ("5%", "It is 5."),
        ("25", "It is minus 25."),
        ("25", "It is \u201325."),
        ("25", "It is ref_25."),
        ("50", "It is $.50 only."),
        ("50", "It is .50 only."),
        ("14", "14,90 €"),
        ("90", "14,90 €"),
        ("1.25", "1.250,00 €"),
        ("14.90", "14,900"),
        ("25", "25\u00bd"),
        ("30", "Come at 09:30."),
        ("refund", "It is refundable."),
        ("not refunded", "It was refunded."),
        ("10 days", "10 working days"),
        ("TKT-9001", "TKT-90011"),
        ("2026-03-02", "2026-03-20"),
        ("Anna Berg", "Anna B."),
        ("25", ""),
        ("", "anything"),
    ],
)
def test_something_else_does_not_count(fact, text):
    """A number inside another number, word, id, date or time is not that number; nor is a part of a word a word."""
    assert not told(fact, text)


def test_only_the_agent_can_say_a_fact():
    """What the user said is not what the agent said."""
    assert not told("25", "It is 25.", role="user")


def test_one_of_the_texts_in_one_of_the_messages_is_enough():
    """Any of the texts counts, in any of the agent's messages, but not spread over two of them."""
    fact = RequiredFact("when", ("two days", "48 hours"))
    assert said(fact, [Message("Hello", "agent"), Message("In 48 hours.", "agent")])
    assert not said(fact, [Message("It takes two", "agent"), Message("days.", "agent")])


@settings(deadline=None)
@given(st.integers(0, 10**7), st.integers(0, 99))
def test_every_amount_matches_itself_in_any_form_and_no_other(units, cents):
    """An amount matches itself with and without separators, and not an amount one cent off."""
    amount = f"{units}.{cents:02}"
    assert told(amount, f"You get ${units:,}.{cents:02} back.")
    assert told(f"${units:,}.{cents:02}", f"You get {amount} back.")
    other = units * 100 + cents + 1
    assert not told(amount, f"You get {other // 100}.{other % 100:02} back.")


@settings(deadline=None)
@given(st.text(), st.text())
def test_no_text_breaks_the_match(fact, text):
    """Any text can be looked for in any text."""
    assert told(fact, text) in (True, False)
