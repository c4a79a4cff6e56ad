"""The simulated user: what talks to the agent in the place of a person.

It knows what its brief says and what the agent said to it, never the sandbox: whether the agent tells the truth is the
grader's to find out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from tbadapters.core.agent import ApprovalRequest
from tbadapters.core.errors import InvalidOption, UserFault, boundary
from tbadapters.core.speech import ASKING, CLAIMS, Act, Part, claim, read
from tbadapters.core.suite import UserBrief, UserFact
from tbadapters.core.wording import content, fold, is_general, spans

Approver = Callable[[ApprovalRequest], "bool | Awaitable[bool]"]
Ending = Literal["settled", "user_gave_up"]

PATIENCE = 2  # replies in a row to messages that bring nothing new, before the user gives up

_NUDGE = "My request is in my first message. Please tell me when it is settled, or what you need from me."
_NO_ANSWER = "I did not get an answer. Please tell me when it is settled, or what you need from me."
_WHICH_DETAILS = "Please tell me exactly which details you need."
_UNKNOWN = "I am sorry, I do not know that."
_REST_UNKNOWN = "I am sorry, I do not know the rest."
_YES = "Yes, please go ahead."
_YES_IF = "If that is what you mean: yes, please go ahead."
_NO = "No, I do not want that."
_NO_MORE = "No, thank you. That is all I need."
_NO_PREFERENCE = "I have no preference. Please do what is right under your rules."
_AS_ASKED = "Please do what I asked for in my first message."
_ORDINALS = ("first", "second", "third", "fourth")

_WHICH_ONE = re.compile(r"\bwhich (?:one|of)\b|\bis (?:this|that|it) the (?:one|right|correct)\b")
_POINTS = re.compile(
    r"\bwhat is it\b"
    r"|\b(?:provide|share|confirm|repeat|check|tell me|give me|send me|know) (?:it|that|this|them|these|those)(?: \w+){0,2}$"
)
# How else ``which card`` is asked.
_PICK = tuple(
    f"{before} {article} {{}}"
    for before in (
        "specify",
        "identify",
        "indicate",
        "clarify",
        "name",
        "details about",
        "details of",
        "is this",
        "is that",
    )
    for article in ("the", "your")
)
_NOT = re.compile(r"\b(?:not|no|never)\b")
_INSTEAD = re.compile(r"\b(?:instead of|rather than|without|not) .*")


@dataclass(frozen=True, slots=True)
class UserReply:
    """What the user says next.

    Attributes:
        text: The message; a good-bye where ``ended`` is set.
        ended: ``settled`` when the agent claimed that it settled, refused or escalated the matter, ``user_gave_up``
            when it neither asked nor claimed anything for too long, None while the conversation goes on.
    """

    text: str
    ended: Ending | None = None


class SimulatedUser(Protocol):
    """Plays the user of one attempt."""

    async def reply(self, said: str) -> UserReply:
        """Answer the agent's message.

        Raises:
            UserFault: the user can't answer.
        """
        ...

    async def approve(self, call: ApprovalRequest) -> bool:
        """Say whether the agent may make this tool call.

        Raises:
            UserFault: the user can't decide.
        """
        ...


class ScriptedUser:
    """A simulated user without a model: the same messages get the same answers.

    It answers what is asked, confirms what is proposed unless the brief declines it, says that it does not know
    otherwise, and volunteers nothing. ``docs/user.md`` tells how it decides.

    Args:
        brief: What it wants and knows.
        approvals: What it says to tool calls that wait for approval: ``approve`` (all that the brief does not decline),
            ``deny`` (none), or a function of the request.

    Raises:
        InvalidOption: ``approvals`` is none of these.
    """

    def __init__(self, brief: UserBrief, *, approvals: Literal["approve", "deny"] | Approver = "approve") -> None:
        if approvals not in ("approve", "deny") and not callable(approvals):
            raise InvalidOption(f"approvals={approvals!r}: must be 'approve', 'deny' or a function of the request.")
        self._approvals = approvals
        self._facts = [(fact, [p for phrase in fact.asked_by for p in _wordings(fold(phrase))]) for fact in brief.facts]
        self._nouns = [(fact, [p for noun in _nouns(fact) for p in (noun, f"{noun}s")]) for fact in brief.facts]
        self._declines = [fold(phrase) for phrase in brief.declines]
        self._goal = content(fold(brief.goal))
        self._heard: set[str] = set()
        self._stalled = 0
        self._claimed = False
        self._ended: UserReply | None = None

    async def reply(self, said: str) -> UserReply:
        """Answer the agent's message; after the end, the same end again."""
        if self._ended is None:
            reply = self._answer(read(said))
            if reply.ended is None:
                return reply
            self._ended = reply
        return self._ended

    async def approve(self, call: ApprovalRequest) -> bool:
        """Say whether the agent may make this tool call."""
        if callable(self._approvals):
            with boundary(UserFault):
                decision = self._approvals(call)
                return bool(await decision if inspect.isawaitable(decision) else decision)
        return self._approvals == "approve" and not self._declined(fold(f"{call.tool} {_texts(call.arguments)}"))

    def _answer(self, parts: tuple[Part, ...]) -> UserReply:
        claimed = claim(parts)
        told = self._tell(parts)
        decided, agreed = self._decide(parts, claimed, busy=bool(told))
        if told or decided:
            self._claimed = claimed is not None and not agreed
            asked = {part.words for part in parts if part.act in ASKING or part.act is Act.OFFER}
            return self._unless_stalled(" ".join([*told, *decided]), asked)
        waiting = any(part.act is Act.WAIT for part in parts)
        if claimed is not None or (self._claimed and parts and not waiting):
            return UserReply("Thank you, that is all.", "settled")
        return self._unless_stalled(_NUDGE if parts else _NO_ANSWER, set())

    def _unless_stalled(self, text: str, asked: set[str]) -> UserReply:
        """Return the reply, or give up: what was asked before, and what asks nothing, can't go on for ever."""
        self._stalled = 0 if asked - self._heard else self._stalled + 1
        self._heard |= asked
        if self._stalled > PATIENCE:
            return UserReply("This is taking too long. I will try again another time.", "user_gave_up")
        return UserReply(text)

    def _tell(self, parts: Sequence[Part]) -> list[str]:
        """Return the answers to what is asked for, and the word that the rest is not known."""
        known: list[UserFact] = []
        unknown: list[Part] = []
        for index, part in enumerate(parts):
            if part.act not in (Act.ASK, Act.MAY_ASK, Act.CHOOSE):
                continue
            asked = self._asked(part.words) + self._meant(parts[: index + 1])
            known += asked
            if not asked and part.act is not Act.MAY_ASK and not _leads(parts, index):
                unknown.append(part)
        answers = [fact.answer for fact, _ in self._facts if any(fact is k for k in known)]
        if any(part.act is Act.CHOOSE for part in unknown):
            return [*answers, self._choose(parts)]
        if all(is_general(part.words) for part in unknown):
            return answers or ([_WHICH_DETAILS] if unknown else [])
        return [*answers, _REST_UNKNOWN if answers else _UNKNOWN]

    def _choose(self, parts: Sequence[Part]) -> str:
        """Return which of the listed options agrees with the goal, where one does more than the others."""
        options = [part for part in parts if part.item and part.act not in CLAIMS and not self._declined(part.words)]
        scores = [len(content(option.words) & self._goal) for option in options]
        if scores and max(scores) > 0 and scores.count(max(scores)) == 1:
            return f'This one, please: "{options[scores.index(max(scores))].text}"'
        return _AS_ASKED

    def _asked(self, words: str) -> list[UserFact]:
        """Return the facts that these words ask for."""
        return _named(self._facts, words)

    def _meant(self, parts: Sequence[Part]) -> list[UserFact]:
        """Return the facts that a question asks for by pointing at what was said before it (``Which one is it?``)."""
        before = " ".join(part.words for part in parts if part.act not in CLAIMS)
        if parts[-1].act is Act.MAY_ASK:
            return []
        if _WHICH_ONE.search(parts[-1].words):
            return _named(self._nouns, before)
        return _named(self._facts, before) if _POINTS.search(parts[-1].words) else []

    def _decide(self, parts: Sequence[Part], claimed: Act | None, *, busy: bool) -> tuple[list[str], bool]:
        """Return the answer to what is proposed, and whether the user agreed to anything."""
        done = claimed in (Act.SETTLED, Act.ESCALATED, Act.CLOSE)
        proposals = [p for i, p in enumerate(parts) if p.act is Act.PROPOSE and not _leads(parts, i)]
        if not proposals and not busy:
            offers = [part for part in parts if part.act is Act.OFFER]
            proposals = [part for part in offers if not done or self._wanted(part.words)]
        if not proposals:
            return [], False
        declined = [part for part in proposals if self._against(part, _plan(parts, part), done=done)]
        if len(declined) == len(proposals):
            return [_NO_MORE if done else _NO], False
        agreed = [part for part in proposals if part not in declined]
        answers = list(dict.fromkeys(self._agree(part) for part in agreed))
        if declined:
            answers = [f'Yes to this: "{part.text}"' for part in agreed]
            answers += [f'No to this: "{part.text}"' for part in declined]
        return answers, True

    def _against(self, part: Part, plan: str, *, done: bool) -> bool:
        """Whether the user does not want this; what is proposed after the matter is closed must agree with the goal."""
        about = content(part.words)
        if _options(part.words) and not self._asked(part.words):
            return all(self._declined(option) for option in _options(part.words)) or (
                done and not self._wanted(part.words)
            )
        if self._declined(part.words if about else plan):
            return True
        return done and bool(about) and not self._wanted(part.words)

    def _agree(self, part: Part) -> str:
        facts = self._asked(part.words)
        told = " ".join(fact.answer for fact, _ in self._facts if any(fact is f for f in facts))
        options = _options(part.words)
        if told:
            return told if options else f"{told} {_YES_IF}"
        if not options:
            return _YES
        agreeing = {i: len(content(o) & self._goal) for i, o in enumerate(options) if not self._declined(o)}
        best = [i for i, score in agreeing.items() if score == max(agreeing.values())]
        if len(best) > 1:
            return _NO_PREFERENCE
        return f"The {_ORDINALS[best[0]] if best[0] < len(_ORDINALS) else 'last'} option that you named, please."

    def _wanted(self, words: str) -> bool:
        """Whether most of what a proposal is about is in the goal."""
        about = content(words)
        return not self._declined(words) and 2 * len(about & self._goal) >= len(about) > 0

    def _declined(self, words: str) -> bool:
        proposed = _INSTEAD.sub("", words)
        return any(True for phrase in self._declines for _ in spans(proposed, phrase))


def _nouns(fact: UserFact) -> list[str]:
    """Return what the user could be asked to pick: ``card`` where ``which card`` asks for the fact."""
    return [phrase.removeprefix("which ") for phrase in map(fold, fact.asked_by) if phrase.startswith("which ")]


def _wordings(phrase: str) -> list[str]:
    """Return a folded phrase and, for ``which card``, the other ways of asking to pick a card."""
    noun = phrase.removeprefix("which ")
    if noun == phrase:
        return [phrase]
    return [phrase, f"what {noun}", f"{noun} in question", *(pattern.format(noun) for pattern in _PICK)]


def _named(facts: Sequence[tuple[UserFact, list[str]]], words: str) -> list[UserFact]:
    """Return the facts of which a phrase is among the words.

    A phrase inside a longer one of another fact does not count: ``date of birth`` does not ask for the ``date``.
    """
    found = [(fact, span) for fact, phrases in facts for phrase in phrases for span in spans(words, phrase)]
    return [
        fact
        for fact, (start, end) in found
        if not any(s <= start and end <= e and (s, e) != (start, end) for _, (s, e) in found)
    ]


def _plan(parts: Sequence[Part], proposal: Part) -> str:
    """Return what ``Shall I go ahead?`` is about: what the agent listed, announced or said just before."""
    before = parts[: parts.index(proposal)]
    said = [part for part in before if part.item or part.act in (Act.WAIT, Act.OFFER) or part is before[-1]]
    return " ".join(part.words for part in said if part.act not in CLAIMS and not _NOT.search(part.words))


def _leads(parts: Sequence[Part], index: int) -> bool:
    """Whether a part only introduces the list that follows it."""
    return not parts[index].item and any(following.item for following in parts[index + 1 : index + 2])


def _options(words: str) -> list[str]:
    """Return what a question lets choose from; empty if it only wants a yes or a no."""
    options = words.replace(" yes or no", "").removesuffix(" or not").split(" or ")
    return options if len(options) > 1 else []


def _texts(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(map(_texts, value.values()))
    if isinstance(value, (list, tuple)):
        return " ".join(map(_texts, value))
    return str(value)
