"""Which values a text states that nobody told it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tbadapters.core.stated_values import unknown_values

KNOWN = """
You are Michael Henderson, an employee at ConsultingGroup. Your e-mail is [m.henderson@example.com](mailto:...).
Your booking is BKG-29270653. You move your check-in from October 8, 2026 to October 12, 2026.
Your date of birth is 1987-06-14. The card is 4111 1111 1111 7392 and your telephone number is (305) 847-2931.
The fee is $1,250.00 or 5%. Your son's pet is called Bella. You have two children. See https://example.com/help.
The desk opens at 9:30 am. The course is on November 14-16. Your office is VDB-Corporate in St. Louis.
"""


@pytest.mark.parametrize(
    "text",
    [
        "My booking reference is BKG-29270653.",
        "It is bkg 29270653.",
        "From October 8 to October 12, please.",
        "From 2026-10-08 to 12 October 2026.",
        "I was born on June 14, 1987.",
        "I was born on 14/06/1987.",
        "The card ends in 7392.",
        "Seven three nine two.",
        "It is 305-847-2931.",
        "You can call 3058472931.",
        "We come on November 14-16, on the 16th at the latest.",
        "It is 29270653.",
        "The fee of 1250 is fine, so is 1,250 or 1250.00 dollars.",
        "5% is fine.",
        "Bella.",
        "My name is Michael Henderson. Michael's e-mail is M.Henderson@example.com.",
        "I have 2 children. One moment. I'm OK with that, thanks.",
        "It opens at 9:30 AM, I work for VDB in St. Louis.",
        "Yes. No. Thanks! Sure.",
        "I do not know that.",
        "Mr. Henderson is right. Please see https://example.com/help.",
        "",
    ],
)
def test_what_is_known_may_be_stated(text):
    """A known value in another notation, and usual words, are no inventions."""
    assert unknown_values(text, [KNOWN]) == ()


@pytest.mark.parametrize(
    ("text", "made_up"),
    [
        ("My booking reference is BKG-29270654.", ["BKG-29270654"]),
        ("The card ends in 7393.", ["7393"]),
        ("The card ends in 1111.", []),  # it begins and goes on like that: a part of what is known
        ("It is 292706.", ["292706"]),
        ("It is 9270.", ["9270"]),
        ("Seven three nine three.", ["Seven three nine three"]),
        ("I would pay twenty dollars.", ["twenty"]),
        ("From October 9, please.", ["October 9"]),
        ("On October 8, 2027.", ["October 8, 2027"]),
        ("On 2026-10-09.", ["2026-10-09"]),
        ("The fee of 1251 is fine.", ["1251"]),
        ("A fee of 6% is fine, and 5 as well.", ["6%", "5"]),
        ("Max.", ["Max"]),
        ("My dog is Max.", ["Max"]),
        ("I live in Berlin, with Bella.", ["Berlin"]),
        ("On Tuesday.", ["Tuesday"]),
        ("Tuesday suits me.", ["Tuesday"]),
        ("Write to mike@example.com or see www.example.org/x.", ["mike@example.com", "www.example.org/x"]),
        ("I have 3 children.", ["3"]),
        ("My phone is (305) 847-2932.", ["847-2932"]),
        ("Dr. Smith told me.", ["Smith"]),
        ("It is 10:30 am.", ["10:30"]),
    ],
)
def test_what_is_made_up_is_named(text, made_up):
    """Each value that nobody told is named as it stands there."""
    assert list(unknown_values(text, [KNOWN])) == made_up


def test_names_can_be_left_to_the_user():
    """Where capitals mean something else, only numbers, dates, ids and addresses count."""
    assert unknown_values("Ich wohne in der Stadt, Nummer 7.", [KNOWN], names=False) == ("7",)


@given(st.text(max_size=200))
def test_a_text_states_nothing_that_it_does_not_hold_itself(text):
    """Whatever it is, a text known as it is holds nothing unknown."""
    assert unknown_values(text, [text]) == ()
