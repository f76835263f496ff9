"""Draw figures as SVG: text that can be selected, colours that the colour-blind tell apart.

Each series also has a mark of its own. All text is escaped: it may come from a stranger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from math import ceil, floor, isfinite, log10

from tilewright.scheduler.cli.output import seconds
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.report.figure import Axis, Figure, Kind, Series

WIDTH, PLOT_HEIGHT = 440, 220
LEFT, RIGHT, BOTTOM, TOP = 64, 12, 40, 8
NAMES_LEFT = 160  # width of names along the y axis
ROW = 18  # height of a bar, or of a line of the legend
CHARACTER = 6.2  # width of one, at most
MARKS = ("h0", "h0", "m-3 3h6l-3-6z", "m-3 0l3-3l3 3l-3 3z", "m-3.5 0h7m-3.5-3.5v7")
"""Paths of marks: a dot, a square, a triangle, a diamond, a plus."""
CROSS = "m-3-3l6 6m0-6l-6 6"
"""The mark of what failed."""
STYLE = """\
svg.figure{font:11px system-ui,sans-serif;color:#1b1b1b;background:#fff}
svg.figure text{fill:currentColor}
"""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#56b4e9", "#882255", "#555")
"""Okabe and Ito's, the light ones darkened."""

Scale = Callable[[float], float]


def standalone(figure: Figure) -> str:
    """Return a picture with a style of its own."""
    rules = STYLE + "".join(f".c{i}{{--c:{c}}}" for i, c in enumerate(COLOURS)) + FIGURE_STYLE
    return drawn(figure).replace(">", f"><style>{rules}</style>", 1)


FIGURE_STYLE = """\
.figure .points{fill:none;stroke:var(--c);stroke-width:5;stroke-linecap:round;opacity:.75}
.figure .thin{stroke-width:1.4}.figure .square{stroke-linecap:square}
.figure .steps,.figure .line{fill:none;stroke:var(--c);stroke-width:1.6}
.figure .rule{fill:none;stroke:var(--c);stroke-width:1.4;stroke-dasharray:6 3}
.figure .bars{fill:var(--c)}
.figure .grid{stroke:currentColor;stroke-opacity:.15;fill:none}
.figure .frame{stroke:currentColor;stroke-opacity:.5;fill:none}
"""


def drawn(figure: Figure, identity: str = "") -> str:
    """Return a picture that takes its style from the page; ``identity`` tells it from others
    there."""
    drawing = _Drawing(figure)
    name = f"{identity or figure.name}-title"
    parts = [
        f'<svg class="figure" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {WIDTH} {drawing.height:g}" aria-labelledby="{escape(name)}" '
        f'data-points="{figure.count}">',
        f'<title id="{escape(name)}">{_text(f"{figure.title}: {figure.caption}")}</title>',
        *drawing.axes(),
        *(line for place, each in enumerate(figure.series) for line in drawing.series(place, each)),
        *drawing.legend(),
        "</svg>",
    ]
    return "".join(parts)


class _Drawing:
    """The scales of a figure, and its parts."""

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
        self._x_ends = _ends(xs, figure.x.log)
        self._y_ends = (-0.5, len(names) - 0.5) if names else _ends(ys, figure.y.log)
        across, up = (self._left, WIDTH - RIGHT), (self._bottom, self._top)
        self._x = _scale(self._x_ends, across, figure.x.log)
        self._y = _scale(self._y_ends, up[::-1] if names else up, figure.y.log)

    def axes(self) -> Iterator[str]:
        """Yield the grid, its numbers and the labels."""
        x, y = self._figure.x, self._figure.y
        for value in _ticks(self._x_ends, x.log):
            at = self._x(value)
            yield f'<path class="grid" d="M{at:.1f} {self._top}V{self._bottom}"/>'
            yield _label(at, self._bottom + 14, _number(value, x), "middle")
        if y.names:
            for place, name in enumerate(y.names):
                yield _label(self._left - 6, self._y(place) + 4, _short(name), "end", name)
        else:
            for value in _ticks(self._y_ends, y.log):
                at = self._y(value)
                yield f'<path class="grid" d="M{self._left} {at:.1f}H{WIDTH - RIGHT}"/>'
                yield _label(self._left - 6, at + 4, _number(value, y), "end")
        box = f"M{self._left} {self._top}V{self._bottom}H{WIDTH - RIGHT}"
        yield f'<path class="frame" d="{box}"/>'
        middle = (self._left + WIDTH - RIGHT) / 2
        yield _label(middle, self._bottom + 32, x.label, "middle")
        if not y.names:
            turn = f'transform="rotate(-90 11 {(self._top + self._bottom) / 2:.0f})"'
            at = (self._top + self._bottom) / 2
            yield f'<text x="11" y="{at:.0f}" text-anchor="middle" {turn}>{_text(y.label)}</text>'

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
        elif each.x:
            yield f'<path class="{style}" d="{self._path(place, each)}"/>'

    def _path(self, place: int, each: Series) -> str:
        if each.kind in (Kind.POINTS, Kind.CROSSES):
            crossed = each.kind is Kind.CROSSES
            mark = CROSS if crossed else MARKS[place % len(MARKS)]
            heights = (self._top + 5 if crossed else self._y(y) for y in each.y)
            return "".join(
                f"M{self._x(x):.1f} {y:.1f}{mark}" for x, y in zip(each.x, heights, strict=True)
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
                yield _label(x + 17, y + 4, _short(each.name, 34), "start", each.name)


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
        width = 34 + ceil(CHARACTER * len(_short(each.name, 34)))
        if row and x + width > WIDTH:
            yield row
            row, x = [], 4
        row.append((x, place, each))
        x += width
    yield row


def _ends(values: Sequence[float], log: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows all values."""
    known = [v for v in values if isfinite(v) and (v > 0 or not log)]
    if not known:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(known), max(known)
    if log:
        return low / 1.1, high * 1.1
    room = (high - low) * 0.05 or abs(high) * 0.05 or 0.5
    return (0.0 if 0 <= low <= high / 2 else low - room), high + room


def _scale(ends: tuple[float, float], places: tuple[float, float], log: bool) -> Scale:
    low, high = (log10(end) for end in ends) if log else ends
    start, width = places[0], places[1] - places[0]

    def scale(value: float) -> float:
        if log and value <= 0:
            return start
        at = log10(value) if log else value
        return start + width * (at - low) / (high - low)

    return scale


def _ticks(ends: tuple[float, float], log: bool) -> list[float]:
    """Return few round numbers within the ends."""
    low, high = ends
    if log and high > 10 * low:
        first, last = floor(log10(low)), ceil(log10(high))
        steps = (1, 2, 5) if last - first <= 2 else (1,)
        every = ceil((last - first) / 6)
        powers = range(first, last + 1, every)
        found = [m * 10.0**p for p in powers for m in steps if low <= m * 10.0**p <= high]
        return found
    step = 10.0 ** floor(log10((high - low) / 4))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 6)
    first = ceil(low / step)
    return [step * place for place in range(first, floor(high / step) + 1)]


def _number(value: float, axis: Axis) -> str:
    if axis.unit == "s" and value > 0:
        return seconds(value)
    return f"{100 * value:.3g} %" if axis.unit == "%" else f"{value:.4g}"


def _label(x: float, y: float, text: str, anchor: str, whole: str = "") -> str:
    title = f"<title>{_text(whole)}</title>" if whole and whole != text else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{title}{_text(text)}</text>'


def _short(text: str, most: int = 22) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text(text: str) -> str:
    """Return text as XML holds it, whoever wrote it."""
    return escape(plain(text))
