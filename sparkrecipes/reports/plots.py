"""Plots: lines and bars as inline SVG that follow the page's colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkrecipes.reports.html_text import Markup, element

WIDTH, HEIGHT = 640.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 24.0, 26.0, 46.0
INSET = 28.0
"""Room between the vertical axis and the first point, for the point's own figure."""

BARS_WIDTH, LABELS, SAYS = 360.0, 128.0, 98.0
"""A bar plot is as wide as a phone, so that label, bar and value are seen together."""

LONGEST_LABEL = 17
BAR, GAP = 13.0, 7.0
LABEL_AT = (-8.0, 18.0)
"""Values of a first line stand above it, those of a second one below."""

COLOURS = 4
"""Series colours of the page's style; a fifth series takes the first again."""


@dataclass(frozen=True)
class Point:
    """One value of a line, with the range of its repeats where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Bar:
    """One bar: what it is called, how long it is, and what is said at its end."""

    label: str
    value: float
    says: str
    colour: int = 0


@dataclass(frozen=True)
class Frame:
    """Where a line plot's values lie on the page."""

    x_low: float
    x_high: float
    y_high: float

    def x(self, value: float) -> float:
        """Return the place of a value on the horizontal axis."""
        share = (
            (value - self.x_low) / (self.x_high - self.x_low) if self.x_high > self.x_low else 0.5
        )
        return LEFT + INSET + share * (WIDTH - LEFT - INSET - RIGHT)

    def y(self, value: float) -> float:
        """Return the place of a value on the vertical axis, which starts at 0."""
        return HEIGHT - BOTTOM - value / self.y_high * (HEIGHT - TOP - BOTTOM)


def line_plot(
    title: str, series: Mapping[str, Sequence[Point]], *, x_title: str, y_title: str
) -> Markup:
    """Draw lines over numbers, from 0 upwards, each point with its range.

    Args:
        title: What a reader who does not see it is told.
        series: At least one line with at least one point.
        x_title: What the horizontal axis counts.
        y_title: What the vertical axis measures, with its unit.
    """
    points = [point for line in series.values() for point in line]
    xs = sorted({point.x for point in points})
    frame = Frame(xs[0], xs[-1], nice_ceiling(max(p.high or p.y for p in points)))
    parts = [*grid(frame), *x_ticks(frame, xs)]
    for index, (name, line) in enumerate(series.items()):
        labels = LABEL_AT[index] if len(series) <= 2 and len(line) <= 12 else None
        parts += drawn_line(frame, line, index % COLOURS, labels)
        if len(series) > 1:
            parts += legend(name, index)
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_title, "middle"))
    parts.append(text(8.0, 14.0, y_title))
    return picture(title, (WIDTH, HEIGHT), parts, "lines")


def grid(frame: Frame) -> list[Markup]:
    """Draw the horizontal lines with their values."""
    parts = []
    for step in range(5):
        value = frame.y_high * step / 4
        y = frame.y(value)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(text(LEFT - 8, y + 4, f"{value:g}", "end"))
    return parts


def x_ticks(frame: Frame, xs: Sequence[float]) -> list[Markup]:
    """Write at most 16 of the values that were measured below the axis."""
    every = math.ceil(len(xs) / 16)
    return [text(frame.x(x), HEIGHT - BOTTOM + 18, f"{x:g}", "middle") for x in xs[::every]]


def drawn_line(
    frame: Frame, line: Sequence[Point], colour: int, labels: float | None
) -> list[Markup]:
    """Draw one line: the ranges, the path, the points and, where there are few, their values.

    Args:
        frame: Where values lie.
        line: The points.
        colour: Which of the series colours.
        labels: How far from the ends of the ranges the values are written; None: not at all.
    """
    path = " ".join(f"{frame.x(p.x):.1f},{frame.y(p.y):.1f}" for p in line)
    parts = [element("polyline", points=path, class_=f"line s{colour}")]
    for p in line:
        x, y = frame.x(p.x), frame.y(p.y)
        if p.low is not None and p.high is not None:
            low, high = frame.y(p.low), frame.y(p.high)
            parts.append(element("line", x1=x, x2=x, y1=low, y2=high, class_=f"range s{colour}"))
        hint = element("title", f"{p.x:g}: {p.y:g}")
        parts.append(element("circle", hint, cx=x, cy=y, r=4, class_=f"dot s{colour}"))
        if labels is not None:
            end = p.high if labels < 0 else p.low
            parts.append(text(x, frame.y(end or p.y) + labels, f"{p.y:.4g}", "middle", "value"))
    return parts


def legend(name: str, index: int) -> list[Markup]:
    """Name one line, at the top."""
    x = 200.0 + 140.0 * index
    return [
        element("circle", cx=x, cy=10, r=4, class_=f"dot s{index % COLOURS}"),
        text(x + 10, 14.0, name),
    ]


def bar_plot(title: str, bars: Sequence[Bar], *, longest: float | None = None) -> Markup:
    """Draw horizontal bars from 0, each with its value.

    Args:
        title: What a reader who does not see it is told.
        bars: At least one.
        longest: Value of a bar over the whole width; None: the largest.
    """
    full = longest or max(bar.value for bar in bars) or 1.0
    room = BARS_WIDTH - LABELS - SAYS
    parts = []
    for index, bar in enumerate(bars):
        y = GAP + index * (BAR + GAP)
        width = max(1.0, min(1.0, bar.value / full) * room)
        parts += [
            text(LABELS - 6, y + 11, shortened(bar.label), "end"),
            element(
                "rect", x=LABELS, y=y, width=width, height=BAR, rx=3, class_=f"bar s{bar.colour}"
            ),
            text(LABELS + width + 6, y + 11, bar.says, "start", "value"),
        ]
    return picture(title, (BARS_WIDTH, GAP + len(bars) * (BAR + GAP)), parts, "bars")


def shortened(label: str) -> str:
    """Cut a label that would not fit beside its bar."""
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def text(x: float, y: float, says: str, anchor: str = "start", class_: str = "label") -> Markup:
    """Write a text at a place."""
    return element("text", says, x=x, y=y, text_anchor=anchor, class_=class_)


def picture(title: str, size: tuple[float, float], parts: Sequence[Markup], kind: str) -> Markup:
    """Close a drawing, with its name for those who do not see it; a narrow screen scrolls it."""
    drawn = element(
        "svg",
        element("title", title),
        *parts,
        viewBox=f"0 0 {size[0]:g} {size[1]:g}",
        role="img",
        aria_label=title,
        class_=kind,
    )
    return element("div", drawn, class_="plot")


def nice_ceiling(value: float) -> float:
    """Return the next 1, 2, 4, 6 or 8 times a power of ten: its quarters are short numbers."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * step for step in (1, 2, 4, 6, 8, 10) if power * step >= value)
