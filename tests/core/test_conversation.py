"""Who speaks next, and how a conversation ends."""

from dataclasses import replace

import pytest

from tbadapters.core.agent import Ended, Said
from tbadapters.core.conversation import End, conversation_for
from tbadapters.core.errors import UnknownName, UserFault
from tbadapters.core.grading import Expectation
from tbadapters.core.messages import Message
from tbadapters.core.suite import Task, UserBrief, UserFact
from tbadapters.core.users import ScriptedUser, UserReply

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
    """An unknown protocol names what is known."""
    with pytest.raises(UnknownName, match=r"conversation protocol 'defualt'.*'default'"):
        conversation_for("defualt", TASK, ScriptedUser(BRIEF))


class Talkative:
    """A user that answers and believes everything."""

    def __init__(self):
        self.heard = []

    async def reply(self, said):
        self.heard.append(said)
        return UserReply(f"Reply {len(self.heard)}.", "settled")

    async def approve(self, call):
        return True


@pytest.fixture
def user():
    return Talkative()


def thinkingbox(user, **changes):
    return conversation_for("thinkingbox", replace(TASK, **changes), user)


async def test_by_the_benchmarks_protocol_only_the_agent_ends_it(user):
    """A satisfied user goes on talking; a message that ends with the marker is the end, and is not answered."""
    conversation = thinkingbox(user)
    assert conversation.start() == Message("Please freeze my card.")
    assert await conversation.next(Said("It is frozen.")) == Message("Reply 1.")
    assert await conversation.next(Said("I write <DONE> when I am done.")) == Message("Reply 2.")
    assert await conversation.next(Said("Good-bye. <DONE> \n")) == End("agent_ended")
    assert await conversation.next(Said("Which card is it?")) == End("agent_ended")
    assert user.heard == ["It is frozen.", "I write <DONE> when I am done."]


async def test_by_the_benchmarks_protocol_the_user_replies_ten_times(user):
    """The agent's answer to the tenth reply is the last message, whatever it says."""
    conversation = thinkingbox(user)
    said = [await conversation.next(Said("And now?")) for _ in range(12)]
    assert said == [*(Message(f"Reply {n}.") for n in range(1, 11)), End("max_user_replies"), End("max_user_replies")]


@pytest.mark.parametrize("replies", [0, 2])
async def test_a_task_says_how_often_the_user_replies(user, replies):
    """Its own number counts, and none is a number."""
    conversation = thinkingbox(user, max_user_replies=replies)
    said = [await conversation.next(Said("And now?")) for _ in range(replies + 1)]
    assert said == [*(Message(f"Reply {n}.") for n in range(1, replies + 1)), End("max_user_replies")]
