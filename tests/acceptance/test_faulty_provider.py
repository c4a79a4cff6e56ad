"""A provider that throttles, fails, cuts and stalls changes no verdict, and is asked no more often than that takes."""

import os
from collections import Counter

import anyio
import httpx2
import pytest

from tbadapters import Retries, evaluate
from tbadapters.testing import Faults, FixedPolicy, Outcomes, RateLimit, ScriptedModelServer

FULL = os.environ.get("TBADAPTERS_FULL") == "1"
RATES = {"rate_limit": 0.10, "server_error": 0.05, "cut_stream": 0.02, "timeout": 0.01}
BUDGET = Retries(attempts=8, wait_initial=0.05, wait_max=0.5)
TRIES = 3  # of one request by the openai client: two retries by default


def implied(requests, *, retried, lost):
    """Return how many requests one trial implies whose attempt makes so many when nothing fails.

    Each request is tried up to three times, again only after a fault of the share ``retried``; a fault of the share
    ``lost``, and the last try's, end the attempt, and another one begins.
    """
    tries = sum(retried**n for n in range(TRIES))
    answered = (1 - retried - lost) * tries
    an_attempt = tries * sum(answered**n for n in range(requests))
    return an_attempt / answered**requests


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stack", ["langgraph streamed", "langgraph", "openai-agents", "pydantic-ai"])
async def test_verdicts_are_those_of_a_faultless_run(play, stack):
    """All trials end with the verdict of a faultless run, and the requests are as many as the fault rates imply."""
    framework, _, streamed = stack.partition(" ")
    if not (FULL or streamed):
        pytest.skip("only at full size")
    # Three standard deviations, and four.
    tasks, trials, tolerance = (50, 3, 0.10) if FULL else (12, 1, 0.4)
    options = {"outcomes": Outcomes(pass_rate=0.6, seed=4), "trials": trials, "streaming": bool(streamed)}
    options |= {"tasks": tasks, "concurrency": None, "retries": BUDGET}

    reference, _, calm = await play(framework, **options)
    faults = Faults(**RATES, stall_seconds=60, seed=2)
    result, _, server = await play(framework, **options, faults=faults, client_timeout=5.0)

    verdicts = [{(r.task, r.index): (r.passed, r.end_reason) for r in one.trials} for one in (reference, result)]
    assert verdicts[0] == verdicts[1]
    assert result.coverage.missing == 0
    assert None not in {r.passed for r in result.trials}
    assert result.pass_at_1 == pytest.approx(reference.pass_at_1)

    lost = RATES["cut_stream"] if streamed else 0.0  # the client tries again where it reads an answer as a whole
    retried = sum(RATES.values()) - lost
    asked = Counter(exchange.trial for exchange in calm.requests)
    expected = sum(implied(requests, retried=retried, lost=lost) for requests in asked.values())
    seen = Counter(exchange.fault for exchange in server.requests)
    print(  # noqa: T201  (the figures of a full run)
          f"\n{stack}: {len(asked)} trials, {len(calm.requests)} requests without faults, {len(server.requests)} with, "
          f"{expected:.0f} implied; {dict(seen)}; {len(result.faulted)} further attempts, "
          f"client retries {sum(r.client_retries for r in (*result.trials, *result.faulted))}")  # fmt: skip
    assert len(server.requests) == pytest.approx(expected, rel=tolerance)

    every = (*result.trials, *result.faulted)
    for code in ("rate_limit", "server_error"):
        counted = sum(record.provider_faults.get(code, 0) for record in every)
        # A client that gave up waiting just before was answered all the same.
        assert 0.9 * seen[code] - 1 <= counted <= seen[code]
    made_again = len(server.requests) - len(calm.requests)
    assert 0 < sum(record.client_retries for record in every) <= made_again


def settled(limit, *, after, before_end):
    """Return how many requests a second were taken and refused, from so many seconds after the first to the end."""
    start, end = limit.taken[0] + after, limit.taken[-1] - before_end
    assert end - start >= 3, f"too short to tell: {end - start:.1f} s"
    taken, refused = (sum(start <= at < end for at in found) / (end - start) for found in (limit.taken, limit.refused))
    print(  # noqa: T201  (the figures of a full run)
          f"\n{taken:.1f} taken and {refused:.1f} refused a second over {end - start:.0f} s; in all "
          f"{len(limit.taken)} taken and {len(limit.refused)} refused")  # fmt: skip
    return taken, refused


@pytest.mark.timeout(600)
async def test_throughput_settles_at_what_the_provider_takes(desk, tmp_path):
    """A provider that takes R requests a second gets R within 15 %, though its clients would ask it for far more."""
    takes, trials = (50, 60) if FULL else (10, 5)
    limit = RateLimit(takes)

    async with (
        ScriptedModelServer(FixedPolicy(["ok"]), faults=limit, keep_bodies=False) as server,
        httpx2.AsyncClient(timeout=60, limits=httpx2.Limits(max_connections=100)) as web,
    ):

        async def agent(message, ctx):
            for number in range(8):
                body = {"model": "m", "messages": [{"role": "user", "content": f"{ctx.id} {number}"}]}
                while (await web.post(f"{server.url}/chat/completions", json=body)).is_error:
                    await anyio.sleep(0.1)  # impatient: without a pace, half the requests would be refused
            return "I'm sorry, that can't be done."

        result = await evaluate(agent, suite=desk, trials=trials, out=tmp_path, progress="off")
    assert result.coverage.missing == 0
    taken, refused = settled(limit, after=3, before_end=1)
    assert 0.85 * takes <= taken <= 1.15 * takes
    assert refused <= 0.4 * takes
    assert sum(r.seconds.get("held", 0.0) for r in result.trials) > 0


@pytest.mark.timeout(900)
@pytest.mark.skipif(not FULL, reason="only at full size")
async def test_throughput_of_a_frameworks_agent_settles(play):
    """The same with a framework's agent and its client's own retries; no trial is lost."""
    limit = RateLimit(6)
    options = {"tasks": 50, "trials": 2, "concurrency": None, "retries": Retries(attempts=5)}
    result, *_ = await play("pydantic-ai", faults=limit, **options)
    assert result.coverage.missing == 0
    taken, refused = settled(limit, after=5, before_end=3)
    assert 0.85 * 6 <= taken <= 1.15 * 6
    assert refused <= 0.4 * 6
