"""What a gate asks of a figure: the form in which it is written, and whether a value is as required."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Literal

from tbadapters.core.errors import InvalidOption, UnknownName
from tbadapters.core.limits import is_share

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_FORM = re.compile(r"(?:(task|tag):(.+):)?\s*([^<>:]+?)\s*(>=|<=|>|<)\s*([0-9.]+)\s*(%?)")
_AT_K = re.compile(r"pass(@|\^)(\d+|k)|(pass@k \(unbiased\)|pass\^k \(unbiased\)|pass\^k \(plug-in\)), k = (\d+)")
_OBSERVED = re.compile(r"observed (\d+)/(\d+)")
_SERIES = {"@": "pass@k (unbiased)", "^": "pass^k (unbiased)"}
_RATES = ("pass@1", *_SERIES.values(), "pass^k (plug-in)", "observed k/k", "solved at least once", "retention")
_AMOUNTS = ("cost per trial", "cost per success", "cost per reliable task", "tokens per success")
ROUNDING = 1e-9  # relative: a mean of rates that is 0.8 on paper may be stored as a little less


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a figure must come to.

    Attributes:
        text: As it was given.
        scope: ``task`` (each task that ``pattern`` names), ``tag`` (the tasks of each such tag), or None: all tasks.
        pattern: A shell pattern, or None.
        figure: The figure's name, as in ``Figures.named``.
        k: For a figure of k: of how many trials; None: of all that were planned.
        sign: ``>=``, ``<=``, ``>`` or ``<``.
        limit: Rates from 0 to 1, costs in US dollars.
    """

    text: str
    scope: Literal["task", "tag"] | None
    pattern: str | None
    figure: str
    k: int | None
    sign: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Requirement:
        """Return the requirement that a text such as ``pass@1>=0.8`` states.

        Raises:
            InvalidOption: the text is not of this form, names no figure, or its number can't be one of the figure.
        """
        form = _FORM.fullmatch(text.strip())
        number = None if form is None else _number(form[5])
        if form is None or number is None:
            raise InvalidOption(
                f"The requirement {text!r} must read FIGURE>=NUMBER, task:PATTERN:FIGURE>=NUMBER or "
                "tag:NAME:FIGURE>=NUMBER (also <=, > and <), such as pass@1>=0.8."
            )
        name, k = _figure(form[3], text)
        if form[6]:
            number /= 100
        if (name in _RATES and not is_share(number)) or (form[6] and name in _AMOUNTS):
            need = "a rate is from 0 to 1 (0.8), or a percentage (80%)" if name in _RATES else "it is no rate"
            raise InvalidOption(f"The requirement {text!r} asks for {form[5]}{form[6]} of {name}: {need}.")
        scope: Literal["task", "tag"] | None = {"task": "task", "tag": "tag"}.get(form[1])  # type: ignore[assignment]  # no literals
        return cls(text.strip(), scope, form[2], name, k, form[4], number)

    def holds(self, value: float) -> bool:
        """Say whether a value of the figure is as required; equal but for rounding counts as equal."""
        slack = ROUNDING * max(1.0, abs(self.limit))
        shifted = value + slack if self.sign in (">=", "<") else value - slack
        return _OPERATORS[self.sign](shifted, self.limit)

    def distance(self, value: float | None) -> float:
        """Return by how much a value is better than required, least where it is unknown: the worst sort first."""
        if value is None:
            return -inf
        return value - self.limit if self.sign.startswith(">") else self.limit - value


def _figure(name: str, text: str) -> tuple[str, int | None]:
    """Return the name that ``Figures.named`` has for what is written, and its k."""
    shown = " ".join(name.split())
    if shown in (*_RATES, *_AMOUNTS):
        return shown, None
    at_k, observed = _AT_K.fullmatch(shown), _OBSERVED.fullmatch(shown)
    if at_k is not None:
        k = at_k[4] or at_k[2]
        return at_k[3] or _SERIES[at_k[1]], None if k == "k" else int(k)
    if observed is not None and observed[1] == observed[2]:
        return "observed k/k", int(observed[1])
    known = UnknownName("figure", shown, (*_RATES, *_AMOUNTS))
    raise InvalidOption(f"The requirement {text!r} can't be read: {known}")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
