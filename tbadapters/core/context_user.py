"""A simulated user without a model for tasks whose user is described in free text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tbadapters.core.speech import ASKING, Act, Part, read
from tbadapters.core.suite import UserBrief
from tbadapters.core.users import ScriptedUser, UserReply

_ALL_TOLD = "I have told you everything that I know about this."
_NOTHING_KNOWN = "I know no more than what I wrote."

_LINK = re.compile(r"\[([^\[\]\n]*)\]\((?:mailto:)?[^()\s]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_HEADING = re.compile(r"^\s*(?:rules?|context|user context)\s*:\s*", re.IGNORECASE)
_CLOSED = '.!?:,;-"\u201d'
_LEAD = re.compile(r"^(?:[-*•]|\(?\d{1,2}[.)])\s+")
_ORDER = re.compile(
    r"(?:do not|don't|never|always|remain|stay|be|answer|keep|after sending|only|if asked for the same)\b",
    re.IGNORECASE,
)
_PERSONS = (
    (re.compile(r"\b(?:you are|you're)\b", re.IGNORECASE), "I am"),
    (re.compile(r"\byou have been\b", re.IGNORECASE), "I have been"),
    (re.compile(r"\byour\b", re.IGNORECASE), "my"),
    (re.compile(r"\byours\b", re.IGNORECASE), "mine"),
    (re.compile(r"\byourself\b", re.IGNORECASE), "myself"),
    (re.compile(r"\b(to|for|with|from|asks|tells|gives|informs|of) you\b", re.IGNORECASE), r"\1 me"),
    (re.compile(r"\byou\b", re.IGNORECASE), "I"),
)


class ContextUser(ScriptedUser):
    """Hands over all that its free text says when it is first asked anything, and says yes or no as ``ScriptedUser`` does.

    A person tells what was asked for; this one tells everything at once, in one message, because which sentence of a free
    text answers which question takes a model to decide. It is therefore no canonical user of a benchmark: an agent gets
    facts that it forgot to ask for. The same messages get the same answers.

    Args:
        brief: What it wants and knows; ``context`` is what is handed over, without what only tells a model how to behave.
    """

    def __init__(self, brief: UserBrief) -> None:
        knows = told_facts(brief.context or "")
        super().__init__(replace(brief, goal=" ".join((brief.goal, *knows)), facts=()))
        self._knows = " ".join(knows)
        self._told = False

    async def reply(self, said: str) -> UserReply:
        """Answer the agent's message."""
        return self._answer(read(said))

    def _tell(self, parts: Sequence[Part]) -> list[str]:
        """Return everything at the first question, and the word that there is no more at those that follow."""
        if not any(part.act in ASKING and part.act is not Act.PROPOSE for part in parts):
            return []
        if self._told:
            return [_ALL_TOLD]
        self._told = True
        return [f"This is what I know. {self._knows}" if self._knows else _NOTHING_KNOWN]


def told_facts(context: str) -> list[str]:
    """Return the sentences of a user's free text that tell something, in the first person; orders to a model are left out."""
    lines = (_LEAD.sub("", line.strip()) for line in _LINK.sub(r"\1", context).replace("**", "").splitlines())
    sentences = (part for line in lines for part in _SENTENCE_END.split(_HEADING.sub("", line)))
    return [_first_person(sentence) for sentence in sentences if sentence and not _ORDER.match(sentence)]


def _first_person(sentence: str) -> str:
    for pattern, first_person in _PERSONS:
        sentence = pattern.sub(first_person, sentence)
    sentence = sentence[0].upper() + sentence[1:]
    return sentence if sentence[-1] in _CLOSED else f"{sentence}."
