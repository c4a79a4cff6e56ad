"""The cheapest pairing of two small sets."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf


def assign(costs: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return the (row, column) pairs of least total cost that pair as many rows and columns as possible.

    The Hungarian algorithm in the form of shortest augmenting paths (Jonker and Volgenant, 1987). It is written out here
    because the sets are tiny and importing scipy would hold the event loop for a second in the middle of a run.

    Args:
        costs: One row of costs a row; all of one length.
    """
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        turned = list(zip(*costs, strict=True))
        return [(row, column) for column, row in assign(turned)]
    width = len(costs[0])
    of_row, of_column = [0.0] * len(costs), [0.0] * width
    owner: list[int | None] = [None] * width
    for row in range(len(costs)):
        _augment(costs, row, of_row, of_column, owner)
    return sorted((row, column) for column, row in enumerate(owner) if row is not None)


def _augment(
    costs: Sequence[Sequence[float]],
    start: int,
    of_row: list[float],
    of_column: list[float],
    owner: list[int | None],
) -> None:
    """Give ``start`` a column along the cheapest alternating path, keeping the potentials valid."""
    width = len(owner)
    distance, before, reached = [inf] * width, [-1] * width, list[int]()
    row: int | None = start
    last, at = -1, 0.0
    while row is not None:
        for column in range(width):
            if column not in reached:
                through = at + costs[row][column] - of_row[row] - of_column[column]
                if through < distance[column]:
                    distance[column], before[column] = through, last
        last = min((c for c in range(width) if c not in reached), key=distance.__getitem__)
        at = distance[last]
        reached.append(last)
        row = owner[last]
    of_row[start] += at
    for column in reached[:-1]:
        held = owner[column]
        if held is not None:
            of_row[held] += at - distance[column]
        of_column[column] -= at - distance[column]
    while last != -1:
        previous = before[last]
        owner[last] = start if previous == -1 else owner[previous]
        last = previous
