"""Draw a figure of axes and series as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from tilewright.scheduler.report.drawing.elements import (
    BOTTOM,
    CHARACTER,
    COLOURS,
    NAMES_LEFT,
    RIGHT,
    ROW,
    TOP,
    WIDTH,
    axis_ends,
    axis_scale,
    label,
    number_text,
    round_numbers,
    short,
    xml_text,
)
from tilewright.scheduler.report.figure import Figure, Kind, Series

LEFT, PLOT_HEIGHT = 64, 220
MARKS = ("h0", "h0", "m-3 3h6l-3-6z", "m-3 0l3-3l3 3l-3 3z", "m-3.5 0h7m-3.5-3.5v7")
"""Paths of marks: a dot, a square, a triangle, a diamond, a plus."""
DENSE = 300
"""Points of a series from which on a whole unit is exact enough for their places."""
CROSS = "m-3-3l6 6m0-6l-6 6"
"""The mark of what failed."""


class ChartDrawing:
    """Draws a figure of axes and series: its scales, and its parts."""

    def __init__(self, figure: Figure) -> None:
        self._figure = figure
        self._rows = list(_legend_rows(figure.series))
        names = figure.y.names
        self._left = NAMES_LEFT if names else LEFT
        self._top = TOP + ROW * len(self._rows)
        plot = ROW * max(1, len(names)) if names else PLOT_HEIGHT
        self._bottom = self._top + plot
        self.height = self._bottom + BOTTOM
        bars = any(each.kind is Kind.BARS for each in figure.series)
        xs = [x for each in figure.series for x in each.x] + ([0.0] if bars else [])
        ys = [y for each in figure.series if each.kind is not Kind.CROSSES for y in each.y]
        self._x_ends = axis_ends(xs, figure.x.log)
        self._y_ends = (-0.5, len(names) - 0.5) if names else axis_ends(ys, figure.y.log)
        across, up = (self._left, WIDTH - RIGHT), (self._bottom, self._top)
        self._x = axis_scale(self._x_ends, across, figure.x.log)
        self._y = axis_scale(self._y_ends, up[::-1] if names else up, figure.y.log)

    def lines(self) -> Iterator[str]:
        """Yield all parts."""
        yield from self.axes()
        for place, each in enumerate(self._figure.series):
            yield from self.series(place, each)
        yield from self.legend()

    def axes(self) -> Iterator[str]:
        """Yield the grid, its numbers and the labels."""
        x, y = self._figure.x, self._figure.y
        for value in round_numbers(self._x_ends, x.log):
            at = self._x(value)
            yield f'<path class="grid" d="M{at:.1f} {self._top}V{self._bottom}"/>'
            yield label(at, self._bottom + 14, number_text(value, x), "middle")
        if y.names:
            for place, name in enumerate(y.names):
                yield label(self._left - 6, self._y(place) + 4, short(name), "end", name)
        else:
            for value in round_numbers(self._y_ends, y.log):
                at = self._y(value)
                yield f'<path class="grid" d="M{self._left} {at:.1f}H{WIDTH - RIGHT}"/>'
                yield label(self._left - 6, at + 4, number_text(value, y), "end")
        box = f"M{self._left} {self._top}V{self._bottom}H{WIDTH - RIGHT}"
        yield f'<path class="frame" d="{box}"/>'
        middle = (self._left + WIDTH - RIGHT) / 2
        yield label(middle, self._bottom + 32, x.label, "middle")
        if not y.names:
            turn = f'transform="rotate(-90 11 {(self._top + self._bottom) / 2:.0f})"'
            at = (self._top + self._bottom) / 2
            name = xml_text(y.label)
            yield f'<text x="11" y="{at:.0f}" text-anchor="middle" {turn}>{name}</text>'

    def series(self, place: int, each: Series) -> Iterator[str]:
        """Yield the marks of one series."""
        style = _style(place, each.kind)
        if each.kind is Kind.RULE:
            for y in each.y:
                yield f'<path class="{style}" d="M{self._left} {self._y(y):.1f}H{WIDTH - RIGHT}"/>'
        elif each.kind is Kind.BARS:
            for x, y in zip(each.x, each.y, strict=True):
                start, end, top = self._x(0.0), self._x(x), self._y(y) - ROW / 2 + 3
                size = f'width="{max(1.0, end - start):.1f}" height="{ROW - 6}"'
                yield f'<rect class="{style}" x="{start:.1f}" y="{top:.1f}" {size}/>'
        elif each.kind is Kind.SPANS:
            style = _style(place - 1, each.kind)  # of the points that it is about
            for start, end, y in zip(each.x[::2], each.x[1::2], each.y[::2], strict=True):
                line = f"M{self._x(start):.1f} {self._y(y):.1f}H{self._x(end):.1f}"
                yield f'<path class="{style}" d="{line}"/>'
        elif each.x:
            yield f'<path class="{style}" d="{self._path(place, each)}"/>'

    def _path(self, place: int, each: Series) -> str:
        if each.kind in (Kind.POINTS, Kind.CROSSES):
            crossed = each.kind is Kind.CROSSES
            mark = CROSS if crossed else MARKS[place % len(MARKS)]
            heights = (self._top + 5 if crossed else self._y(y) for y in each.y)
            digits = 0 if len(each.x) > DENSE else 1
            return "".join(
                f"M{self._x(x):.{digits}f} {y:.{digits}f}{mark}"
                for x, y in zip(each.x, heights, strict=True)
            )
        points = [(self._x(x), self._y(y)) for x, y in zip(each.x, each.y, strict=True)]
        joint = "H{0:.1f}V{1:.1f}" if each.kind is Kind.STEPS else "L{0:.1f} {1:.1f}"
        (x, y), *others = points
        return f"M{x:.1f} {y:.1f}" + "".join(joint.format(*point) for point in others)

    def legend(self) -> Iterator[str]:
        """Yield the name of each series beside its mark; of a series alone, none."""
        for row, items in enumerate(self._rows):
            for x, place, each in items:
                y, style = TOP + ROW * row + 8, _style(place, each.kind)
                if each.kind is Kind.BARS:
                    yield f'<rect class="{style}" x="{x:.0f}" y="{y - 5}" width="10" height="10"/>'
                else:
                    crossed = each.kind is Kind.CROSSES
                    mark = CROSS if crossed else MARKS[place % len(MARKS)]
                    line = f"M{x} {y}h12" if "points" not in style else f"M{x + 6} {y}{mark}"
                    yield f'<path class="{style} key" d="{line}"/>'
                yield label(x + 17, y + 4, short(each.name, 34), "start", each.name)


def _style(place: int, kind: Kind) -> str:
    colour = f"c{place % len(COLOURS)}"
    if kind not in (Kind.POINTS, Kind.CROSSES):
        return f"{kind} {colour}"
    mark = place % len(MARKS)
    shape = " thin" if kind is Kind.CROSSES or mark > 1 else " square" if mark else ""
    return f"points {colour}{shape}"


def _legend_rows(series: Sequence[Series]) -> Iterator[list[tuple[int, int, Series]]]:
    """Yield the series of each line of the legend, with their places; none where there is one
    series."""
    if len(series) < 2:
        return
    row: list[tuple[int, int, Series]] = []
    x = 4
    for place, each in enumerate(series):
        if not each.name:
            continue
        width = 34 + ceil(CHARACTER * len(short(each.name, 34)))
        if row and x + width > WIDTH:
            yield row
            row, x = [], 4
        row.append((x, place, each))
        x += width
    yield row
