"""Whether an agent said a required fact: a deterministic match of words and numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal

from tbadapters.core.grading import RequiredFact
from tbadapters.core.messages import Message

_CURRENCY = r"(?:us\$|[$€£¥₹]|usd|eur|euros?|gbp|chf|jpy|cad|aud|inr|dollars?|pounds?)"
_NUMBER = re.compile(
    rf"(?P<sign>[+-]?){_CURRENCY}?(?P<sign_inside>-?)(?P<digits>\d{{1,3}}(?:,\d{{3}})+|\d+)(?P<rest>\.\d+)?{_CURRENCY}?(?P<percent>%?)"
)
_CURRENCY_WORD = re.compile(_CURRENCY)
_SEPARATORS = re.compile(r"[\s*`_~|\"“”«»()\[\]{}<>=;!?…—]+|(?<!\d)[:/\u2013]|[:/\u2013](?!\d)|,(?!\d)|(?<!\d),")
_EDGES = ".,:'#•·"
_PLAIN = str.maketrans({"’": "'", "‘": "'", "−": "-", "‑": "-", "‐": "-"})  # noqa: RUF001  look-alikes are the point
_GROUPED = re.compile(r"(?<=\d)[\u00a0\u202f\u2009](?=\d{3}(?!\d))")

Token = str | Decimal


def tokens(text: str) -> list[Token]:
    """Return a text as words (case folded) and numbers.

    ``$1,250.00`` is the number 1250; a currency beside a number is left out; ``5%`` is 5 and ``percent``. Identifiers
    and dates are one word each (``TKT-9001``, ``2026-03-02``): no number inside them counts as a number.
    """
    plain = unicodedata.normalize("NFKC", _GROUPED.sub("", text)).translate(_PLAIN).casefold()
    found: list[Token] = []
    for chunk in _SEPARATORS.split(plain):
        word = chunk.strip(_EDGES)
        number = _NUMBER.fullmatch(word)
        if number:
            sign = "-" if "-" in number["sign"] + number["sign_inside"] else ""
            found.append(Decimal(sign + number["digits"].replace(",", "") + (number["rest"] or "")))
            found += ["percent"] if number["percent"] else []
        elif word and not (_CURRENCY_WORD.fullmatch(word) and found and isinstance(found[-1], Decimal)):
            found.append(word)
    return _without_leading_currency(found)


def said(fact: RequiredFact, messages: Iterable[Message]) -> bool:
    """Return whether the agent said the fact: one of its texts occurs, whole, in one of the agent's messages."""
    wanted = [sequence for text in fact.any_of if (sequence := tokens(text))]
    spoken = [tokens(message.text) for message in messages if message.role == "agent"]
    return any(_contains(said_tokens, sequence) for said_tokens in spoken for sequence in wanted)


def _without_leading_currency(found: Sequence[Token]) -> list[Token]:
    kept = []
    for token, following in zip(found, [*found, ""][1:], strict=True):
        before_number = isinstance(token, str) and isinstance(following, Decimal) and _CURRENCY_WORD.fullmatch(token)
        if not before_number:
            kept.append(token)
    return kept


def _contains(text: Sequence[Token], part: Sequence[Token]) -> bool:
    return any(list(text[i : i + len(part)]) == list(part) for i in range(len(text) - len(part) + 1))
