"""Which values a text states that no other text holds: what a simulated user made up.

A value is what could be looked up or typed into a form: a number, a date, an id, an address of mail or web, a name. The
same value in another notation is the same value (``1,250.00`` and ``1250``, ``2026-03-02`` and ``March 2, 2026``). Names
are words with a capital letter inside a sentence, and a sentence of one word that is no usual reply; that is right for
English, and a name in lower case is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from tbadapters.core.facts import Percentage, tokens


def _list(text: str) -> list[str]:
    return text.split()


_MONTHS = _list("january february march april may june july august september october november december")
_MONTH_OF = {name[:length]: number for number, name in enumerate(_MONTHS, 1) for length in (3, 4, len(name))}
_DAYS = frozenset(_list("monday tuesday wednesday thursday friday saturday sunday"))
_MONTH = rf"(?P<month>{'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})\.?"
_YEAR = r"(?:,?\s+(?P<year>\d{4}))?"
_DATES = (
    re.compile(r"\b(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})(?=T|\b)"),
    re.compile(rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b{_YEAR}", re.IGNORECASE),
    re.compile(rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.?\s+(?:of\s+)?{_MONTH}\b{_YEAR}", re.IGNORECASE),
)
_SLASHED = re.compile(r"\b(?P<first>\d{1,2})[/.](?P<second>\d{1,2})[/.](?P<year>\d{4})\b")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)[^\s<>()\]]*[^\s<>()\].,;:!?]", re.IGNORECASE)
_GROUPED = re.compile(r"\+?\(?\d[\d\s().-]{5,}\d")  # a telephone or card number in groups
_CODE = re.compile(r"[^\W_](?:[\w.,:/#'-]*[^\W_])?%?")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
_HALF_DAY = re.compile(r"(\d)\s*([ap])\.?m\b\.?", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?:[.!?:;\u2026][\"')\]]*\s+|\n\s*|[-*\u2022]\s+|[\"(])\Z")
_TITLE = re.compile(r"\b(?:mr|mrs|ms|dr|prof|st)\.\s+\Z", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n]+")
_JOINED = re.compile(r"(?<=\d)[ ().-]{1,3}(?=\d)|(?<=[^\W_])[-_/.](?=[^\W_])")  # inside of one number or id
_PART = 4  # digits or letters of a known number from which a part of it is known, too: the last four of a card

_TO_NINETEEN = _list(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS = _list("twenty thirty forty fifty sixty seventy eighty ninety")
_NUMBER_WORDS = {word: value for value, word in enumerate(_TO_NINETEEN)} | {
    word: 10 * tens for tens, word in enumerate(_TENS, 2)
}
_TELLING_NUMBER_WORDS = frozenset(word for word, value in _NUMBER_WORDS.items() if value > 10)  # noqa: PLR2004  # smaller ones are idiom
_SPELLED = re.compile(rf"\b(?:(?:{'|'.join(_NUMBER_WORDS)})\b[\s,-]*){{3,}}", re.IGNORECASE)
_NO_NAMES = frozenset(_list("i ok okay id ids pin mr mrs ms dr"))
_REPLIES = frozenset(
    _list("""
    absolutely accepted agreed all alright anytime anything approved both bye certainly confirmed continue correct
    definitely done either everything exactly fine good goodbye great hello hey hi indeed maybe neither never no none nope
    noted nothing okay ok perfect please proceed really right same sorry sure thanks true understood unfortunately
    unknown unsure wonderful yeah yep yes
    """)
)

Date = tuple[int | None, int, int]


@dataclass
class _Values:
    """What a set of texts states, in one notation."""

    codes: set[str] = field(default_factory=set)
    compact: str = ""
    numbers: set[Decimal | Percentage] = field(default_factory=set)
    dates: set[Date] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    text: str = ""

    def add(self, text: str) -> None:
        """Read one more text."""
        folded = text.casefold()
        self.text += f"\n{folded}"
        for match in _CODE.finditer(_plain(folded)):
            parts = re.split(r"[-/]", match[0])
            self.codes |= {match[0], _compact(match[0]), *parts}
            self.numbers |= {Decimal(part) for part in parts if part.isdecimal()}
        self.compact += "\n" + _JOINED.sub("", _plain(folded))
        self.numbers |= _numbers(text)
        self.dates |= {date for _, dates in _dated(text) for date in dates}
        self.words |= {part for match in _WORD.finditer(folded) for part in (match[0], *_parts(match[0]))}

    def has_code(self, code: str) -> bool:
        """Whether a token with a digit in it is known, in some notation or as a part of a longer one."""
        folded = code.casefold()
        compact = _compact(folded)
        return bool(
            folded in self.codes
            or compact in self.codes
            or self.has_part(compact)
            or ((found := _numbers(code)) and found <= self.numbers)
        )

    def has_part(self, compact: str) -> bool:
        """Whether something known begins or ends like that."""
        if len(compact) < _PART:
            return False
        return bool(re.search(rf"(?<![^\W_]){compact}|{compact}(?![^\W_])", self.compact))

    def has_date(self, dates: Iterable[Date]) -> bool:
        """Whether one reading of a date is known; a year that is left out on one side is no difference."""
        return any(
            (month, day) == (known_month, known_day) and (year == known_year or None in (year, known_year))
            for year, month, day in dates
            for known_year, known_month, known_day in self.dates
        )

    def has_word(self, word: str) -> bool:
        """Whether a word is known, or each part of a joined one."""
        folded = word.casefold()
        return folded in self.words or all(part in self.words for part in _parts(folded))


def unknown_values(text: str, known: Iterable[str], *, names: bool = True) -> tuple[str, ...]:
    """Return the values that a text states and none of the known texts does, each once, in order.

    Args:
        text: What is looked at.
        known: What may be stated.
        names: Whether words with a capital letter count; where capitals mean something else, as in German, they must not.
    """
    values = _Values()
    for one in known:
        values.add(one)
    found = list(_unknown_addresses(text, values))
    rest = _ADDRESS.sub(" ", text)
    for span, dates in _dated(rest):
        if not values.has_date(dates):
            found.append(span)
        rest = rest.replace(span, " ", 1)
    found += _unknown_codes(rest, values)
    found += _unknown_number_words(rest, values)
    if names:
        found += _unknown_names(_ADDRESS.sub(" ", text), values)
    return tuple(dict.fromkeys(found))


def _unknown_addresses(text: str, values: _Values) -> Iterator[str]:
    for match in _ADDRESS.finditer(text):
        if match[0].casefold() not in values.text:
            yield match[0]


def _unknown_codes(text: str, values: _Values) -> Iterator[str]:
    for match in _GROUPED.finditer(text):
        if values.has_part(_compact(match[0])):
            text = text.replace(match[0], " ", 1)
    for match in _CODE.finditer(_plain(text)):
        if any(character.isdigit() for character in match[0]) and not values.has_code(match[0]):
            yield match[0]


def _unknown_number_words(text: str, values: _Values) -> Iterator[str]:
    for match in _SPELLED.finditer(text):
        digits = "".join(str(_NUMBER_WORDS[word]) for word in _WORD.findall(match[0].casefold().replace("-", " ")))
        if not values.has_part(digits) and digits not in values.codes:
            yield match[0].strip(" ,-")
    for match in _WORD.finditer(_SPELLED.sub(" ", text)):
        for word in _parts(match[0].casefold()):
            unknown = word in _TELLING_NUMBER_WORDS and not values.has_word(word)
            if unknown and Decimal(_NUMBER_WORDS[word]) not in values.numbers:
                yield word


def _unknown_names(text: str, values: _Values) -> Iterator[str]:
    dated = [match[0].casefold() for span, _ in _dated(text) for match in _WORD.finditer(span)]
    for match in _WORD.finditer(text):
        word = re.sub(r"['\u2019]s$", "", match[0])
        folded = re.split(r"['\u2019]", word.casefold())[0]
        if folded in _NO_NAMES or folded in dated or values.has_word(word):
            continue
        if folded in _DAYS or (word[0].isupper() and not _begins_sentence(text, match.start())):
            yield word
    for sentence in _SENTENCE.finditer(text):
        words = _WORD.findall(sentence[0])
        if len(words) == 1 and sentence[0].strip(" \t\"'*-") == words[0]:
            folded = words[0].casefold()
            if folded not in _REPLIES | _NO_NAMES and folded not in dated and not values.has_word(words[0]):
                yield words[0]


def _begins_sentence(text: str, start: int) -> bool:
    before = text[:start]
    return not before.strip() or (bool(_SENTENCE_END.search(before)) and not _TITLE.search(before))


def _dated(text: str) -> list[tuple[str, list[Date]]]:
    """Return the dates in a text as they stand there, each with what it may mean: 3/4/2026 is in March or in April."""
    found: list[tuple[str, list[Date]]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            month = match["month"].casefold()
            number = int(month) if month.isdigit() else _MONTH_OF[month]
            year = int(match["year"]) if match["year"] else None
            found.append((match[0], [(year, number, int(match["day"]))]))
    for match in _SLASHED.finditer(text):
        first, second, year = int(match["first"]), int(match["second"]), int(match["year"])
        found.append((match[0], [(year, first, second), (year, second, first)]))
    return found


def _numbers(text: str) -> set[Decimal | Percentage]:
    numbers: set[Decimal | Percentage] = set()
    for token in tokens(text):
        if isinstance(token, str):
            ordinal = _ORDINAL.fullmatch(token)
            value = int(ordinal[1]) if ordinal else _NUMBER_WORDS.get(token)
            numbers |= set() if value is None else {Decimal(value)}
        else:
            numbers.add(abs(token) if isinstance(token, Decimal) else token)
    return numbers


def _plain(text: str) -> str:
    return _HALF_DAY.sub(r"\1 \2m", text)


def _compact(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum() or character == "%")


def _parts(word: str) -> list[str]:
    return re.split(r"['\u2019-]", word)
