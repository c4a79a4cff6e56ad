"""Text of agents and users, made harmless to print: nothing in it may fool a terminal or a reader."""

from __future__ import annotations

import unicodedata

_MARK = "\N{REPLACEMENT CHARACTER}"
_ALLOWED = "\n\t"


def visible(text: str) -> str:
    """Return ``text`` with nothing in it that a terminal or a reader could be fooled by.

    Control characters (escape sequences begin with one) become their visible pictures; characters that turn the
    direction of writing, other invisible formatting and lone surrogates become named or replaced.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    if character in _ALLOWED:
        return character
    match unicodedata.category(character):
        case "Cc":
            code = ord(character)
            return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else _MARK  # noqa: PLR2004 - ASCII
        case "Cs":
            return _MARK
        case "Cf" | "Zl" | "Zp" if character != "\u200d":  # the joiner inside emoji is harmless
            return f"<U+{ord(character):04X}>"
    return character
