"""The picture of all comparisons as SVG: a point a case, one panel a device, one log scale.

The text is written here and not by a library that draws, so that its bytes depend on nothing else.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape

from experiments.overview.entries import CPU, GPU

Points = Mapping[str, Mapping[str, Sequence[float]]]
"""Ratios by device and kind."""

TITLES = {CPU: "CPU", GPU: "H200"}
FASTER, SLOWER, TEXT = "#3987c8", "#e07b1a", "#7f7f7f"
LABELS, PANEL, GAP, NUMBERS = 205, 270, 14, 44
TOP, ROW, BOTTOM = 62, 30, 46
TICKS = (0.25, 0.5, 1, 2, 4, 8)


def kinds(points: Points) -> list[str]:
    """Return the kinds of all devices, those of the first in its order."""
    return list(dict.fromkeys(kind for found in points.values() for kind in found))


def draw(points: Points) -> str:
    """Return the picture's text."""
    names = kinds(points)
    ratios = [r for found in points.values() for values in found.values() for r in values]
    low, high = min(ratios) / 1.15, max(ratios) * 1.15
    width = LABELS + len(points) * (PANEL + NUMBERS + GAP)
    height = TOP + ROW * len(names) + BOTTOM
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="{TEXT}">',
        "<title>Time of the fastest library over Tilewright's, by kind of operator</title>",
        _text(width / 2, 18, "Fastest library's time over ours (right of 1: ours is faster)"),
    ]
    lines += _legend(width / 2, 36)
    for row, name in enumerate(names):
        lines.append(_text(LABELS - 10, TOP + ROW * (row + 0.5) + 4, name, "end"))
    for number, (device, found) in enumerate(points.items()):
        left = LABELS + number * (PANEL + NUMBERS + GAP)
        lines += _panel(left, low, high, TITLES[device], names, found)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(
    left: float, low: float, high: float, title: str, names: Sequence[str],
    found: Mapping[str, Sequence[float]],
) -> Iterator[str]:  # fmt: skip
    def place(ratio: float) -> float:
        return left + PANEL * math.log(ratio / low) / math.log(high / low)

    bottom = TOP + ROW * len(names)
    yield _text(left + PANEL / 2, TOP - 8, title, weight="bold")
    yield _text(left + PANEL + NUMBERS - 6, TOP - 8, "mean", "end")
    for tick in TICKS:
        if low < tick < high:
            wide = 1.4 if tick == 1 else 0.4
            yield (
                f'<line x1="{place(tick):.1f}" y1="{TOP}" x2="{place(tick):.1f}" y2="{bottom}" '
                f'stroke="{TEXT}" stroke-width="{wide}"/>'
            )
            yield _text(place(tick), bottom + 16, f"{tick:g}")
    for row, name in enumerate(names):
        if name in found:
            middle = TOP + ROW * (row + 0.5)
            yield from _points(place, middle, found[name])
            mean = statistics.geometric_mean(found[name])
            yield _text(left + PANEL + NUMBERS - 6, middle + 4, f"{mean:.2f}", "end")


def _points(
    place: Callable[[float], float], middle: float, ratios: Sequence[float]
) -> Iterator[str]:
    """Yield the circles, and squares where we are slower, on five lines so that fewer hide each
    other."""
    for number, ratio in enumerate(sorted(ratios)):
        x, y = place(ratio), middle + 4 * (2 * number % 5 - 2)
        if ratio < 1:
            corner = f'x="{x - 2.8:.1f}" y="{y - 2.8:.1f}"'
            yield f'<rect {corner} width="5.6" height="5.6" fill="{SLOWER}"/>'
        else:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{FASTER}" fill-opacity="0.75"/>'


def _legend(middle: float, y: float) -> list[str]:
    return [
        f'<circle cx="{middle - 110:.1f}" cy="{y - 4}" r="3" fill="{FASTER}"/>',
        _text(middle - 102, y, "ours is faster", "start"),
        f'<rect x="{middle + 20:.1f}" y="{y - 7}" width="6" height="6" fill="{SLOWER}"/>',
        _text(middle + 31, y, "the library is faster", "start"),
    ]


def _text(x: float, y: float, words: str, anchor: str = "middle", weight: str = "normal") -> str:
    bold = ' font-weight="bold"' if weight == "bold" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{bold}>{escape(words)}</text>'
