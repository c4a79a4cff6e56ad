"""Whether an agent said a required fact: a deterministic match of words and numbers."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from tbadapters.core.grading import RequiredFact
from tbadapters.core.messages import Message

_CURRENCY = (
    r"(?:(?:us|ca?|au?|nz|hk|s)?\$|[€£¥₹₩₽₺₪]|usd|eur|euros?|gbp|chf|jpy|cad|aud|nzd|hkd|sgd|inr|cny|krw|sek|nok|dkk|pln"
    r"|czk|huf|brl|mxn|zar|dollars?|pounds?|francs?)"
)
_PERCENT = r"(?:%|percent|pct)"
_NUMBER = re.compile(
    rf"(?P<sign>-?){_CURRENCY}?(?P<sign_inside>-?)"
    r"(?:(?P<comma>\d+,\d{1,2}|\d{1,3}(?:[.']\d{3})+,\d{1,2}|\d{1,3}(?:\.\d{3}){2,})"
    r"|(?P<point>(?:\d{1,3}(?:[,']\d{3})+|\d+)(?:\.\d+)?|\.\d+))"
    rf"{_CURRENCY}?(?P<percent>-?{_PERCENT})?"
)
"""A number with its currency: 1,250.00 as it is written in English, 1.250,00 as it is elsewhere, 1'250.00 in both."""
_CURRENCY_WORD, _PERCENT_WORD = re.compile(_CURRENCY), re.compile(_PERCENT)
_SEPARATORS = re.compile(
    r"[\s*\";!?–—―]+|\.{2,}|-{2,}|(?<![^\W_])_+|_+(?![^\W_])|(?<!\d)[:/]|[:/](?!\d)|,(?!\d)|(?<!\d),"  # noqa: RUF001  look-alikes are the point
)
_BEFORE = re.compile(r"(?:[,:'#•·]|\.(?!\d))+")
_AFTER = ".,:'#•·-"
_GROUPED = re.compile(r"(?<=\d)[\u00a0\u202f\u2007\u2009](?=\d{3}(?!\d))")
_GROUPED_AMOUNT = re.compile(
    rf"(?<!\w){_CURRENCY}[ ]?\d{{1,3}}(?:[ ]\d{{3}}){{1,4}}(?!\d)"
    rf"|(?<![\d.,'])\d{{1,3}}(?:[ ]\d{{3}}){{1,4}}(?=,\d{{1,2}}(?!\d)|(?:\.\d{{2}})?\s?{_CURRENCY}(?!\w))",
    re.IGNORECASE,
)
"""A number in groups with plain spaces between them, where a currency or decimals show that it is one number."""
_SCALES = {"thousand": Decimal(10**3), "million": Decimal(10**6), "billion": Decimal(10**9)}
_ESCAPE = re.compile(r"\\+(?=[^\w\s]|_)")
_DASH_AS_HYPHEN = re.compile(rf"(?<=[^\W_])–(?=\d)|(?<!\S)–(?={_CURRENCY}?\d)")  # noqa: RUF001  look-alikes are the point
_IN_WORDS = re.compile(rf"\bminus\s+(?={_CURRENCY}?\s?\d)")
_PER_CENT = re.compile(r"\bper\s+cent\b")


@dataclass(frozen=True, slots=True)
class Percentage:
    """A number of percent: another thing than the number."""

    number: Decimal


Token = str | Decimal | Percentage


class _Characters(dict[int, int | str | None]):
    """What stands for a character (for ``str.translate``), worked out once for each.

    Invisible ones are dropped; brackets, quotation marks, arrows, pictures and signs of arithmetic end a word, and so does
    the number of a footnote.
    """

    _SIGNS = frozenset({"So", "Sm", "Sk", "Ps", "Pe", "Pi", "Pf"})
    _INSIDE = frozenset("°±\u2044")

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        category = unicodedata.category(character)
        self[code] = found = self._stands_for(character, category)
        return found

    def _stands_for(self, character: str, category: str) -> str | None:
        if category == "Cf" or character == "\ufe0f":
            return None
        if category == "No" and unicodedata.digit(character, None) is not None:
            return f" {character} "
        return " " if category in self._SIGNS and character not in self._INSIDE else character


_LOOK_ALIKES = str.maketrans("’‘‚−‑‐‒", "'''----")  # noqa: RUF001  look-alikes are the point
_CHARACTERS = _Characters(_LOOK_ALIKES.items())


def tokens(text: str) -> list[Token]:
    """Return a text as words (case folded) and numbers.

    ``$1,250.00`` is the number 1250; a currency beside a number is left out; ``5%`` is a percentage and not 5;
    ``5 thousand`` is 5000.
    Identifiers and dates are one word each (``TKT-9001``, ``2026-03-02``): no number inside them counts as a number.
    Markup, escapes of markup and a possessive ``'s`` are left out. A sign counts: -25 is not 25.
    """
    found: list[Token] = []
    for chunk in _SEPARATORS.split(_plain(text)):
        word = chunk.rstrip(_AFTER).removesuffix("'s")
        word = word[match.end() :] if (match := _BEFORE.match(word)) else word
        last = found[-1] if found else None
        if number := _NUMBER.fullmatch(word):
            value = _value(number)
            found.append(Percentage(value) if number["percent"] else value)
        elif isinstance(last, Decimal) and _PERCENT_WORD.fullmatch(word):
            found[-1] = Percentage(last)
        elif isinstance(last, Decimal) and word in _SCALES:
            found[-1] = last * _SCALES[word]
        elif (word := word.lstrip("-")) and not (_CURRENCY_WORD.fullmatch(word) and isinstance(last, Decimal)):
            found.append(word)
    return _without_leading_currency(found)


def said(fact: RequiredFact, messages: Iterable[Message]) -> bool:
    """Return whether the agent said the fact: one of its texts occurs, whole, in one of the agent's messages."""
    wanted = [sequence for text in fact.any_of if (sequence := tokens(text))]
    spoken = [tokens(message.text) for message in messages if message.role == "agent"]
    return any(_contains(said_tokens, sequence) for said_tokens in spoken for sequence in wanted)


def _plain(text: str) -> str:
    """Return a text in one spelling of each character and of grouped digits, without markup's escapes."""
    grouped = _GROUPED.sub("", html.unescape(text))
    joined = _GROUPED_AMOUNT.sub(lambda amount: amount[0].replace(" ", ""), grouped)
    joined = _ESCAPE.sub("", joined).translate(_CHARACTERS)
    folded = unicodedata.normalize("NFKC", joined).casefold()
    return _PER_CENT.sub("percent", _IN_WORDS.sub("-", _DASH_AS_HYPHEN.sub("-", folded)))


def _value(number: re.Match[str]) -> Decimal:
    sign = "-" if number["sign"] or number["sign_inside"] else ""
    if number["comma"]:
        return Decimal(sign + number["comma"].replace(".", "").replace("'", "").replace(",", "."))
    return Decimal(sign + number["point"].replace(",", "").replace("'", ""))


def _without_leading_currency(found: Sequence[Token]) -> list[Token]:
    kept = []
    for token, following in zip(found, [*found, ""][1:], strict=True):
        before_number = isinstance(token, str) and isinstance(following, Decimal) and _CURRENCY_WORD.fullmatch(token)
        if not before_number:
            kept.append(token)
    return kept


def _contains(text: Sequence[Token], part: Sequence[Token]) -> bool:
    return any(list(text[i : i + len(part)]) == list(part) for i in range(len(text) - len(part) + 1))
