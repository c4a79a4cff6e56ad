"""Promises of the cheapest pairing."""

from itertools import permutations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tbadapters.core.assignment import assign

COSTS = st.integers(1, 6).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 30), min_size=width, max_size=width), min_size=1, max_size=6)
)


def brute_force(costs):
    rows, columns = len(costs), len(costs[0])
    if rows <= columns:
        return min(sum(costs[i][j] for i, j in enumerate(chosen)) for chosen in permutations(range(columns), rows))
    return min(sum(costs[i][j] for j, i in enumerate(chosen)) for chosen in permutations(range(rows), columns))


@settings(deadline=None)
@given(COSTS)
def test_the_pairing_is_the_cheapest_of_all(costs):
    """The pairing costs exactly what the best of all pairings costs, and pairs as many as there can be."""
    pairs = assign(costs)
    assert len(pairs) == min(len(costs), len(costs[0]))
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert sum(costs[i][j] for i, j in pairs) == brute_force(costs)


def test_the_pairing_stays_the_cheapest_in_crowded_matrices():
    """Four rows that fight for five columns get the cheapest pairing, in 300 seeded draws."""
    rng = Random(1)
    for _ in range(300):
        costs = [[rng.randrange(20) for _ in range(5)] for _ in range(4)]
        assert sum(costs[i][j] for i, j in assign(costs)) == brute_force(costs)


def test_nothing_is_paired_with_nothing():
    """An empty set gives no pairs."""
    assert assign([]) == []
    assert assign([[], []]) == []
