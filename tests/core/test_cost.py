"""Tokens cost what the invoice says, and what has no price is unknown, never free."""

import socket
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_runs import record

from tbadapters.core.cost import (
    NO_PRICES,
    TYPICAL_TRIAL,
    Price,
    cost_of,
    estimate_cost,
    price_basis,
    price_of,
    price_table_version,
)
from tbadapters.core.errors import InvalidOption
from tbadapters.core.messages import ModelRequest, Usage
from tbadapters.core.result import RunResult
from tbadapters.core.task_info import TaskInfo

USAGE = Usage(input_tokens=1_000_000, cached_input_tokens=400_000, output_tokens=100_000, reasoning_tokens=20_000)


def request(model="gpt-4o-mini", usage=USAGE, fault=None):
    return ModelRequest(model, usage, None, fault)


@pytest.mark.parametrize(
    ("model", "invoice"),
    [
        ("gpt-4o-mini", 0.6 * 0.15 + 0.4 * 0.075 + 0.1 * 0.60),
        ("claude-haiku-4-5", 0.6 * 1.00 + 0.4 * 0.10 + 0.1 * 5.00),
        ("gemini-2.0-flash", 0.6 * 0.10 + 0.4 * 0.025 + 0.1 * 0.40),
    ],
)
def test_invoices_worked_by_hand(model, invoice):
    """Cached input is priced as cached, reasoning as output, at the list prices of three providers."""
    assert cost_of([request(model)]) == pytest.approx(invoice, abs=1e-12)


@pytest.mark.parametrize("name", ["openai/gpt-4o-mini", "openai:gpt-4o-mini", "GPT-4o-mini", "host/openai/gpt-4o-mini"])
def test_names_with_a_provider(name):
    """A model is found under its provider's name, too."""
    assert cost_of([request(name)]) == cost_of([request("gpt-4o-mini")])


@pytest.mark.parametrize("name", ["no-such-model", "llama3:70b", "", "/", ":"])
def test_unknown_price_is_none(name):
    """A model without a price costs None, alone or among others, and so does its estimate."""
    assert cost_of([request(name)]) is None
    assert cost_of([request(), request(name)]) is None
    assert price_of(name, USAGE) is None
    assert estimate_cost(name, 10) is None
    assert price_basis(name) is None


def test_unknown_usage_is_none():
    """A request whose tokens nobody reported makes the cost unknown; one that a fault ended is not billed."""
    assert cost_of([request(usage=None)]) is None
    assert cost_of([request(), request(usage=None, fault="503")]) == cost_of([request()])


def test_no_requests_are_not_free():
    """An agent of which no request was seen is not known to cost nothing."""
    assert cost_of([]) is None
    assert cost_of([request(usage=None, fault="503")]) is None


def test_a_trial_that_asked_no_model_is_free_where_others_did():
    """In a run of which requests were seen, a trial without any costs 0; in one of which none was seen, nobody knows."""
    asked = record("t/0", 0, passed=True)
    silent = replace(asked, index=1, requests=(), cost=None)
    refused = replace(asked, index=2, requests=(request(usage=None, fault="503"),), cost=None)
    unpriced = replace(asked, index=3, requests=(request("no-such-model"),), cost=None)

    def run(*records):
        return RunResult("s", "a", "langgraph", 4, 0, (TaskInfo("t/0"),), records)

    assert run(asked, silent, refused).cost == pytest.approx(asked.cost)
    assert run(asked, silent).figures.cost_per_success.value == pytest.approx(asked.cost / 2)
    assert [t["cost"] for t in run(asked, silent).to_dict()["trials"]] == [asked.cost, 0.0, None, None]
    assert run(asked, unpriced).cost is None
    assert run(silent, replace(silent, index=0)).cost is None


def test_a_users_price_goes_first():
    """A price that the user gives wins over the table's, and prices what the table does not know."""
    prices = {"gpt-4o-mini": Price(1, 0.5, 2), "mine": Price(10, None, 20)}
    assert cost_of([request()], prices) == pytest.approx(0.6 + 0.2 + 0.2)
    assert cost_of([request("mine")], prices) == pytest.approx(10 + 2)
    assert price_basis("mine", prices) == "given by the user"


def test_usage_that_contradicts_itself_has_no_price():
    """More cached than input tokens can't be priced."""
    assert price_of("gpt-4o-mini", Usage(10, 20, 0)) is None


def test_basis_names_model_provider_and_table():
    """A figure in dollars can say whose price it rests on."""
    assert price_basis("openai/gpt-4o-mini") == f"list price of gpt-4o-mini at openai, {price_table_version()}"
    assert price_table_version().startswith("genai-prices ")


def test_estimate():
    """The estimate is the price of a trial times the trials."""
    one = price_of("gpt-4o-mini", TYPICAL_TRIAL, NO_PRICES)
    assert estimate_cost("gpt-4o-mini", 600) == pytest.approx(600 * one)
    assert estimate_cost("mine", 3, Usage(1_000_000, 0, 0), {"mine": Price(2, 1, 1)}) == 6.0


def test_nothing_is_fetched(monkeypatch):
    """Prices are read without a single connection."""

    def refuse(*args, **kwargs):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert price_of("gpt-4.1-nano", USAGE) > 0


def test_price_from_text():
    """``model=input,cached,output`` reads as a price; the model's name may hold an equals sign."""
    assert Price.parse("gpt-x=1,0.5,2") == ("gpt-x", Price(1, 0.5, 2))
    assert Price.parse("a=b=1,1,1")[0] == "a=b"


@pytest.mark.parametrize("text", ["gpt-x", "gpt-x=1,2", "=1,2,3", "gpt-x=a,b,c", "gpt-x=-1,0,0", "gpt-x=nan,1,1"])
def test_bad_prices_are_refused(text):
    """What is no price is refused in one sentence."""
    with pytest.raises(InvalidOption):
        Price.parse(text)


@pytest.mark.parametrize(
    "figures", [("1", None, 1), (None, None, 1), (1, float("nan"), 1), (True, None, 1), (1, 1, -1)]
)
def test_no_price_of_other_than_numbers(figures):
    """A price is made of finite numbers; only the cached one may be left out."""
    with pytest.raises(InvalidOption, match="a price is 0 or more"):
        Price(*figures)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0, 100), st.floats(0, 100))
def test_cost_is_linear(fresh, cached, output, price, out):
    """Twice the tokens cost twice as much."""
    prices = {"m": Price(price, price / 10, out)}
    once = Usage(fresh + cached, cached, output)
    assert price_of("m", once + once, prices) == pytest.approx(2 * price_of("m", once, prices))
