"""What the options of a run may be, checked before anything is loaded, made or run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, NamedTuple

from tbadapters.core.approvals import NAMES
from tbadapters.core.cost import Price
from tbadapters.core.errors import InvalidOption
from tbadapters.core.limits import Limits, Retries, is_finite, is_share, is_whole
from tbadapters.core.suite import Suite
from tbadapters.core.tool_faults import ToolFaults


class _Rule(NamedTuple):
    fits: Callable[[Any], bool]
    needed: str


def _one_of(*known: str) -> _Rule:
    return _Rule(lambda value: value in known, f"one of {', '.join(map(repr, known))}")


def _is_folder(value: Any) -> bool:
    return isinstance(value, str | PathLike) and str(value) != ""


def _are_suites(value: Any) -> bool:
    suites = value if isinstance(value, list | tuple) else [value]
    return bool(suites) and all(isinstance(suite, Suite) or _is_folder(suite) for suite in suites)


def _may_be_model(value: Any) -> bool:
    """Say whether something is a model's name, or an object that its own library knows better than we do."""
    return (isinstance(value, str) and value != "") or callable(value) or hasattr(value, "model_name")


def _are_prices(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(model, str) and isinstance(price, Price) for model, price in value.items()
    )


_OPTIONAL = frozenset({"concurrency", "coverage_floor", "faults", "judge", "max_cost", "out", "resume", "on_event"})
_RULES = {
    "suite": _Rule(_are_suites, "a suite's name, the path of its file, a Suite, or a list of these"),
    "trials": _Rule(lambda v: is_whole(v, 1), "a whole number of at least 1"),
    "concurrency": _Rule(lambda v: is_whole(v, 1), "a whole number of at least 1"),
    "limits": _Rule(lambda v: isinstance(v, Limits), "Limits(...)"),
    "retries": _Rule(lambda v: isinstance(v, Retries), "Retries(...)"),
    "user": _Rule(
        _may_be_model, "'scripted', a model's name or Model, an LLMUser, or a callable (task) -> SimulatedUser,"
    ),
    "judge": _Rule(lambda v: _may_be_model(v) or hasattr(v, "ask"), "a model's name or Model, or a Judge,"),
    "faults": _Rule(lambda v: isinstance(v, ToolFaults), "ToolFaults(...), or None for no faults,"),
    "instructions": _one_of("append", "none"),
    "seed": _Rule(lambda v: isinstance(v, int) and not isinstance(v, bool), "a whole number"),
    "max_cost": _Rule(lambda v: is_finite(v, above=0), "a number of US dollars above 0, or None for no ceiling,"),
    "prices": _Rule(_are_prices, "a dict of model names to Price(input, cached_input, output)"),
    "coverage_floor": _Rule(is_share, "a share of the planned trials from 0 to 1, such as 0.95,"),
    "out": _Rule(_is_folder, "the path of a folder"),
    "resume": _Rule(_is_folder, "the path of a run folder"),
    "approvals": _Rule(
        lambda v: v in NAMES if isinstance(v, str) else callable(v),
        "'user', 'approve', 'deny', or a callable (request) -> bool,",
    ),
    "isolation": _one_of("none", "process"),
    "progress": _one_of("auto", "on", "off"),
    "on_event": _Rule(callable, "a callable (event)"),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what makes no sense. Which tasks there are is for the suite to say.

    Args:
        options: The options of ``Campaign`` by name; those without a rule are passed over.

    Raises:
        InvalidOption: the sentence names the option, its value and what is needed.
    """
    for name in _RULES:
        check_option(name, options[name])


def check_option(name: str, value: Any) -> None:
    """Refuse a value of one option that makes no sense.

    Raises:
        InvalidOption: the sentence names the option, its value and what is needed.
    """
    rule = _RULES[name]
    if not (value is None and name in _OPTIONAL) and not rule.fits(value):
        raise InvalidOption(f"{name}={value!r}: {rule.needed} is needed.")


def check_agents(agents: object) -> None:
    """Refuse what can't be compared.

    Raises:
        InvalidOption: it is no mapping of names to two or more agents.
    """
    if not isinstance(agents, Mapping) or not all(isinstance(name, str) and name for name in agents):
        raise InvalidOption("compare() takes a dict of agents by the name that tables and folders show.")
    if len(agents) < 2:  # noqa: PLR2004  (a comparison is of two or more)
        raise InvalidOption(f"At least 2 agents are compared, {len(agents)} given: use evaluate() for one.")
