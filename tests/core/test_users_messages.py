"""What the scripted user answers to one message of an agent, over many ways in which agents write."""

import pytest

from tbadapters.core import users
from tbadapters.core.suite import UserBrief, UserFact
from tbadapters.core.users import ScriptedUser

CARD = "It ends in 1234."
BIRTH = "I was born on 2 May 1980."
DATE = "It was on 3 March."
BRIEF = UserBrief(
    goal="Freeze the stolen card and cancel the transfer to Anna.",
    facts=(
        UserFact("last four digits", CARD, ("last four", "card ending", "which card")),
        UserFact("date of birth", BIRTH, ("date of birth", "dob", "birthday")),
        UserFact("date of the payment", DATE, ("date", "when was", "when did", "which date")),
    ),
    declines=("replacement", "voucher"),
)

TOLD = {
    # questions
    "Could you tell me the last four digits and the date?": [CARD, DATE],
    "What is your date of birth?": [BIRTH],
    "what is your date of birth": [BIRTH],
    "Can I have your birthday, please?": [BIRTH],
    "May I have the date of the transaction?": [DATE],
    "Great, and your date of birth?": [BIRTH],
    "dob?": [BIRTH],
    "could u give me dob": [BIRTH],
    "Would you be so kind as to tell me your date of birth?": [BIRTH],
    "Kindly share your D.O.B.": [BIRTH],
    "Wait, which card?": [CARD],
    "What\N{RIGHT SINGLE QUOTATION MARK}s your DÁTE OF BIRTH?": [BIRTH],
    "I can't find that card. Which card is it?": [CARD],
    "I have not been able to refund it yet, which card is it?": [CARD],
    "Hi! Thanks for reaching out. I'm sorry to hear that your card was stolen. To help you, could you please tell me "
    "the last four digits of the card?": [CARD],
    "My apologies, I need to double-check. When did the transaction happen?": [DATE],
    "Before I freeze the card, I need to confirm a few things. What are the last four digits?": [CARD],
    "Is the card ending in 1234 the one you want to freeze?": [CARD],
    "Can you tell me the last\nfour digits?": [CARD],
    # requests without a question mark
    "Please provide the last 4 digits of your card": [CARD],
    "Kindly share the last-four of your card.": [CARD],
    "I need your date of birth to continue.": [BIRTH],
    "I will need your date of birth.": [BIRTH],
    "Let me know your date of birth and I'll proceed.": [BIRTH],
    "Please confirm your date of birth.": [BIRTH],
    "Before I can refund it, I must verify your date of birth.": [BIRTH],
    "I cannot proceed until you give me your date of birth.": [BIRTH],
    "I can't refund it until you confirm your date of birth.": [BIRTH],
    "Once I have your date of birth, I'll freeze the card.": [BIRTH],
    "Once you provide the last four digits, I'll freeze the card.": [CARD],
    "I haven't frozen the card yet because I need your date of birth.": [BIRTH],
    "I can do that for you. First, the last four digits please.": [CARD],
    "Action needed: please reply with your date of birth.": [BIRTH],
    "Date of birth:": [BIRTH],
    "We need the following from you: date of birth, last four digits.": [CARD, BIRTH],
    "To proceed I'd need: (1) your DOB; (2) the last 4 digits.": [CARD, BIRTH],
    "Your identity could not be verified. Please provide your date of birth again.": [BIRTH],
    "You want a refund. To verify you, your date of birth is needed. Could you provide it?": [BIRTH],
    # lists and markup
    "I just need a few details:\n- the last four digits of the card\n- when was the payment made": [CARD, DATE],
    "**Next step:** please send me\n\n1. **Date of birth**\n2. **Last four digits**\n": [CARD, BIRTH],
    "Please answer these security questions:\n- What is your date of birth?": [BIRTH],
    "Please provide:\nDate of birth\nLast four digits of the card": [CARD, BIRTH],
    "To continue, please give me:\n- Birthday registered\n- Last four digits": [CARD, BIRTH],
    "<p>Which <b>card</b> is it?</p>": [CARD],
    "I have the following cards on file:\n1. Visa 1234\n2. Visa 4321\n\nPlease let me know which card.": [CARD],
    "I have your card C-1 and C-2 on file. Which one is stolen?": [CARD],
    "I found two dates for this. Which one is it?": [DATE],
    "I see two active cards:\n- **Card 8792**\n- **Card 1111**\n\nLet me know which one is missing.": [CARD],
    "It looks like you have 2 cards. Please specify the card you'd like to block.": [CARD],
    "Could you clarify the card in question?": [CARD],
    "I'm sorry, the date of birth you gave doesn't match our records. Could you double-check it?": [BIRTH],
    "I found a card that ends in 9999. Is this the one you mean?": [CARD],
    '```json\n{"message": "Which card is it?"}\n```': [CARD],
    # a claim and a question in one message: the question is open
    "I've frozen it. To cancel the transfer I need your date of birth.": [BIRTH],
    "I have cancelled the transfer. And which card is it?": [CARD],
}

UNKNOWN = (
    "What is your mother's maiden name?",
    "Why would you like to have it recalled?",
    "I have updated the card. Which one is your phone?",
    "I've sent a verification code to your phone. Please tell me the code.",
    "I am unable to locate your account. Please double check your customer ID.",
    "Did you authorize the payment?",
    "I've already cancelled the transfer. Can you confirm that you still have the phone?",
    "¿Cuál es su fecha de nacimiento?",
)

CONFIRMED = (
    "To confirm: shall I cancel the transfer TRF-1?",
    "Please confirm.",
    "Please confirm that you'd like to proceed with the cancellation.",
    "Can you confirm you want the transfer cancelled?",
    "Reply YES to proceed.",
    "Once you confirm I will cancel the transfer.",
    "I will freeze card C-1 if you confirm.",
    "If you agree, I'll cancel the transfer.",
    "I would have frozen the card, however I need your confirmation.",
    "I'll freeze card C-1 and cancel TRF-1. Proceed?",
    "Just to be sure - you want me to freeze C-1, right?",
    "You want to freeze card C-1. Correct?",
    "Are you sure you want to cancel the transfer?",
    "Do you agree to the $5 fee?",
    "There is a $5 fee. Do you want to continue?",
    "Here is what I'll do:\n- Freeze card C-1\n- Cancel transfer TRF-1\n\nIs that okay?",
    "I will not order a replacement. Shall I proceed?",
    "Here is what I'll do:\n- Freeze card C-1\n- No replacement card\n\nShall I proceed?",
    "Should I cancel the transfer without ordering a replacement?",
    "I can freeze your card.",
    "I can't waive this fee, but I can open a dispute for you.",
    "I can't do that myself. Would you like me to escalate it to a specialist?",
    "I've frozen your card. Let me know if you'd like me to cancel the transfer to Anna too.",
    "Your card is frozen. Would you like me to cancel the transfer to Anna?",
    "Sure, I can do that. May I proceed with freezing card C-1?",
)

DECLINED = (
    "Do you want me to send you a replacement card?",
    "If you'd like, I can also order a replacement card.",
    "A replacement card costs $5. Shall I proceed?",
    "Here is what I'll do:\n- Freeze card C-1\n- Order a replacement card\n\nShall I proceed?",
    "Here is what I'll do:\n- Order a replacement card\n- Freeze card C-1\n\nShall I proceed?",
    "Would you prefer a voucher?",
    "I'd recommend that. Would you like me to put a replacement card on hold for you?",
)

DECLINED_AFTER = (
    "Your card has been frozen. Would you like me to order a replacement?",
    "I've cancelled the transfer. Shall I also close your savings account?",
    "I've frozen it, shall I order a replacement?",
)

SETTLED = (
    # done
    "I've frozen your card. Is there anything else I can help you with?",
    "I\N{RIGHT SINGLE QUOTATION MARK}ve cancelled TRF-1 for you.",
    "Your card has now been frozen.",
    "The transfer's been cancelled.",
    "Done.",
    "ok card frozen",
    "I froze it.",
    "**All set!** Your new limit is now in effect.",
    "✅ Card frozen\n✅ Transfer cancelled\n\nAnything else?",
    "Refund issued: $35.00",
    "Ticket T-9 created.",
    "Cancelled transfer TRF-1 and froze card C-1.",
    "Great news - your fee of $35 has been waived!",
    "As requested, I have cancelled it.",
    "After reviewing your account, I have waived the fee.",
    "I've gone ahead and frozen the card ending in 1234, so nobody can use it.",
    "I've frozen the card ending in 1234, no further action is required.",
    "Your card is already frozen, so there is nothing more to do.",
    "I have submitted a dispute (D-4) for the payment; you'll hear back within 10 days.",
    "I've frozen your card. I'll send you a confirmation by email.",
    "I've frozen your card. If you need it again, I can unfreeze it anytime.",
    "I've frozen your card. Let me know if you would like me to order a replacement.",
    "I've updated your address. Is there anything you would like me to change?",
    "I've frozen your card, is there anything else I can do?",
    "The dispute has been filed under D-12. Please keep your receipts.",
    '{"response": "Your card has been frozen."}',
    "<think>What is the date of birth?</think>I've frozen your card.",
    "The user wants it frozen. Which card is it?</think>I've frozen your card.",
    "Thought: done\nFinal Answer: The card has been frozen.",
    "I have completed your request. <DONE>",
    # refused
    "Unfortunately your request can't be approved",
    "Sorry, I can't help with that.",
    "I'm afraid that's not possible.",
    "This isn't something I can do.",
    "You are not eligible for a refund because the fee is older than 60 days.",
    "The fee cannot be waived because you have already had one waiver this year.",
    "The payment is still pending, so a dispute can't be opened yet.",
    "Per our policy, I must decline this request.",
    "The payment is pending. We can only open a dispute once it has been posted, so I have to refuse this for now.",
    "I have blocked the card. Since your address was changed, I cannot order another; the case has been passed to our team.",
    "I'm sorry, but your identity could not be confirmed, so I can't unfreeze the card.",
    "I apologize for the inconvenience. Unfortunately, I am not able to cancel the transfer as it has already been completed.",
    "I'm unable to refund this because it's older than 60 days, I've opened a ticket",
    "You'll need to contact the merchant directly.",
    # escalated
    "I've escalated this to the fraud team",
    "Your case has been escalated. Reference: T-101.",
    "I'm transferring you to a human agent.",
    "A specialist will contact you within 2 business days.",
    "The transfer is held. Our payments team will look into it.",
    "I have forwarded your case to our disputes team; they will get in touch.",
    # closed by the agent
    "You're welcome! Have a great day!",
    "Your balance is $250.00. Is there anything else I can help with?",
    "I hope this helps!",
)

NUDGED = (
    "One moment please",
    "I will look into it",
    "Let me check that for you.",
    "Hello! How can I help you today?",
    "I'm transferring the money now.",
    "I see that your card has been frozen since Monday.",
    "It looks like the transfer has already been sent.",
    "Your account has been locked due to three failed attempts.",
    "I could not find any transfer with this reference.",
    "I have not cancelled the transfer.",
    "The transfer has not been cancelled yet.",
    "No refund has been issued.",
    "The cancellation failed because of a system error.",
    "Once the card has been frozen, you will receive an email.",
    "When the transfer has been cancelled, I will tell you.",
    "I've frozen your card. Next, I'll cancel the transfer.",
    "I've frozen your card. Please wait while I cancel the transfer.",
    "Thank you for confirming. I have successfully verified your identity and located the card.",
    "Thanks! Your date of birth checks out. I'm freezing the card now.",
    "Before I can refund it, I must verify your identity.",
    "Name: Maria\nState: NY\nList of cards:\n- C-1",
    "The card ending in 1234 was used on that date.",
    "Here is what I see on file, with the card ending:\n- 1234",
    "Certainly! Blocking the card.",
    "Payment details:\n- Date: 3 March\n- Card ending: 1234",
    "There is a fraud hold on your account.",
    "I'll freeze the card now. This can't be undone.",
)

SILENT = (
    "",
    "   \n",
    "???",
    "<DONE>",
    '{"name": "freeze_card", "arguments": {"card_id": "C-1"}}',
    "{'name': 'freeze_card', 'arguments': {'card_id': 'C-1'}}",
    '{"tool": "freeze_card", "card_id": "C-1"',
    '<tool_call>{"name": "freeze_card", "arguments": {"reason": "which card?"}}</tool_call>',
    "<function=freeze_card>which card?</function>",
    '[TOOL_CALLS] [{"name": "freeze_card", "arguments": {"card_id": 1}}]',
    'freeze_card(card_id="C-1")',
    'Thought: I need the date of birth\nAction: get_customer\nAction Input: {"id": 1}',
    "<think>Which card is it?",
)


async def answer(said):
    return await ScriptedUser(BRIEF).reply(said)


@pytest.mark.parametrize(("said", "told"), TOLD.items(), ids=repr)
async def test_what_is_asked_is_answered_with_exactly_these_facts(said, told):
    """Whoever asks, however it is worded, gets every fact asked for and no other, in one reply."""
    reply = await answer(said)
    assert reply == users.UserReply(" ".join(told))


@pytest.mark.parametrize("said", UNKNOWN)
async def test_what_the_user_does_not_know_it_says_so(said):
    """A question for something that is not in the brief gets the word that the user does not know."""
    assert (await answer(said)) == users.UserReply(users._UNKNOWN)


@pytest.mark.parametrize("said", CONFIRMED)
async def test_what_agrees_with_the_goal_is_confirmed(said):
    """A proposal that the brief does not decline is confirmed."""
    assert (await answer(said)) == users.UserReply(users._YES)


@pytest.mark.parametrize("said", DECLINED)
async def test_what_the_brief_declines_is_declined(said):
    """A proposal with one of the brief's declined phrases is declined, also where it says ``shall I`` afterwards."""
    assert (await answer(said)) == users.UserReply(users._NO)


@pytest.mark.parametrize("said", DECLINED_AFTER)
async def test_an_extra_after_the_claim_is_declined_and_does_not_end_it(said):
    """What is proposed beside a claim, and is not the goal, is declined; the conversation goes on."""
    assert (await answer(said)) == users.UserReply(users._NO_MORE)


@pytest.mark.parametrize("said", SETTLED)
async def test_a_claim_ends_the_conversation(said):
    """A claim of settlement, refusal or escalation that leaves nothing open ends the conversation."""
    assert (await answer(said)).ended == "settled"


@pytest.mark.parametrize("said", NUDGED)
async def test_what_neither_asks_nor_claims_is_nudged(said):
    """A message that brings nothing to answer gets a neutral nudge, which tells nothing."""
    assert (await answer(said)) == users.UserReply(users._NUDGE)


@pytest.mark.parametrize("said", SILENT)
async def test_silence_and_tool_calls_written_as_text_are_no_answer(said):
    """What a person would see nothing in counts as no answer, whatever words are hidden in it."""
    assert (await answer(said)) == users.UserReply(users._NO_ANSWER)


CHOSEN = {
    "Should I freeze the card or open a new account?": "The first option that you named, please.",
    "Would you like a replacement or a refund?": "The second option that you named, please.",
    "Would you like to wait or to be called back?": users._NO_PREFERENCE,
    "Please choose one of the following options:\n1. Freeze the card\n2. Order a replacement": 'This one, please: "Freeze the card"',
    "Please choose:\n1. A replacement of the stolen card\n2. Freeze it": 'This one, please: "Freeze it"',
    "How would you like to proceed?": users._AS_ASKED,
    "Could you please clarify what you would like me to do with this fee?": users._AS_ASKED,
    "Please let me know how you would like to continue.": users._AS_ASKED,
    "I can cancel the transfer, freeze the card, or both. What would you like me to do?": users._AS_ASKED,
    "Would you like me to:\n1. Freeze the card\n2. Order a replacement": (
        'Yes to this: "Freeze the card" No to this: "Order a replacement"'
    ),
}


@pytest.mark.parametrize(("said", "expected"), CHOSEN.items(), ids=repr)
async def test_a_choice_goes_to_what_agrees_with_the_goal(said, expected):
    """Of several options the one that the goal names is taken, a declined one never, and none is invented."""
    assert (await answer(said)) == users.UserReply(expected)


MIXED = {
    "Shall I go ahead? Also, what's your date of birth?": f"{BIRTH} {users._YES}",
    "Shall I freeze the card ending in 9999?": f"{CARD} {users._YES_IF}",
    "What is your date of birth? What is your shoe size?": f"{BIRTH} {users._REST_UNKNOWN}",
    "To verify your identity, please provide:\n\n1. **Full name**\n2. **Date of birth**": f"{BIRTH} {users._REST_UNKNOWN}",
    "I'd be happy to help you freeze your card! Could you provide some more information?": users._WHICH_DETAILS,
    "Could you give me some details? What is your date of birth?": BIRTH,
}


@pytest.mark.parametrize(("said", "expected"), MIXED.items(), ids=repr)
async def test_everything_in_one_message_is_answered_in_one_reply(said, expected):
    """Facts, what is unknown and the answer to a proposal come in one reply, and a wrong detail is put right."""
    assert (await answer(said)) == users.UserReply(expected)
