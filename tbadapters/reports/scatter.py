"""Two rates of each agent, suite's part or published model against each other: places in a fixed view box, and words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tbadapters.core.statistics import Interval
from tbadapters.reports.text import percent

WIDTH, HEIGHT = 440, 320
LEFT, RIGHT, TOP, BOTTOM = 44, 12, 12, 42
_LETTER, _LINE, _GAP = 7.1, 13.0, 9.0  # of a label of 12 pixels
_CLEAR = 12.0
_PARTS_NAMED = 8  # with more, the names of a suite's parts would hide the points

Kind = Literal["agent", "published", "part"]


@dataclass(frozen=True, slots=True)
class Point:
    """One thing with two rates, from 0 to 1.

    Attributes:
        name: What it is called.
        x: Across.
        y: Up; None where it is unknown: such a point is left out.
        kind: ``agent`` (all tasks of a run), ``published`` (a model), or ``part`` (the tasks of one tag).
        number: Of an agent, from 0: its colour and shape.
        x_interval: 95 %, drawn for agents.
        y_interval: 95 %, drawn for agents.
        about: Whether a rate is known to two digits only.
    """

    name: str
    x: float | None
    y: float | None
    kind: Kind = "agent"
    number: int = 0
    x_interval: Interval | None = None
    y_interval: Interval | None = None
    about: bool = False


class Label(NamedTuple):
    """A name beside its point; ``far`` where a line has to lead there."""

    x: float
    y: float
    anchor: Literal["start", "middle", "end"]
    far: bool


@dataclass(frozen=True, slots=True)
class Spot:
    """A point in its place. ``across`` and ``up`` are the ends of its intervals, ``label`` is None without room."""

    point: Point
    x: float
    y: float
    across: tuple[float, float] | None
    up: tuple[float, float] | None
    label: Label | None
    words: str


@dataclass(frozen=True, slots=True)
class Guide:
    """A line from the origin: so much of what is across is left up there."""

    x: float
    y: float
    words: str


@dataclass(frozen=True, slots=True)
class Scatter:
    """The drawing: spots, parts first so that agents lie above them; ticks are (position, label)."""

    x_name: str
    y_name: str
    spots: tuple[Spot, ...]
    guides: tuple[Guide, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]

    @property
    def kinds(self) -> frozenset[Kind]:
        """Which kinds of points there are."""
        return frozenset(spot.point.kind for spot in self.spots)

    @property
    def words(self) -> str:
        """The drawing in words."""
        told = " ".join(f"{spot.words}." for spot in self.spots if spot.point.kind != "part")
        return f"{self.y_name} against {self.x_name}. {told}"


def scatter(points: Iterable[Point], *, x: str, y: str, shares: Sequence[float] = (1.0,)) -> Scatter:
    """Return the drawing of points.

    Args:
        points: Those with both rates are drawn.
        x: What is across, in words.
        y: What is up.
        shares: For each, a line on which that share of what is across is left.
    """
    order = ("part", "published", "agent")
    known = sorted((p for p in points if p.x is not None and p.y is not None), key=lambda p: order.index(p.kind))
    ticks = [i / 4 for i in range(5)]
    return Scatter(
        x_name=x,
        y_name=y,
        spots=tuple(_spots(known, x, y)),
        guides=tuple(Guide(_x(1), _y(share), f"{share:.0%}") for share in shares),
        across=tuple((_x(tick), f"{tick:.0%}") for tick in ticks),
        up=tuple((_y(tick), f"{tick:.0%}") for tick in ticks),
    )


def _spots(points: Sequence[Point], x: str, y: str) -> Iterator[Spot]:
    labels = _labels(points)
    for point in points:
        about = "about " if point.about else ""
        words = f"{point.name}: {x} {percent(point.x)}, {y} {about}{percent(point.y)}"
        yield Spot(
            point,
            _x(point.x or 0),
            _y(point.y or 0),
            _ends(point.x_interval, _x),
            _ends(point.y_interval, _y),
            labels.get(point),
            words,
        )


def _ends(interval: Interval | None, place: Callable[[float], float]) -> tuple[float, float] | None:
    return None if interval is None else (place(interval.low), place(interval.high))


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def wider(self, by: float) -> _Box:
        return _Box(self.left - by, self.top - by / 3, self.right + by, self.bottom + by / 3)

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )


def _labels(points: Sequence[Point]) -> dict[Point, Label]:
    """Place names where they hide neither a point nor another name: agents' first, then models', then parts'."""
    parts = sum(point.kind == "part" for point in points)
    named = [p for p in reversed(points) if p.kind != "part" or parts <= _PARTS_NAMED]
    marks = {point: next(_covered(point)) for point in points}
    taken = [box for point in points for box in _covered(point)]
    found: dict[Point, Label] = {}
    for point in named:
        for label in _candidates(point, far=point.kind != "part"):
            box = _box(label, point.name)
            others = [] if label.far else [mark for other, mark in marks.items() if other is not point]
            inside = box.left >= LEFT and box.right <= WIDTH and box.top >= 0 and box.bottom <= HEIGHT - BOTTOM
            # Without a line that leads to it, a name is read as that of the nearest point.
            clear = not any(box.wider(_CLEAR).meets(mark) for mark in others)
            if inside and clear and not any(box.meets(other) for other in taken):
                found[point] = label
                taken.append(box)
                break
    return found


def _covered(point: Point) -> Iterator[_Box]:
    """Yield what a point and its intervals cover."""
    x, y = _x(point.x or 0), _y(point.y or 0)
    left, right = _ends(point.x_interval, _x) or (x, x)
    bottom, top = _ends(point.y_interval, _y) or (y, y)
    yield _Box(x - 5, y - 5, x + 5, y + 5)
    yield _Box(left, y - 1, right, y + 1)
    yield _Box(x - 1, top, x + 1, bottom)


def _candidates(point: Point, *, far: bool) -> Iterator[Label]:
    x, y = _x(point.x or 0), _y(point.y or 0)
    yield Label(x + _GAP, y + 4, "start", far=False)
    yield Label(x - _GAP, y + 4, "end", far=False)
    yield Label(x, y - _GAP, "middle", far=False)
    yield Label(x, y + _GAP + 10, "middle", far=False)
    yield Label(x + _GAP, y - _GAP, "start", far=False)
    yield Label(x - _GAP, y - _GAP, "end", far=False)
    yield Label(x + _GAP, y + _GAP + 9, "start", far=False)
    yield Label(x - _GAP, y + _GAP + 9, "end", far=False)
    for away in (22.0, 36.0, 50.0) if far else ():
        for up in (-away, away):
            yield Label(x + 12, y + up, "start", far=True)
            yield Label(x - 12, y + up, "end", far=True)


def _box(label: Label, name: str) -> _Box:
    width = _LETTER * len(name)
    left = label.x - {"start": 0.0, "middle": width / 2, "end": width}[label.anchor]
    return _Box(left, label.y - _LINE + 3, left + width, label.y + 3)


def _x(value: float) -> float:
    return LEFT + value * (WIDTH - LEFT - RIGHT)


def _y(value: float) -> float:
    return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)
