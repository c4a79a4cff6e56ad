"""A simulated user without a model for tasks whose user is told in free text."""

import pytest

from tbadapters.core.agent import ApprovalRequest
from tbadapters.core.context_user import ContextUser, told_facts
from tbadapters.core.suite import UserBrief

CONTEXT = """
You are Ada Byron, e-mail [ada@example.com](mailto:ada@example.com). You want your booking moved to October 12.

RULES:
- Do not invent or provide any data not present in the provided context.
- If asked for the same info, provide it again.
- Remain focused, clear, and patient.
- If the agent asks for your date of birth, it is **1987-06-14**.
"""
TOLD = (
    "This is what I know. I am Ada Byron, e-mail ada@example.com. I want my booking moved to October 12. "
    "If the agent asks for my date of birth, it is 1987-06-14."
)


@pytest.fixture
def user():
    return ContextUser(UserBrief("", declines=("cancel",), context=CONTEXT))


async def test_the_first_question_gets_everything(user):
    """Everything is told in one message, in the first person; at further questions there is no more to tell."""
    assert (await user.reply("Hello! What is your date of birth?")).text == TOLD
    assert (await user.reply("And what is your telephone number?")).text.startswith("I have told you everything")


async def test_a_proposal_before_any_question_is_answered_as_such(user):
    """Yes is no occasion to tell anything, and no is said to what is declined."""
    assert (await user.reply("Shall I move it to October 12?")).text == "Yes, please go ahead."
    assert (await user.reply("Shall I cancel the booking?")).text == "No, I do not want that."
    assert (await user.reply("Which booking is it?")).text == TOLD


async def test_a_question_and_a_proposal_get_both_answers(user):
    """What is told does not stand in the way of a decision."""
    text = (await user.reply("What is your e-mail address? Shall I move the booking to October 12?")).text
    assert text == f"{TOLD} Yes, please go ahead."


async def test_it_goes_on_after_a_claim(user):
    """Where only the agent ends the conversation, a question after a claim is answered."""
    assert (await user.reply("I have moved your booking.")).ended == "settled"
    assert (await user.reply("Which room is it?")).text == TOLD


async def test_it_decides_on_approvals_as_the_scripted_user_does(user):
    """What is declined is denied."""
    assert await user.approve(ApprovalRequest("1", "move_booking", {"to": "2026-10-12"}))
    assert not await user.approve(ApprovalRequest("2", "cancel_booking", {}))


async def test_a_text_of_orders_alone_tells_nothing():
    """A user that knows nothing says so."""
    user = ContextUser(
        UserBrief("", context="Rules:\n\nDo not invent any data.\n\nRemain focused, clear, and patient.\n")
    )
    assert (await user.reply("Who are you?")).text == "I know no more than what I wrote."


@pytest.mark.parametrize(
    ("context", "facts"),
    [
        ("Your order number is ORD-1.", ["My order number is ORD-1."]),
        ("Order number: ORD-1\nItem: unopened", ["Order number: ORD-1.", "Item: unopened."]),
        ("1. Tell the agent what your pet is called: Bella", ["Tell the agent what my pet is called: Bella."]),
        ("Rules: You're patient. The agent informs you of a fee.", ["I am patient.", "The agent informs me of a fee."]),
        ("- Never mention it.\n* Your son is 16.", ["My son is 16."]),
        ("", []),
    ],
)
def test_a_free_text_is_told_in_the_first_person(context, facts):
    """Headings, bullets, links and what only tells a model how to behave are left out."""
    assert told_facts(context) == facts
