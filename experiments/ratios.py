"""Pictures of ratios as SVG: points with intervals on a log axis around 1.

All panels of a picture have one scale. A ratio is a rival's time over ours, so that right of 1 ours
is faster; a loss has another colour and shape. The text is written here and not by a library that
draws, so that its bytes depend on nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

FASTER, SLOWER, TEXT = "#3987c8", "#e07b1a", "#7f7f7f"
LABELS, CHARACTER, PANEL, GAP = 205, 6.3, 270, 14
TOP, BOTTOM = 62, 46
ROW, SINGLE_ROW = 30, 17  # height of a row of several points, and of one
TICKS = tuple(2.0**power for power in range(-6, 9))


@dataclass(frozen=True)
class Point:
    """A ratio with the ends of its interval, if that is known."""

    ratio: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Row:
    """The points of a line, and ``notes`` for the columns beside it, such as the rival's name."""

    points: Sequence[Point]
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Panel:
    """Rows by name under a title; ``columns`` are headings with widths of what stands beside."""

    title: str
    rows: Mapping[str, Row]
    columns: Sequence[tuple[str, int]] = ()

    @property
    def width(self) -> int:
        """Pixels of the panel with its columns."""
        return PANEL + sum(width for _, width in self.columns)


def by_shape(name: str) -> tuple[object, ...]:
    """Return a key that sorts names by their words, and numbers in them by size."""
    parts = re.split(r"(\d+)", name)
    return tuple((place % 2, int(part) if place % 2 else part) for place, part in enumerate(parts))


def draw(title: str, words: str, panels: Sequence[Panel], names: Sequence[str] = ()) -> str:
    """Return a picture's text. ``words`` say what the ratios are of. Rows are in the order of
    ``names``, or else by shape."""
    known = dict.fromkeys(name for panel in panels for name in panel.rows)
    names = names or sorted(known, key=by_shape)
    points = [p for panel in panels for row in panel.rows.values() for p in row.points]
    ends = [end for p in points for end in (p.ratio, p.low, p.high) if end]
    low, high = min([*ends, 1.0]) / 1.15, max([*ends, 1.0]) * 1.15
    several = any(len(row.points) > 1 for panel in panels for row in panel.rows.values())
    labels = max([LABELS, *(round(CHARACTER * len(name)) + 20 for name in names)])
    width = labels + sum(panel.width + GAP for panel in panels)
    row = ROW if several else SINGLE_ROW
    height = TOP + row * len(names) + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="{TEXT}">',
        f"<title>{escape(title)}</title>",
        text(width / 2, 18, f"{words} (right of 1: ours is faster)"),
        *_legend(width / 2, 36),
        *(text(labels - 10, TOP + row * (y + 0.5) + 4, n, "end") for y, n in enumerate(names)),
    ]
    left = labels
    for panel in panels:
        lines += _panel(panel, left, low, high, names, row)
        left += panel.width + GAP
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(
    panel: Panel, left: float, low: float, high: float, names: Sequence[str], height: int
) -> Iterator[str]:
    def place(ratio: float) -> float:
        return left + PANEL * math.log(ratio / low) / math.log(high / low)

    bottom = TOP + height * len(names)
    yield text(left + PANEL / 2, TOP - 8, panel.title, weight="bold")
    for tick in TICKS:
        if low < tick < high:
            wide = 1.4 if tick == 1 else 0.4
            yield (
                f'<line x1="{place(tick):.1f}" y1="{TOP}" x2="{place(tick):.1f}" y2="{bottom}" '
                f'stroke="{TEXT}" stroke-width="{wide}"/>'
            )
            yield text(place(tick), bottom + 16, f"{tick:g}")
    ends = list(_ends(left + PANEL, panel.columns))
    for end, (heading, _) in zip(ends, panel.columns, strict=True):
        yield text(end, TOP - 8, heading, "end")
    for number, name in enumerate(names):
        if name in panel.rows:
            middle = TOP + height * (number + 0.5)
            yield from _points(place, middle, panel.rows[name].points)
            for end, note in zip(ends, panel.rows[name].notes, strict=False):
                yield text(end, middle + 4, note, "end")


def _ends(left: float, columns: Sequence[tuple[str, int]]) -> Iterator[float]:
    for _, width in columns:
        left += width
        yield left - 6


def _points(
    place: Callable[[float], float], middle: float, points: Sequence[Point]
) -> Iterator[str]:
    """Yield the circles, and squares where we are slower, several on five lines so that fewer hide
    each other; each on the line of its interval."""
    for number, point in enumerate(sorted(points, key=lambda point: point.ratio)):
        x = place(point.ratio)
        y = middle + (4 * (2 * number % 5 - 2) if len(points) > 1 else 0)
        colour = SLOWER if point.ratio < 1 else FASTER
        if point.low and point.high:
            across = f'x1="{place(point.low):.1f}" x2="{place(point.high):.1f}"'
            yield f'<line {across} y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}"/>'
        if point.ratio < 1:
            corner = f'x="{x - 2.8:.1f}" y="{y - 2.8:.1f}"'
            yield f'<rect {corner} width="5.6" height="5.6" fill="{colour}"/>'
        else:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}" fill-opacity="0.75"/>'


def _legend(middle: float, y: float) -> list[str]:
    return [
        f'<circle cx="{middle - 110:.1f}" cy="{y - 4}" r="3" fill="{FASTER}"/>',
        text(middle - 102, y, "ours is faster", "start"),
        f'<rect x="{middle + 20:.1f}" y="{y - 7}" width="6" height="6" fill="{SLOWER}"/>',
        text(middle + 31, y, "the rival is faster", "start"),
    ]


def text(x: float, y: float, words: str, anchor: str = "middle", weight: str = "normal") -> str:
    """Return words at a place of a picture."""
    bold = ' font-weight="bold"' if weight == "bold" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{bold}>{escape(words)}</text>'
