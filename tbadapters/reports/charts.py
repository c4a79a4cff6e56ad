"""The numbers behind the page's drawings: positions in a fixed view box, and the same in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tbadapters.core.figures import Rate
from tbadapters.core.statistics import Interval
from tbadapters.reports.text import percent, points, span

WIDTH, HEIGHT = 440, 320
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 42
_TICKS = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure for each k.

    Attributes:
        name: Shown in the legend.
        number: From 0: its colour and its dashes.
        points: Of the line.
        band: Of the area of its 95 % intervals, empty where there are none.
        words: First and last value in words.
        rows: (k, value, interval) as text, for the table beside the drawing.
    """

    name: str
    number: int
    points: str
    band: str
    words: str
    rows: tuple[tuple[int, str, str], ...]


@dataclass(frozen=True, slots=True)
class CurveChart:
    """Curves over k in one drawing; ticks are (position, label)."""

    curves: tuple[Curve, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]

    @property
    def words(self) -> str:
        """The drawing in words."""
        return " ".join(curve.words for curve in self.curves)


def curve_chart(series: Mapping[str, Mapping[int, Rate]], k: int) -> CurveChart:
    """Return the drawing of figures that have one rate for each k from 1 to ``k``."""
    step = max(1, -(-k // _TICKS))
    ticks = sorted({1, k, *(i for i in range(step, k, step) if k - i >= step / 2)})
    across = tuple((_x(i, k), str(i)) for i in ticks)
    up = tuple((_y(i / 4), f"{25 * i}%") for i in range(5))
    curves = (_curve(name, number, rates, k) for number, (name, rates) in enumerate(series.items()))
    return CurveChart(tuple(curves), across, up)


def _curve(name: str, number: int, rates: Mapping[int, Rate], k: int) -> Curve:
    known = [(i, rate.value, rate.interval) for i, rate in rates.items() if rate.value is not None]
    spans = [(i, interval) for i, _, interval in known if interval is not None]
    rows = tuple((i, percent(value), span(interval)) for i, value, interval in known)
    words = f"{name}: no value."
    if known:
        words = f"{name}: {percent(known[0][1])} at k = {known[0][0]}, {percent(known[-1][1])} at k = {known[-1][0]}."
    edge = [(i, s.high) for i, s in spans] + [(i, s.low) for i, s in reversed(spans)]
    return Curve(name, number, _points([(i, v) for i, v, _ in known], k), _points(edge, k), words, rows)


def _points(places: list[tuple[int, float]], k: int) -> str:
    return " ".join(f"{_x(i, k):.1f},{_y(value):.1f}" for i, value in places)


def _x(i: int, k: int) -> float:
    share = (i - 1) / (k - 1) if k > 1 else 0.5
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(value: float) -> float:
    return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)


@dataclass(frozen=True, slots=True)
class Whisker:
    """A value and its interval on a line from 0 to 100; None where it is unknown."""

    value: float | None
    low: float | None
    high: float | None
    words: str


def rate_whisker(value: float | None, interval: Interval | None) -> Whisker:
    """Return a rate on a line from 0 % to 100 %."""
    words = percent(value) if interval is None else f"{percent(value)}, 95% interval {span(interval)}"
    return _whisker(value, interval, words, scale=100, zero=0)


def difference_whisker(value: float | None, interval: Interval | None) -> Whisker:
    """Return a difference on a line from -100 points to 100 points; 0 is in its middle."""
    words = "unknown" if value is None else f"{100 * value:+.1f} points, 95% interval {points(interval)}"
    return _whisker(value, interval, words, scale=50, zero=50)


def _whisker(value: float | None, interval: Interval | None, words: str, *, scale: float, zero: float) -> Whisker:
    low, high = interval or (None, None)
    value_at, low_at, high_at = (None if v is None else round(zero + scale * v, 2) for v in (value, low, high))
    return Whisker(value_at, low_at, high_at, words)
