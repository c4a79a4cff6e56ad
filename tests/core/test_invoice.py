"""A run costs what an invoice worked by hand says: each request at its model's list price, cached input as cached.

The prices in the comments are the providers' undiscounted list prices, in US dollars per million tokens; tokens times
price is in millionths of a dollar.
"""

from dataclasses import replace

import pytest
from synthetic_runs import keep, record, result_of

from tbadapters.core.cost import Price, cost_of
from tbadapters.core.errors import InvalidOption, UnknownName
from tbadapters.core.messages import ModelRequest, Usage
from tbadapters.core.records import Spent
from tbadapters.core.run_folder import load_result

# A first request writes the cache, a second one reads it; a part of its output is reasoning.
FIRST = Usage(input_tokens=12_000, output_tokens=300)
SECOND = {
    "gpt-5-mini": Usage(13_000, 11_776, 450, 192),
    "claude-sonnet-4-5": Usage(13_000, 11_500, 450, 0),
    "gemini-2.5-flash": Usage(13_000, 8_192, 450, 200),
}
INVOICES = {  # (tokens, price) of each line
    # OpenAI: input 0.25, cached input 0.025, output 2.00
    "gpt-5-mini": [(12_000, 0.25), (300, 2.00), (1_224, 0.25), (11_776, 0.025), (450, 2.00)],
    # Anthropic: input 3.00, cached input 0.30, output 15.00
    "claude-sonnet-4-5": [(12_000, 3.00), (300, 15.00), (1_500, 3.00), (11_500, 0.30), (450, 15.00)],
    # Google: input 0.30, cached input 0.03, output 2.50
    "gemini-2.5-flash": [(12_000, 0.30), (300, 2.50), (4_808, 0.30), (8_192, 0.03), (450, 2.50)],
}
TOTALS = {"gpt-5-mini": 0.0051004, "claude-sonnet-4-5": 0.0552, "gemini-2.5-flash": 0.00716316}


def requests_of(model):
    return ModelRequest(model, FIRST), ModelRequest(model, SECOND[model])


def run_with(requests, **options):
    """Return a run of one passed and one failed trial, each with these requests."""
    found = result_of([[True, False]])
    cost = cost_of(requests, **options)
    return replace(found, records=tuple(replace(r, requests=tuple(requests), cost=cost) for r in found.records))


@pytest.mark.parametrize("model", INVOICES)
def test_an_invoice_line_by_line(model):
    """The lines of the invoice add up to the cost of a trial, and to the total worked out by hand."""
    lines = sum(tokens * price for tokens, price in INVOICES[model]) / 1e6
    assert lines == pytest.approx(TOTALS[model], abs=1e-12)
    assert cost_of(requests_of(model)) == pytest.approx(TOTALS[model], abs=1e-12)


@pytest.mark.parametrize("model", INVOICES)
def test_the_figures_of_a_run_share_the_invoice_out(model):
    """A trial costs half of two trials' invoice, a success all of it; no task is reliable, and none has a cost as one."""
    figures = run_with(requests_of(model)).figures
    assert figures.cost_per_trial.value == pytest.approx(TOTALS[model], abs=1e-12)
    assert figures.cost_per_success.value == pytest.approx(2 * TOTALS[model], abs=1e-12)
    assert figures.cost_per_reliable_task.value is None


def test_long_prompts_at_their_own_rate():
    """Where a provider charges more for long prompts, each request has the rate of its own length.

    Gemini 2.5 Pro up to 200,000 tokens: 1.25, 0.125, 10.00; beyond: 2.50, 0.25, 15.00.
    """
    short, long = Usage(150_000, 100_000, 1_000), Usage(300_000, 100_000, 1_000)
    assert cost_of([ModelRequest("gemini-2.5-pro", short)]) == pytest.approx(0.0625 + 0.0125 + 0.01, abs=1e-12)
    assert cost_of([ModelRequest("gemini-2.5-pro", long)]) == pytest.approx(0.5 + 0.025 + 0.015, abs=1e-12)


def test_a_price_given_by_the_user():
    """``--price model=in,cached,out`` is taken as it is, for models that no table knows, and named as the basis."""
    name, price = Price.parse("in-house=2,0.5,8")
    requests = (ModelRequest(name, FIRST), ModelRequest(name, Usage(13_000, 10_000, 450)))
    found = run_with(requests, prices={name: price})
    hand = (12_000 * 2 + 300 * 8 + 3_000 * 2 + 10_000 * 0.5 + 450 * 8) / 1e6
    assert found.figures.cost_per_trial.value == pytest.approx(hand, abs=1e-12)
    assert run_with(requests).figures.cost_per_trial.value is None
    assert run_with(requests).figures.cost_per_trial.known is False
    assert "in-house has no known price" in " ".join(str(run_with(requests)).split())
    given = replace(found, manifest={"prices": {name: price.to_dict()}})
    assert given.to_dict()["spent"]["price_basis"] == {"in-house": "given by the user"}
    assert "in-house given by the user" in " ".join(str(given).split())


def test_a_run_is_priced_anew(tmp_path):
    """A price given when a run is read back prices what was recorded, the user's requests too; the record stays."""
    found = run_with((ModelRequest("in-house", FIRST),))
    user = Spent((ModelRequest("in-house", Usage(1_000, 0, 0)),), None)
    folder = keep(replace(found, records=tuple(replace(r, user=user) for r in found.records)), tmp_path / "run")
    assert load_result(folder).cost is load_result(folder).bill.user.cost is None
    priced = load_result(folder, prices={"in-house": Price(2, None, 8)})
    assert priced.cost == pytest.approx(2 * (12_000 * 2 + 300 * 8) / 1e6, abs=1e-12)
    assert priced.bill.user.cost == pytest.approx(2 * 1_000 * 2 / 1e6, abs=1e-12)
    assert priced.price_bases() == {"in-house": "given by the user"}
    assert load_result(folder).cost is None
    with pytest.raises(InvalidOption, match="prices"):
        load_result(folder, prices={"in-house": 2})
    with pytest.raises(UnknownName, match="no asked model 'inhouse'"):
        load_result(folder, prices={"inhouse": Price(2, None, 8)})


def test_the_basis_is_that_of_the_run():
    """The version of the price table that is named is the one that the run was priced by, not the installed one."""
    found = replace(run_with(requests_of("gpt-5-mini")), manifest={"price_table": "genai-prices 0.0.1"})
    assert found.price_bases()["gpt-5-mini"] == "list price of gpt-5-mini at openai, genai-prices 0.0.1"


def test_user_and_judge_are_billed_apart():
    """What the simulated user and the judge asked models for is in no figure of the agent's, and named with its cost."""
    found = run_with(requests_of("gpt-5-mini"))
    user = Spent.of([ModelRequest("claude-haiku-4-5", Usage(2_000, 1_000, 100))], {})  # 1.00, 0.10, 5.00
    judge = Spent.of([ModelRequest("no-such-model", Usage(500, 0, 1))], {})
    passed, failed = found.records
    found = replace(found, records=(replace(passed, user=user), replace(failed, user=user, judge=judge)))
    assert found.figures.cost_per_success.value == pytest.approx(2 * TOTALS["gpt-5-mini"], abs=1e-12)
    spent = found.to_dict()["spent"]
    assert spent["valid"]["cost"] == pytest.approx(2 * TOTALS["gpt-5-mini"], abs=1e-12)
    assert spent["valid"]["user"]["cost"] == pytest.approx(2 * (1_000 * 1 + 1_000 * 0.1 + 100 * 5) / 1e6, abs=1e-12)
    assert spent["valid"]["judge"] == {"usage": Usage(500, 0, 1).to_dict(), "cost": None}
    assert set(spent["price_basis"]) == {"gpt-5-mini", "claude-haiku-4-5", "no-such-model"}
    shown = " ".join(str(found).split())
    assert "The user: 4,200 tokens, cost $0.0032. The judge: 501 tokens, cost unknown." in shown


def test_faulted_attempts_are_billed_apart():
    """Attempts that ended in a fault are in no figure; their tokens and dollars, the user's too, stand by themselves."""
    found = run_with(requests_of("gpt-5-mini"))
    lost = record("bank/t0", 0, None, usage=Usage(7, 0, 0), cost=0.25)
    lost = replace(lost, user=Spent((ModelRequest("gpt-5-mini", Usage(9, 0, 1)),), 0.5))
    apart = replace(found, faulted=(lost,)).to_dict()["spent"]
    assert apart["valid"] == found.to_dict()["spent"]["valid"]
    assert (apart["without_verdict"]["cost"], apart["without_verdict"]["user"]["cost"]) == (0.25, 0.5)
    assert apart["without_verdict"]["user"]["usage"]["input_tokens"] == 9
