"""What an agent's message does: asks, proposes, claims, closes, or puts off.

Read by rules over folded words, no model: the same message is always read the same way. The rules prefer to miss a
claim rather than to invent one, because a missed claim costs the agent one more turn, an invented one cuts it off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tbadapters.core import speech_phrases as say
from tbadapters.core.wording import Sentence, fold, sentences


class Act(Enum):
    """What one part of a message does."""

    ASK = "asks for something, known to the user or not"
    MAY_ASK = "speaks of something it needs; asks if the user knows it"
    CHOOSE = "leaves a choice to the user"
    PROPOSE = "wants a yes or a no"
    OFFER = "says what it could do, without asking"
    SETTLED = "claims that it is done"
    REFUSED = "claims that it can't be done"
    ESCALATED = "claims that somebody else takes over"
    CLOSE = "says good-bye, or asks whether there is anything else"
    WAIT = "announces what it is about to do"
    OTHER = "anything else"


CLAIMS = frozenset({Act.SETTLED, Act.REFUSED, Act.ESCALATED})
ASKING = frozenset({Act.ASK, Act.MAY_ASK, Act.CHOOSE, Act.PROPOSE})


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a message with one act.

    Attributes:
        act: What it does.
        text: As it was said.
        words: Folded.
        item: It is an item of a list.
    """

    act: Act
    text: str
    words: str
    item: bool = False


def read(text: str) -> tuple[Part, ...]:
    """Return the parts of an agent's message, in the order in which they were said; empty if nothing was said."""
    parts: list[Part] = []
    lead: Act | None = None
    for sentence in sentences(text):
        acts = [Part(act, said, fold(said), sentence.item) for act, said in _acts(sentence)]
        if sentence.item and lead is not None and not any(p.act in ASKING | CLAIMS for p in acts if not _terse(p)):
            acts = [Part(lead, sentence.text, sentence.words, item=True)]
        elif not sentence.item:
            lead = next((p.act for p in reversed(acts) if p.act in ASKING and not _is_label(p)), None)
        parts += acts
    return tuple(parts)


def claim(parts: tuple[Part, ...]) -> Act | None:
    """Return what the message claims in the end: the last claim or closing that nothing still to be done follows."""
    for part in reversed(parts):
        if part.act is Act.WAIT:
            return None
        if part.act in CLAIMS or part.act is Act.CLOSE:
            return part.act
    return None


def _is_label(part: Part) -> bool:
    """Whether a part asks only in the way of a form (``Date of birth:``); what follows it need not ask."""
    return part.act is Act.MAY_ASK and not say.NEED.search(part.words)


def _terse(part: Part) -> bool:
    """Whether a claim is only a few words (``Refund issued``), which in a list of questions is a label."""
    return part.act is Act.SETTLED and not say.DONE_BY_SENTENCE.search(part.words)


def _acts(sentence: Sentence) -> Iterator[tuple[Act, str]]:
    if not (sentence.is_question or say.UNMARKED_QUESTION.match(sentence.words)):
        yield from _statement(sentence.text)
        return
    statement, question = _divide(sentence.text)
    if statement:
        yield from _statement(statement)
    yield _question(fold(question)), question


def _divide(text: str) -> tuple[str, str]:
    """Split ``I have frozen it, is there anything else?`` before the clause that asks."""
    pieces = re.split(r"(?<=[,;:])\s+|\s+[-\u2013—]+\s+|\s+(?=(?:and|but|so)\s)", text)
    for index in range(1, len(pieces)):
        if say.ASKS_FIRST.match(fold(pieces[index])) and not say.ASKS_FIRST.match(fold(pieces[0])):
            return " ".join(pieces[:index]), " ".join(pieces[index:])
    return "", text


def _question(words: str) -> Act:
    for act, pattern in (
        (Act.CLOSE, say.CLOSING_QUESTION),
        (Act.WAIT, say.WAITING_QUESTION),
        (Act.CHOOSE, say.CHOICE),
        (Act.MAY_ASK, say.SMALL_TALK),
        (Act.ASK, say.ASKS_TO_BE_TOLD),
        (Act.PROPOSE, say.PROPOSAL),
        (Act.ASK, say.CONFIRM_DETAIL),
        (Act.PROPOSE, say.CONFIRM),
    ):
        if pattern.search(words):
            return act
    return Act.ASK


def _statement(text: str) -> Iterator[tuple[Act, str]]:
    """Yield every act of a sentence that is no question, in the order in which a reader weighs them."""
    words = fold(text)
    closing = say.CLOSING.search(words)
    before = words[: closing.start()] if closing else words
    acts = [*_claims(text, before)]
    asks = _request(before, label=text.rstrip().endswith(":"))
    if asks is not None and not (asks is Act.MAY_ASK and acts):
        acts.append(asks)
    if asks in (None, Act.MAY_ASK) and say.OFFER.search(before):
        acts.append(Act.OFFER)
    if say.WAITING.search(before) and not set(acts) - {Act.MAY_ASK}:
        acts.append(Act.WAIT)
    if closing:
        acts.append(Act.CLOSE)
    for act in acts or [Act.OTHER]:
        yield act, text


def _request(words: str, *, label: bool) -> Act | None:
    for act, pattern in (
        (Act.CHOOSE, say.REQUEST_CHOICE),
        (Act.ASK, say.REQUEST_DETAIL),
        (Act.PROPOSE, say.REQUEST_CONFIRMATION),
        (Act.ASK, say.REQUEST),
        (Act.MAY_ASK, say.NEED),
    ):
        if pattern.search(words):
            return act
    return Act.MAY_ASK if label and say.LABEL.search(words) else None


def _claims(text: str, allowed: str) -> Iterator[Act]:
    conditional = bool(say.CONDITIONAL_SENTENCE.match(fold(text)))
    for number, clause in enumerate(_clauses(text)):
        if clause not in allowed or (conditional and number == 1):
            continue
        for act, pattern in ((Act.ESCALATED, say.ESCALATED), (Act.REFUSED, say.REFUSED), (Act.SETTLED, say.DONE)):
            found = pattern.search(clause)
            if found and not _taken_back(act, clause, found.start()):
                yield act
                break


def _clauses(text: str) -> Iterator[str]:
    for clause in re.split(r"[,;:]\s|\s[-\u2013—]+\s|[()]|—|\b(?:but|so|however)\b", text):
        if words := fold(clause):
            yield words


def _taken_back(act: Act, clause: str, start: int) -> bool:
    """Whether the words around a claim take it back: a condition, a negation, a report of what was found."""
    before = clause[:start].strip()
    if say.CONDITION.search(before):
        return True
    if act is Act.REFUSED:
        return bool(say.NOT_YET.search(clause))
    return bool(say.NEGATION.search(before) or say.REPORTED.search(before) or say.STATUS.search(clause))
