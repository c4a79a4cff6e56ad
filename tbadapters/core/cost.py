"""Tokens to US dollars.

Prices are undiscounted list prices of the table that the installed ``genai-prices`` carries, matched by the model's
name; nothing is ever fetched. A user's own price for a model goes first. What has no price costs None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import genai_prices
from genai_prices.types import PriceCalculation

from tbadapters.core.errors import InvalidOption
from tbadapters.core.limits import is_finite
from tbadapters.core.messages import ModelRequest, Usage

# What a trial of a tool-calling agent takes by and large: eight requests that each read policy, tools and the
# conversation so far. For an estimate before the first trial only; no figure is made of it.
TYPICAL_TRIAL = Usage(input_tokens=24_000, output_tokens=1_200)
_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars per million tokens.

    Attributes:
        input: Input tokens that were not cached.
        cached_input: Input tokens that were; None: as much as ``input``.
        output: Output tokens, reasoning included.
    """

    input: float
    cached_input: float | None
    output: float

    def __post_init__(self) -> None:
        for name in ("input", "cached_input", "output"):
            value = getattr(self, name)
            if value is None and name == "cached_input":
                continue
            if value != 0 and not is_finite(value, above=0):
                raise InvalidOption(f"Price({name}={value!r}): a price is 0 or more US dollars per million tokens.")

    @classmethod
    def parse(cls, text: str) -> tuple[str, Price]:
        """Return model and price of ``model=input,cached,output``.

        Raises:
            InvalidOption: the text is not of this form.
        """
        model, _, figures = text.rpartition("=")
        try:
            fresh, cached, output = (float(figure) for figure in figures.split(","))
        except ValueError:
            fresh = cached = output = float("nan")
        if not model or fresh != fresh:  # noqa: PLR0124 - not a number
            raise InvalidOption(f"The price {text!r} must read model=input,cached,output in US dollars per million.")
        return model, cls(fresh, cached, output)

    def of(self, usage: Usage) -> Decimal:
        """Return what the tokens cost."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - usage.cached_input_tokens
        parts = ((fresh, self.input), (usage.cached_input_tokens, cached), (usage.output_tokens, self.output))
        return sum((tokens * _decimal(price) for tokens, price in parts), Decimal(0)) / _MILLION

    def to_dict(self) -> dict[str, float | None]:
        """Return the price as JSON-like data."""
        return {"input": self.input, "cached_input": self.cached_input, "output": self.output}


Prices = Mapping[str, Price]
NO_PRICES: Prices = {}


def cost_of(requests: Iterable[ModelRequest], prices: Prices = NO_PRICES) -> float | None:
    """Return the US dollars of an attempt's model requests.

    A request that a provider's fault ended without usage is not billed. None where any other request has no usage or
    no price, or where no request is known at all: an agent whose requests nobody saw is not known to be free.

    Args:
        requests: The requests.
        prices: The user's own prices by model name.
    """
    total, seen = Decimal(0), False
    for request in requests:
        if not _is_billed(request):
            continue
        price = None if request.usage is None else _price(request.model, request.usage, prices)
        if price is None:
            return None
        total, seen = total + price, True
    return float(total) if seen else None


def cost_nothing(requests: Iterable[ModelRequest]) -> bool:
    """Say whether an attempt's model requests cost nothing, given that all of them were seen."""
    return not any(map(_is_billed, requests))


def _is_billed(request: ModelRequest) -> bool:
    return request.usage is not None or request.fault is None


def price_of(model: str, usage: Usage, prices: Prices = NO_PRICES) -> float | None:
    """Return the US dollars of one request's tokens, or None without a price of the model."""
    price = _price(model, usage, prices)
    return None if price is None else float(price)


def estimate_cost(
    model: str, trials: int, usage_per_trial: Usage = TYPICAL_TRIAL, prices: Prices = NO_PRICES
) -> float | None:
    """Return the US dollars that trials of such a size would cost, or None without a price of the model."""
    price = _price(model, usage_per_trial, prices)
    return None if price is None else float(price * trials)


def price_basis(model: str, prices: Prices = NO_PRICES, *, table: str | None = None) -> str | None:
    """Return in words whose price is taken for a model, or None where there is none.

    Args:
        model: The model's name.
        prices: The user's own prices by model name.
        table: Name and version of the price table that was used; None: the installed one.
    """
    if model in prices:
        return "given by the user"
    found = _find(model)
    if found is None:
        return None
    provider, name = found
    return f"list price of {name} at {provider}, {table or price_table_version()}"


def price_table_version() -> str:
    """Return the name and version of the price table, for the manifest."""
    return f"genai-prices {genai_prices.__version__}"


def _price(model: str, usage: Usage, prices: Prices) -> Decimal | None:
    if model in prices:
        return prices[model].of(usage)
    found = _find(model)
    if found is None:
        return None
    provider, name = found
    try:
        return _calculate(usage, name, provider).total_price
    except (LookupError, ValueError):
        return None  # usage that contradicts itself, or a price that needs what we do not have


@lru_cache(maxsize=1024)
def _find(model: str) -> tuple[str, str] | None:
    """Return provider and model name by which the table knows a model.

    Names come as ``model``, ``provider/model``, ``host/provider/model`` or ``provider:model``; the longest that is
    known counts.
    """
    for provider, name in _readings(model.strip().lower()):
        try:
            found = _calculate(Usage(1, 0, 1), name, provider)
        except (LookupError, ValueError):
            continue
        return found.provider.id, name
    return None


def _readings(model: str) -> Iterator[tuple[str | None, str]]:
    parts = model.split("/")
    yield None, model
    for start in range(1, len(parts)):
        name = "/".join(parts[start:])
        yield parts[start - 1], name
        yield None, name
    provider, colon, name = model.partition(":")
    if colon:  # only with its provider: what follows a colon is as often a variant (``llama3:70b``)
        yield provider, name


def _calculate(usage: Usage, model: str, provider: str | None) -> PriceCalculation:
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_input_tokens,
        output_tokens=usage.output_tokens,
    )
    return genai_prices.calc_price(counted, model, provider_id=provider)


def _decimal(value: float) -> Decimal:
    return Decimal(repr(value))
