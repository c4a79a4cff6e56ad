"""An agent's message as plain sentences, and words folded so that phrases can be found in them.

Models write markdown, leak their reasoning, print tool calls as text or wrap an answer in JSON. Whoever reads the
message wants what a person would have seen.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


def _list(text: str) -> list[str]:
    return text.split()


# Typographic apostrophes and what is typed in their place: quotation marks, modifier letters, primes, accents, full width.
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\u02b9\u00b4`\u2032\uff07", "'"))
_QUESTION_MARKS = str.maketrans(dict.fromkeys("\uff1f\u061f", "?"))
_CONTRACTIONS = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\b(i|you|we)ve\b", r"\1 have"),
        (r"\b(do|did|does|could|is|has|have|was|were|would|should)nt\b", r"\1 not"),
        (r"\b(?:cant|can't|can not)\b", "cannot"),
        (r"\b(?:wont|won't)\b", "will not"),
        (r"\bshan't\b", "shall not"),
        (r"n't\b", " not"),
        (r"\bim\b|\bi'm\b", "i am"),
        (r"\byoure\b", "you are"),
        (r"\b(what|that)s\b", r"\1 is"),
        (r"'re\b", " are"),
        (r"'ve\b", " have"),
        (r"'ll\b", " will"),
        (r"'d\b", " would"),
        (r"'s (?=(?:(?:now|just|already|also) )*been\b)", " has "),
        (r"\blet's\b", "let us"),
        (r"\b(what|who|where|when|how|that|it|there|here|which|everything|this|he|she)'s\b", r"\1 is"),
        (r"'s\b", ""),
        (r"\be-mail", "email"),
        (r"\b((?:[a-z]\.)+[a-z])\b\.?", lambda match: match[1].replace(".", "")),
        (r"\bu\b", "you"),
        (r"\bur\b", "your"),
        (r"\b(?:pls|plz)\b", "please"),
    )
)
_NUMBERS = {str(i): word for i, word in enumerate(_list("one two three four five six seven eight nine ten"), start=1)}

_HIDDEN = re.compile(
    r"<(think|thinking|thought|reasoning|scratchpad|tool_calls?|function_calls?|tool_code|tools?|function)\b[^<>]*>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_REASONED = re.compile(
    r"\A.*</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE
)  # its beginning is often left out
_REACT = re.compile(r"^[ \t*]*(?:thought|action|action input|observation)[ \t*]*:.*$", re.IGNORECASE | re.MULTILINE)
_CALL = re.compile(r"\b[a-z][a-z0-9_.]*\((?=[^()\n]*=|\))[^()\n]*\)")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_DATA = re.compile(r"\{\s*['\"][\w ]{1,40}['\"]\s*:(?:[^{}]|\{[^{}]*\})*(?:\}|\Z)")
_TOKEN = re.compile(r"\[/?[A-Z][A-Z_]{2,20}\]")
_DOTTED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]$")
_MARKUP = re.compile(r"</?[a-z|][^<>\n]{0,80}>", re.IGNORECASE)
_LINK = re.compile(r"\[([^\[\]\n]*)\]\([^()\s]*\)")
_URL = re.compile(r"https?://\S+")
_FENCE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)
_ITEM = re.compile(r"\s*(?:[-*+•‣◦·\u2013—☐✓✔✅]|\(?(?:\d{1,2}|[a-zA-Z])[.)])\s+")
_HEADING = re.compile(r"\s*#{1,6}\s+")
_STOP = re.compile(r"[.!?…。]+[\"')\]]*(?:\s+|$)")
_ABBREVIATIONS = frozenset(_list("mr mrs ms dr e.g eg i.e ie no nr st vs approx ref acct tel incl"))
_SAID_KEYS = ("response", "message", "reply", "answer", "final_answer", "text", "content", "output", "question")
_JSON_TRIES = 50
_LONGEST = 20_000  # characters that are read of a message, from its end: what it asks or claims stands there

_STEM = 5  # letters that the forms of a word share: refund, refunded; cancel, cancellation
_FUNCTION_WORDS = frozenset(
    _list("""
    a about agree ahead all also am an and any are as at be been before below above but by can confirm confirmation
    continue correct could do does fine first following for from go good happy have here i if in instead into is it kindly
    know let like may me might my need no now of ok okay on once or our out please prefer proceed ready reply right shall
    should so sound still sure that the them then there these this to too us want was we what which will wish with work
    would yes you your
    """)
)
_GENERAL_WORDS = frozenset(
    word[:_STEM]
    for word in _list("""
    additional assist bit clarify detail details everything few further give help information info more provide
    question questions request share some specific tell thing things understand describe explain elaborate
    """)
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a message.

    Attributes:
        text: As it was said, without markup.
        words: Folded.
        item: It is an item of a list.
    """

    text: str
    words: str
    item: bool

    @property
    def is_question(self) -> bool:
        """Whether it ends in a question mark."""
        return self.text.rstrip("\"')] ").endswith("?")


def fold(text: str) -> str:
    """Return the words of ``text``, one space between them: no case, accents, punctuation or contractions.

    Numbers up to ten become words, so that ``last 4 digits`` and ``last four digits`` are the same phrase.
    """
    decomposed = unicodedata.normalize("NFKD", text.translate(_APOSTROPHES)).translate(_APOSTROPHES)
    plain = "".join(c for c in decomposed if not unicodedata.combining(c)).casefold()
    for pattern, replacement in _CONTRACTIONS:
        plain = pattern.sub(replacement, plain)
    words = re.sub(r"[\W_]+", " ", plain.replace("'", "")).split()
    return " ".join(_NUMBERS.get(word, word) for word in words)


def spans(words: str, phrase: str) -> Iterator[tuple[int, int]]:
    """Yield where the folded ``phrase`` occurs in the folded ``words``, as whole words."""
    if not phrase:
        return
    padded, wanted = f" {words} ", f" {phrase} "
    start = padded.find(wanted)
    while start >= 0:
        yield start, start + len(phrase)
        start = padded.find(wanted, start + 1)


def content(words: str) -> frozenset[str]:
    """Return the stems of the folded ``words`` that carry a meaning of their own."""
    return frozenset(word[:_STEM] for word in words.split() if word not in _FUNCTION_WORDS)


def is_general(words: str) -> bool:
    """Whether folded ``words`` name nothing in particular (``could you give me some more details``)."""
    return not content(words) - _GENERAL_WORDS


def sentences(text: str) -> list[Sentence]:
    """Return what a person would have seen of the message, sentence by sentence."""
    return [
        Sentence(part, words, item)
        for block, item in _blocks(_visible(text))
        for part in _split(block)
        if (words := fold(part))
    ]


def _visible(text: str) -> str:
    text = _HIDDEN.sub(
        " ", unicodedata.normalize("NFC", text[-_LONGEST:]).replace("\r\n", "\n").translate(_QUESTION_MARKS)
    )
    text = _FENCE.sub("", _REASONED.sub("", text))
    text = _DATA.sub(" ", _TOKEN.sub(" ", _REACT.sub("", _without_json(text))))
    text = _MARKUP.sub(" ", _BREAK.sub("\n", text))
    return _CALL.sub(" ", _URL.sub(" ", _LINK.sub(r"\1", text)))


def _without_json(text: str) -> str:
    """Replace JSON objects by the message that they carry, if any: data and tool calls say nothing to a person."""
    decoder, parts, position = json.JSONDecoder(), [], 0
    for _ in range(_JSON_TRIES):
        start = text.find("{", position)
        if start < 0:
            break
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            parts.append(text[position : start + 1])
            position = start + 1
            continue
        parts += [text[position:start], _said_in(value)]
        position = end
    return "".join([*parts, text[position:]])


def _said_in(value: Any) -> str:
    if not isinstance(value, dict) or {"arguments", "parameters", "args", "action_input", "tool_calls"} & value.keys():
        return " "
    said = [value[key] for key in _SAID_KEYS if isinstance(value.get(key), str)]
    return "\n\n".join(["", *said, ""])


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield paragraphs and list items; a line that only wraps belongs to the line before."""
    block, item = "", False
    for line in text.split("\n"):
        marker = _ITEM.match(line)
        heading = _HEADING.match(line)
        starts = marker or heading or not line.strip()
        if starts and block:
            yield block, item
            block = ""
        if starts:
            item = marker is not None or (item and bool(block))
        match = marker or heading
        content = _clean(line[match.end() :] if match else line)
        block = f"{block} {content}".strip()
    if block:
        yield block, item


def _clean(line: str) -> str:
    return re.sub(r"[*`~|>#]+|(?<!\w)_+|_+(?!\w)", " ", line).strip()


def _split(block: str) -> Iterator[str]:
    start = 0
    for stop in _STOP.finditer(block):
        before = block[start : stop.start()].split()
        if stop.group().strip() == "." and before and _is_abbreviation(before[-1]):
            continue
        yield block[start : stop.end()].strip()
        start = stop.end()
    if block[start:].strip():
        yield block[start:].strip()


def _is_abbreviation(word: str) -> bool:
    return word.casefold() in _ABBREVIATIONS or _DOTTED.fullmatch(word) is not None
