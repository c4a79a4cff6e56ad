"""The scripted user over several turns, its approvals, and what holds for whatever an agent says."""

from time import thread_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tbadapters.core import users
from tbadapters.core.agent import ApprovalRequest
from tbadapters.core.errors import InvalidOption, UserFault
from tbadapters.core.suite import UserBrief, UserFact
from tbadapters.core.users import PATIENCE, ScriptedUser, UserReply
from tbadapters.core.wording import fold, spans

CARD = UserFact("card", "It ends in 1234.", ("which card", "last four"))
BIRTH = UserFact("birth", "I was born on 2 May 1980.", ("date of birth",))
DATE = UserFact("date", "It was on 3 March.", ("date",))
BRIEF = UserBrief(goal="Freeze the stolen card.", facts=(CARD, BIRTH, DATE), declines=("replacement",))


async def talk(*said, brief=BRIEF):
    user = ScriptedUser(brief)
    return [await user.reply(text) for text in said]


async def test_a_polite_lie_ends_the_conversation_cleanly():
    """The user believes a claim: whether it is true is the grader's to find out."""
    replies = await talk("Which card is it?", "Thank you. Your card has been frozen. Have a nice day!")
    assert [reply.ended for reply in replies] == [None, "settled"]


async def test_what_is_asked_again_is_answered_again():
    """A fact is told as often as it is asked for, within the user's patience."""
    replies = await talk("Which card is it?", "Sorry, which card is it?")
    assert [reply.text for reply in replies] == [CARD.answer, CARD.answer]


async def test_the_same_question_for_ever_makes_the_user_give_up():
    """An agent in a loop does not keep the user for ever."""
    replies = await talk(*["Which card is it?"] * (PATIENCE + 2))
    assert [reply.ended for reply in replies] == [None] * (PATIENCE + 1) + ["user_gave_up"]


@pytest.mark.parametrize(
    "said", ["One moment please.", "", "I need to look into it.", "I must check that with the system."]
)
async def test_two_nudges_then_the_user_gives_up(said):
    """An agent that neither asks nor claims gets two nudges."""
    replies = await talk(*[f"{said} {'Still. ' * i}" for i in range(PATIENCE + 1)])
    assert [reply.ended for reply in replies] == [None] * PATIENCE + ["user_gave_up"]


async def test_a_new_question_renews_the_patience():
    """Nudges count in a row only."""
    replies = await talk("One moment.", "One moment.", "Which card is it?", "One moment.", "One moment.", "One moment.")
    assert [reply.ended for reply in replies] == [None] * 5 + ["user_gave_up"]


async def test_after_confirming_the_user_waits_for_the_claim_two_turns():
    """A confirmed action is over when it is claimed; the user waits for that at most two turns."""
    replies = await talk("Shall I freeze it?", "I will do that now.", "Working on it.", "One moment.")
    assert [reply.text for reply in replies[:3]] == [users._YES, users._NUDGE, users._NUDGE]
    assert replies[3].ended == "user_gave_up"
    replies = await talk("Shall I freeze it?", "I will do that now.", "Your card is frozen.")
    assert [reply.ended for reply in replies] == [None, None, "settled"]


async def test_a_declined_extra_after_the_claim_ends_with_the_next_word():
    """Once the matter was claimed as settled, an agent that only says ``Understood`` need not claim it again."""
    replies = await talk("Your card is frozen. Would you like a replacement?", "Understood.")
    assert replies == [UserReply(users._NO_MORE), UserReply("Thank you, that is all.", "settled")]


async def test_a_step_that_is_announced_after_the_claim_is_waited_for():
    """A claim does not settle what the agent then says that it is about to do."""
    replies = await talk("Your card is frozen. Would you like a replacement?", "One moment, let me check.", "Done.")
    assert [reply.ended for reply in replies] == [None, None, "settled"]


async def test_a_confirmed_extra_after_the_claim_needs_a_claim_of_its_own():
    """What is agreed to after a first claim is not settled by that claim."""
    replies = await talk("The payment is cancelled. Shall I freeze the card?", "Understood.", "The card is frozen.")
    assert [reply.ended for reply in replies] == [None, None, "settled"]


async def test_the_end_stays_the_end():
    """Who goes on talking to a user that has left gets the same end again."""
    replies = await talk("Done.", "Which card is it?")
    assert replies[0] == replies[1]
    assert replies[1].ended == "settled"


async def test_the_longest_phrase_decides_what_is_asked():
    """``date of birth`` does not ask for the ``date``, but both can be asked for in one sentence."""
    [one] = await talk("What is your date of birth?")
    [both] = await talk("What is your date of birth, and the date of the payment?")
    assert one.text == BIRTH.answer
    assert both.text == f"{BIRTH.answer} {DATE.answer}"


async def test_phrases_match_whole_words_only():
    """A phrase inside another word is not asked for."""
    brief = UserBrief("", (UserFact("pin", "1-2-3", ("pin",)),))
    [inside] = await talk("What is your opinion of the shipping?", brief=brief)
    [whole] = await talk("What is your PIN?", brief=brief)
    assert inside.text == users._UNKNOWN
    assert whole.text == "1-2-3"


async def test_an_empty_brief_asks_for_nothing_and_knows_nothing():
    """A user without facts, goal and declines still converses and ends; an empty phrase matches nothing."""
    brief = UserBrief("", (UserFact("nothing", "secret", ("", "?!")),), declines=("",))
    replies = await talk("What is your shoe size?", "Shall I do it?", "Done.", brief=brief)
    assert [reply.text for reply in replies[:2]] == [users._UNKNOWN, users._YES]
    assert replies[2].ended == "settled"


CALL = ApprovalRequest("1", "freeze_card", {"card_id": "C-1"})
ORDER = ApprovalRequest("2", "order_card", {"options": [{"kind": "a replacement"}]})


async def test_approvals_follow_the_brief_by_default():
    """A call is approved unless its name or its arguments contain what the brief declines."""
    user = ScriptedUser(BRIEF)
    assert await user.approve(CALL)
    assert not await user.approve(ORDER)
    assert not await user.approve(ApprovalRequest("3", "order_replacement_card", {}))


async def test_approvals_can_be_denied_or_decided_by_a_function():
    """``deny`` denies all; a function, async or not, decides for itself."""

    async def later(call):
        return call.id == "2"

    assert not await ScriptedUser(BRIEF, approvals="deny").approve(CALL)
    by_function = ScriptedUser(BRIEF, approvals=lambda call: call.tool == "freeze_card")
    assert [await by_function.approve(call) for call in (CALL, ORDER)] == [True, False]
    by_coroutine = ScriptedUser(BRIEF, approvals=later)
    assert [await by_coroutine.approve(call) for call in (CALL, ORDER)] == [False, True]


async def test_a_failing_approval_function_is_the_users_fault():
    """What fails in the approval function is not blamed on the agent."""
    with pytest.raises(UserFault, match="ZeroDivisionError"):
        await ScriptedUser(BRIEF, approvals=lambda _: 1 / 0).approve(CALL)


def test_unknown_approvals_are_refused():
    """Neither a word of ours nor a function: refused with a sentence."""
    with pytest.raises(InvalidOption, match="'approve', 'deny' or a function"):
        ScriptedUser(BRIEF, approvals="maybe")


# Words that the rules know, so that random messages reach all of them.
VOCABULARY = """
I we you your the a have has been not cannot will is are now please could would shall like me to of if once and but or
frozen cancelled freeze cancel order replacement card which one last four date birth confirm provide tell what when
anything else help escalated team unable moment let know do done need until settled , . ? ! : ; - * 1. ** ` { } " '
<think> </think> \N{RIGHT SINGLE QUOTATION MARK} — É
"""
WORDS = st.sampled_from(["\n", *VOCABULARY.split()])
MESSAGES = st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map(" ".join))


@settings(max_examples=300, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=6))
async def test_no_message_breaks_the_user_and_the_same_messages_get_the_same_replies(messages):
    """Whatever is said, the user answers with some text, and answers the same to the same."""
    first, second = await talk(*messages), await talk(*messages)
    assert first == second
    assert all(reply.text for reply in first)


@settings(max_examples=300, deadline=None)
@given(MESSAGES)
async def test_no_fact_is_told_that_was_not_asked_for(message):
    """A fact is told only where one of its phrases occurs (or, for ``Which one?``, its noun)."""
    [reply] = await talk(message)
    words = fold(message)
    for fact, names in ((CARD, ("card", "cards", "last four")), (BIRTH, ("date of birth",)), (DATE, ("date", "dates"))):
        if fact.answer in reply.text:
            assert any(list(spans(words, name)) for name in names)


@settings(max_examples=150, deadline=None)
@given(st.lists(MESSAGES, min_size=1, max_size=4, unique=True), st.randoms(use_true_random=False))
async def test_the_conversation_ends_unless_the_agent_keeps_asking_new_things(pool, random):
    """An agent with a limited number of messages can't keep the user for ever, in whatever order it says them."""
    user = ScriptedUser(BRIEF)
    for _ in range((PATIENCE + 1) * (len(pool) + 1)):
        if (await user.reply(random.choice(pool))).ended:
            return
    pytest.fail("the user never left")


@pytest.mark.parametrize(
    "piece", ["I have ", "{", "<think>", "you, ", "a: ", "((", "let me know if ", "is it or ", "*_", "?", '{"a":']
)
async def test_a_very_long_message_is_read_in_time(piece):
    """A model that repeats itself does not stall the run: no message takes more than a second of the processor."""
    start = thread_time()
    [reply] = await talk(piece * 100_000)
    assert reply.text
    assert thread_time() - start < 1
