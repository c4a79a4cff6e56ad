"""Who speaks next, and how a conversation ends."""

import pytest

from tbadapters.core.agent import Ended, Said
from tbadapters.core.conversation import End, conversation_for
from tbadapters.core.errors import UnknownName, UsageError, UserFault
from tbadapters.core.grading import Expectation
from tbadapters.core.messages import Message
from tbadapters.core.suite import Task, UserBrief, UserFact
from tbadapters.core.users import ScriptedUser

BRIEF = UserBrief("Freeze the card.", (UserFact("card", "It ends in 1234.", ("which card",)),))
TASK = Task("bank/freeze/0", "Please freeze my card.", BRIEF, Expectation(()))


@pytest.fixture
def conversation():
    return conversation_for("default", TASK, ScriptedUser(BRIEF))


def test_it_starts_with_the_opening(conversation):
    """The first message is the task's opening, said by the user."""
    assert conversation.start() == Message("Please freeze my card.", "user")


async def test_the_user_answers_until_the_agent_claims(conversation):
    """Questions are answered; a claim ends it with the user's reason, and it stays ended."""
    assert await conversation.next(Said("Which card is it?")) == Message("It ends in 1234.")
    assert await conversation.next(Said("It is frozen now.")) == End("settled")
    assert await conversation.next(Said("Which card is it?")) == End("settled")


async def test_an_impatient_user_ends_it(conversation):
    """The user's giving up is told apart from a claim."""
    ends = [await conversation.next(Said("One moment.")) for _ in range(3)]
    assert ends[-1] == End("user_gave_up")


async def test_an_agent_that_ends_it_is_not_answered(conversation):
    """The agent's own end is the end, whatever it says with it."""
    assert await conversation.next(Ended("end_turn", "Which card is it?")) == End("agent_ended")
    assert await conversation.next(Said("Which card is it?")) == End("agent_ended")


async def test_what_fails_in_a_user_is_the_users_fault():
    """A simulator that breaks is not blamed on the agent."""

    class Broken(ScriptedUser):
        async def reply(self, said):
            raise ValueError("no model")

    with pytest.raises(UserFault, match="ValueError: no model"):
        await conversation_for("default", TASK, Broken(BRIEF)).next(Said("Hello?"))


def test_a_protocol_that_is_not_there_is_refused():
    """An announced protocol says where it comes from, an unknown one names what is known."""
    with pytest.raises(UsageError, match="comes with the thinkingbox suite"):
        conversation_for("thinkingbox", TASK, ScriptedUser(BRIEF))
    with pytest.raises(UnknownName, match=r"conversation protocol 'defualt'.*'default'"):
        conversation_for("defualt", TASK, ScriptedUser(BRIEF))
