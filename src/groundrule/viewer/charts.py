"""Line charts as inline SVG. Colours and type come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from groundrule.viewer.markup import Attribute, Html, tag

WIDTH, HEIGHT = 440, 210
LEFT, RIGHT, TOP, BOTTOM = 38, 12, 10, 26

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """One line, and the range around it where there is one."""

    name: str
    points: Sequence[Point]
    style: str = "one"
    """A class of the style sheet: `one`, `two` or `three`."""
    band: Sequence[tuple[float, float, float]] = field(default_factory=tuple)
    """(x, lowest, highest)."""


def line_chart(title: str, series: Sequence[Series], *, note: str = "", x_name: str = "step") -> Html | None:
    """A chart with its caption; None where there is nothing to draw."""
    drawn = [s for s in series if s.points]
    if not drawn:
        return None
    svg = drawing(title, drawn, x_name=x_name)
    names = [tag("span", s.name, class_=f"key {s.style}") for s in drawn] if len(drawn) > 1 else []
    caption = tag("figcaption", tag("strong", title), " ", note, tag("span", names, class_="keys"))
    return tag("figure", caption, svg, class_="chart")


def drawing(title: str, series: Sequence[Series], *, x_name: str = "step", **attributes: Attribute) -> Html:
    """The lines alone, as an SVG element; each series has points."""
    frame = _Frame.around(series)
    parts = [*_grid(frame, x_name), *(p for s in series for p in _series(s, frame))]
    label = _spoken(title, series)
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
    y: tuple[float, float]
    ticks: Sequence[float]

    @classmethod
    def around(cls, series: Sequence[Series]) -> _Frame:
        xs = [x for s in series for x, _ in s.points]
        ys = [y for s in series for _, y in s.points] + [
            y for s in series for _, *ends in s.band for y in ends
        ]
        ticks = nice_ticks(min(ys), max(ys))
        return cls((min(xs), max(max(xs), min(xs) + 1)), (ticks[0], ticks[-1]), ticks)

    def place(self, x: float, y: float) -> Point:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)


def nice_ticks(low: float, high: float, *, about: int = 4) -> list[float]:
    """Round numbers from below `low` to above `high`."""
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    rough = (high - low) / about
    size = 10 ** math.floor(math.log10(rough))
    step = size * next(m for m in (1, 2, 2.5, 5, 10) if m * size >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def _grid(frame: _Frame, x_name: str) -> list[Html]:
    parts = []
    for tick in frame.ticks:
        _, y = frame.place(frame.x[0], tick)
        parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        parts.append(tag("text", f"{tick:g}", x=LEFT - 6, y=f"{y + 3.5:.1f}", text_anchor="end"))
    first, last = (f"{x:g}" for x in frame.x)
    parts.append(tag("text", f"{x_name} {first}", x=LEFT, y=HEIGHT - 7))
    parts.append(tag("text", last, x=WIDTH - RIGHT, y=HEIGHT - 7, text_anchor="end"))
    return parts


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
        told = tag("title", f"{series.name}, {x:g}: {y:.3g}")
        parts.append(
            tag("circle", told, cx=f"{at_x:.1f}", cy=f"{at_y:.1f}", r=radius, class_=f"dot {series.style}")
        )
    return parts


def _path(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _spoken(title: str, series: Sequence[Series]) -> str:
    ends = [f"{s.name} from {s.points[0][1]:.3g} to {s.points[-1][1]:.3g}" for s in series]
    return f"{title}: {'; '.join(ends)}"
