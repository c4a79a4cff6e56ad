"""When two values of a record are the same."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Hashable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

_DIGITS = 14
"""Significant digits of a float: the order in which amounts were added must not show (0.1 + 0.2 is 0.3)."""


def canonical(value: Any, *, money: bool = False) -> Hashable:
    """Return a form of ``value`` that is equal exactly for values that count as the same.

    Numbers are numbers: 25 is 25.0, and floats are compared to 14 significant digits. Booleans are not numbers: true is
    not 1 (SQLite has no booleans, so there both are the integers 0 and 1). Text is compared as it is, ``"25"`` is not 25;
    only how Unicode composes its letters makes no difference.
    Sequences keep their order, mappings do not.

    Args:
        value: JSON-like data, a ``Decimal`` or bytes.
        money: Whether to read numbers and numeric text as decimals: 25, 25.0 and ``"25.00"`` are the same amount.
    """
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, float):
        value = _rounded(value)
    if money and isinstance(value, int | float | str | Decimal):
        return _amount(value)
    if isinstance(value, str):
        value = unicodedata.normalize("NFC", value)
    if isinstance(value, Decimal):
        return canonical(float(value)) if value.is_finite() and value != int(value) else _whole(value)
    if isinstance(value, Mapping):
        return ("mapping", frozenset((str(key), canonical(item, money=money)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("sequence", tuple(canonical(item, money=money) for item in value))
    return value if isinstance(value, Hashable) else repr(value)


def _rounded(value: float) -> int | float | str:
    if not math.isfinite(value):
        return f"float {value}"
    rounded = value if value.is_integer() else float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


def _whole(value: Decimal) -> Hashable:
    return int(value) if value.is_finite() else f"float {value}"


def _amount(value: float | str | Decimal) -> Hashable:
    try:
        amount = Decimal(str(value).strip())
    except InvalidOperation:
        return canonical(value)
    return amount.normalize() if amount.is_finite() else f"float {amount}"
