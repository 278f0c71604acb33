"""Line charts as inline SVG. Colours and type come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from groundrule.viewer.markup import Attribute, Html, tag
from groundrule.viewer.numbers import shown

WIDTH, HEIGHT = 440, 210
LEFT, RIGHT, TOP, BOTTOM = 38, 12, 10, 26
RIGHT_OF_AXIS = 50
"""In place of `RIGHT` where ticks and a unit stand there."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """One line, and the range around it where there is one."""

    name: str
    points: Sequence[Point]
    style: str = "one"
    """A class of the style sheet: `one`, `two` or `three`; `aside` is grey and dashed."""
    band: Sequence[tuple[float, float, float]] = field(default_factory=tuple)
    """(x, lowest, highest)."""


@dataclass(frozen=True)
class RightAxis:
    """One more line, on a scale of its own."""

    series: Series
    unit: str


def line_chart(
    title: str,
    series: Sequence[Series],
    *,
    note: str = "",
    x_name: str = "step",
    showing: Sequence[float] = (),
    right: RightAxis | None = None,
) -> Html | None:
    """A chart with its caption; None where there is nothing to draw.

    `showing` are heights that the scale has in any case. A right axis without points is left out.
    """
    drawn = [s for s in series if s.points]
    if not drawn:
        return None
    right = right if right and right.series.points else None
    svg = drawing(title, drawn, x_name=x_name, showing=showing, right=right)
    caption = tag(
        "figcaption", tag("strong", title), " ", note, tag("span", _keys(drawn, right), class_="keys")
    )
    return tag("figure", caption, svg, class_="chart")


def drawing(
    title: str,
    series: Sequence[Series],
    *,
    x_name: str = "step",
    showing: Sequence[float] = (),
    right: RightAxis | None = None,
    **attributes: Attribute,
) -> Html:
    """The lines alone, as an SVG element; each series has points."""
    beside = [right.series] if right else []
    frame = _Frame.around([*series, *beside], end=WIDTH - (RIGHT_OF_AXIS if right else RIGHT))
    left = frame.scaled_to(series, showing)
    parts = _grid(left, x_name)
    if right:
        other = frame.scaled_to(beside)
        parts += [*_right_ticks(other, right.unit), *_series(right.series, other)]
    parts += [part for s in series for part in _series(s, left)]
    label = _spoken(title, series, right)
    return tag("svg", parts, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, **attributes)


def sparkline(values: Sequence[float]) -> Html:
    """A line the size of a word."""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    step = 100 / max(1, len(values) - 1)
    path = " ".join(f"{i * step:.1f},{22 - 20 * (v - low) / span:.1f}" for i, v in enumerate(values))
    line = tag("polyline", points=path)
    return tag(
        "svg", line, viewBox="0 0 100 24", class_="spark", preserveAspectRatio="none", aria_hidden="true"
    )


@dataclass(frozen=True)
class _Frame:
    """Where numbers stand on the paper."""

    x: tuple[float, float]
    end: float
    """Where the lines end to the right."""
    ticks: Sequence[float] = (0.0, 1.0)

    @classmethod
    def around(cls, series: Sequence[Series], *, end: float) -> _Frame:
        xs = [x for s in series for x, _ in s.points]
        return cls((min(xs), max(xs) if max(xs) > min(xs) else min(xs) + 1), end)

    def scaled_to(self, series: Sequence[Series], showing: Sequence[float] = ()) -> _Frame:
        ys = [y for s in series for _, y in s.points]
        ends = [y for s in series for _, *both in s.band for y in both]
        every = [*ys, *ends, *showing]
        return replace(self, ticks=nice_ticks(min(every), max(every)))

    def place(self, x: float, y: float) -> Point:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return LEFT + across * (self.end - LEFT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)


def nice_ticks(low: float, high: float, *, about: int = 4) -> list[float]:
    """Round numbers around `low` and `high`, which may reach beyond them by a twenty-fifth of a step."""
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / about
    size = 10 ** math.floor(math.log10(rough))
    step = size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= rough * 0.999)
    first, last = math.floor(low / step + 0.04), math.ceil(high / step - 0.04)
    return [round(n * step, 12) for n in range(first, last + 1)]


def _grid(frame: _Frame, x_name: str) -> list[Html]:
    parts = []
    for tick in frame.ticks:
        _, y = frame.place(frame.x[0], tick)
        parts.append(tag("line", x1=LEFT, x2=frame.end, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=LEFT - 6, y=f"{y + 3.5:.1f}", text_anchor="end"))
    first, last = (shown(x) for x in frame.x)
    parts.append(tag("text", f"{x_name} {first}", x=LEFT, y=HEIGHT - 7))
    parts.append(tag("text", last, x=frame.end, y=HEIGHT - 7, text_anchor="end"))
    return parts


def _right_ticks(frame: _Frame, unit: str) -> list[Html]:
    parts = []
    for tick in frame.ticks:
        _, y = frame.place(frame.x[0], tick)
        parts.append(tag("line", x1=frame.end, x2=frame.end + 4, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=frame.end + 7, y=f"{y + 3.5:.1f}"))
    x, y = WIDTH - 11, (TOP + HEIGHT - BOTTOM) / 2
    parts.append(tag("text", unit, x=x, y=y, text_anchor="middle", transform=f"rotate(90 {x} {y:g})"))
    return parts


def _keys(series: Sequence[Series], right: RightAxis | None) -> list[Html]:
    """Names beside their colours, where there are several; with two axes also which is whose."""
    if right is None and len(series) == 1:
        return []
    names = [(s, f"{s.name} (left)" if right else s.name) for s in series]
    if right:
        names.append((right.series, f"{right.series.name} (right)"))
    return [tag("span", name, class_=f"key {s.style}") for s, name in names]


def _series(series: Series, frame: _Frame) -> list[Html]:
    parts = []
    if len(series.band) > 1:
        upper = [frame.place(x, high) for x, _, high in series.band]
        lower = [frame.place(x, low) for x, low, _ in reversed(series.band)]
        parts.append(tag("polygon", points=_path([*upper, *lower]), class_=f"band {series.style}"))
    placed = [frame.place(x, y) for x, y in series.points]
    if len(placed) > 1:
        parts.append(tag("polyline", points=_path(placed), class_=f"line {series.style}"))
    radius = 3 if len(placed) <= 12 else 1.6
    for (x, y), (at_x, at_y) in zip(series.points, placed, strict=True):
        told = tag("title", f"{series.name}, {shown(x)}: {y:.3g}")
        parts.append(
            tag("circle", told, cx=f"{at_x:.1f}", cy=f"{at_y:.1f}", r=radius, class_=f"dot {series.style}")
        )
    return parts


def _path(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _spoken(title: str, series: Sequence[Series], right: RightAxis | None) -> str:
    told = [_ends(s) for s in series]
    if right:
        told.append(f"{_ends(right.series)} {right.unit}")
    return f"{title}: {'; '.join(told)}"


def _ends(series: Series) -> str:
    return f"{series.name} from {series.points[0][1]:.3g} to {series.points[-1][1]:.3g}"
