"""What a search asks for, read from the parameters that a Typesense client sends."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
Filter = Callable[[Document], bool]

MAX_PER_PAGE = 250
_TERM = re.compile(r'-?"[^"]*"|\S+')
_OPERATORS = ("!=", ">=", "<=", "=", ">", "<")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
}


class SearchError(Exception):
    """Raised when a request is answered by an error: an HTTP status and Typesense's sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class Term:
    """A word or a quoted phrase of a query; ``excluded`` where it was written with a minus."""

    text: str
    phrase: bool = False
    excluded: bool = False

    def match(self, *, prefix: bool = False) -> str:
        """Return the term in SQLite's full-text syntax."""
        quoted = '"' + self.text.replace('"', '""') + '"'
        return f"{quoted} *" if prefix and not self.phrase else quoted


def terms_of(query: str) -> tuple[Term, ...]:
    """Return the terms of a query; none for ``*``, for nothing, and for what has no letter or digit."""
    found = []
    for part in _TERM.findall(query):
        excluded = part.startswith("-") and len(part) > 1
        text = part[1:] if excluded else part
        phrase = text.startswith('"')
        text = text.strip('"')
        if any(character.isalnum() for character in text):
            found.append(Term(text, phrase, excluded))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """One search.

    Attributes:
        q: The query as it came.
        query_by: The fields that are searched.
        filter: Which documents count.
        sort_by: Keys and whether each descends.
        group_by: The fields whose values make a group; empty for plain hits.
        group_limit: Hits kept of a group.
        per_page: Hits, or groups, a page.
        offset: How many are left out before the page.
        page: The page's number, from 1.
        include: The fields of a document that are sent; empty for all.
        exclude: Those that are not.
        highlight_fields: The fields that are highlighted; None for all that are searched.
        full_fields: The fields that are also sent whole, highlighted.
        affix: Words beside a match in a snippet.
        whole_below: Fields of at most that many words are highlighted whole.
        tags: What is put before and behind a match.
        drop_below: Terms are left out one by one while fewer documents than that match.
        prefix: Whether the last term may be the beginning of a word.
    """

    q: str
    query_by: tuple[str, ...]
    filter: Filter
    sort_by: tuple[tuple[str, bool], ...]
    group_by: tuple[str, ...]
    group_limit: int
    per_page: int
    offset: int
    page: int
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    highlight_fields: tuple[str, ...] | None
    full_fields: tuple[str, ...]
    affix: int
    whole_below: int
    tags: tuple[str, str]
    drop_below: int
    prefix: bool


def search_request(given: Mapping[str, Any]) -> SearchRequest:
    """Read a search's parameters; those that make no difference here are passed over.

    Raises:
        SearchError: a parameter is missing or malformed.
    """
    if "q" not in given:
        raise SearchError(400, "Parameter `q` is required.")
    per_page, page = _count(given, "per_page", _count(given, "limit", 10)), max(1, _count(given, "page", 1))
    if per_page > MAX_PER_PAGE:
        raise SearchError(422, f"Only upto {MAX_PER_PAGE} hits can be fetched per page.")
    return SearchRequest(
        q=str(given["q"]),
        query_by=_names(given.get("query_by")),
        filter=filter_of(str(given.get("filter_by") or "")),
        sort_by=tuple(_sort_key(part) for part in _names(given.get("sort_by"))),
        group_by=_names(given.get("group_by")),
        group_limit=max(1, _count(given, "group_limit", 3)),
        per_page=per_page,
        offset=_count(given, "offset", (page - 1) * per_page),
        page=page,
        include=_names(given.get("include_fields")),
        exclude=_names(given.get("exclude_fields")),
        highlight_fields=_names(given["highlight_fields"]) if given.get("highlight_fields") else None,
        full_fields=_names(given.get("highlight_full_fields")),
        affix=_count(given, "highlight_affix_num_tokens", 4),
        whole_below=_count(given, "snippet_threshold", _count(given, "highlight_snippet_threshold", 30)),
        tags=(str(given.get("highlight_start_tag", "<mark>")), str(given.get("highlight_end_tag", "</mark>"))),
        drop_below=_count(given, "drop_tokens_threshold", 1),
        prefix=str(given.get("prefix", "true")).split(",")[-1].strip() != "false",
    )


def _count(given: Mapping[str, Any], name: str, default: int) -> int:
    text = str(given.get(name, default)).strip()
    if not text.isdecimal():
        raise SearchError(400, f"Parameter `{name}` must be an unsigned integer.")
    return int(text)


def _names(value: Any) -> tuple[str, ...]:
    parts = value if isinstance(value, list) else str(value or "").split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _sort_key(part: str) -> tuple[str, bool]:
    name, _, order = part.rpartition(":")
    name = name.partition("(")[0]
    if not name or order.lower() not in ("asc", "desc"):
        raise SearchError(400, f"Parameter `sort_by` is malformed: {part}.")
    return name, order.lower() == "desc"


# -- filters ------------------------------------------------------------------------------------------------------


def filter_of(text: str) -> Filter:
    """Return what a filter such as ``source:=[a, b] && (size:>3 || draft:!=true)`` lets through.

    Raises:
        SearchError: it is malformed.
    """
    text = text.strip()
    if not text:
        return lambda _document: True
    alternatives = _split(text, "||")
    if len(alternatives) > 1:
        some = [filter_of(part) for part in alternatives]
        return lambda document: any(each(document) for each in some)
    conditions = _split(text, "&&")
    if len(conditions) > 1:
        every = [filter_of(part) for part in conditions]
        return lambda document: all(each(document) for each in every)
    if text.startswith("(") and text.endswith(")"):
        return filter_of(text[1:-1])
    return _condition(text)


def _split(text: str, operator: str) -> list[str]:
    """Split at an operator outside of parentheses, brackets and backticks."""
    parts, depth, quoted, start, place = [], 0, False, 0, 0
    while place < len(text):
        character = text[place]
        quoted ^= character == "`"
        if not quoted:
            depth += (character in "([") - (character in ")]")
            if depth == 0 and text.startswith(operator, place):
                parts.append(text[start:place])
                start = place = place + len(operator)
                continue
        place += 1
    if depth or quoted:
        raise SearchError(400, "Could not parse the filter query: unbalanced parentheses or backticks.")
    return [*parts, text[start:]]


def _condition(text: str) -> Filter:
    field, colon, rest = text.partition(":")
    field, rest = field.strip(), rest.strip()
    if not colon or not field or not rest:
        raise SearchError(400, "Could not parse the filter query.")
    operator = next((each for each in _OPERATORS if rest.startswith(each)), "")
    wanted = _values(rest[len(operator) :].strip())
    if operator in _COMPARE:
        return _compared(field, operator, wanted[0])
    if operator == "":
        words = [value.casefold() for value in wanted]
        return lambda document: any(_contains(each, words) for each in _held(document, field))
    negated = operator == "!="
    return lambda document: negated != any(_text(each) in wanted for each in _held(document, field))


def _values(text: str) -> list[str]:
    listed = _split(text[1:-1], ",") if text.startswith("[") and text.endswith("]") else [text]
    return [part.strip().strip("`") for part in listed]


def _compared(field: str, operator: str, bound: str) -> Filter:
    try:
        limit = float(bound)
    except ValueError:
        raise SearchError(400, f"Error with filter field `{field}`: Not a number.") from None
    compare = _COMPARE[operator]
    return lambda document: any(
        isinstance(each, int | float) and compare(each, limit) for each in _held(document, field)
    )


def _held(document: Document, field: str) -> list[Any]:
    value = document.get(field)
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _contains(value: Any, words: list[str]) -> bool:
    """Return whether one of the values occurs in a field: in a text as whole words, else as the value itself."""
    if not isinstance(value, str):
        return _text(value) in words
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", value.casefold()) for word in words)
