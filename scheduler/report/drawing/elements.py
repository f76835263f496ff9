"""Parts of pictures that all drawings share: places, numbers and texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, floor, log10

from tilewright.scheduler.cli.output import seconds, times
from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.report.figure import Axis
from tilewright.scheduler.report.plausible import LEAST, MOST

WIDTH, RIGHT, BOTTOM, TOP = 440, 12, 40, 8
NAMES_LEFT = 160  # width of names along the y axis
ROW = 18  # height of a bar, or of a line of the legend
CHARACTER = 6.2  # width of one, at most
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#8a6d00", "#56b4e9", "#882255", "#555")
"""Okabe and Ito's, the light ones darkened."""

Scale = Callable[[float], float]


def axis_ends(values: Sequence[float], log: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows all values."""
    known = [v for v in values if abs(v) <= MOST and (v >= LEAST or not log)]
    if not known:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(known), max(known)
    if log:
        return low / 1.1, high * 1.1
    room = (high - low) * 0.05 or abs(high) * 0.05 or 0.5
    return (0.0 if 0 <= low <= high / 2 else low - room), high + room


def axis_scale(ends: tuple[float, float], places: tuple[float, float], log: bool) -> Scale:
    """Return the function from a value to its place; ``places`` are those of the ends."""
    low, high = (log10(end) for end in ends) if log else ends
    start, width = places[0], places[1] - places[0]

    def scale(value: float) -> float:
        if log and value <= 0:
            return start
        at = log10(value) if log else value
        return start + width * (at - low) / (high - low)

    return scale


def round_numbers(ends: tuple[float, float], log: bool) -> list[float]:
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


def number_text(value: float, axis: Axis) -> str:
    """Return a number of an axis in its unit."""
    if axis.unit == "s" and value > 0:
        return seconds(value)
    if axis.unit == "x":
        return times(value)
    return f"{100 * value:.3g} %" if axis.unit == "%" else f"{value:.4g}"


def label(x: float, y: float, text: str, anchor: str, whole: str = "") -> str:
    """Return a text at a place; ``whole`` is shown beside the pointer, if the text is a part."""
    title = f"<title>{xml_text(whole)}</title>" if whole and whole != text else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{title}{xml_text(text)}</text>'


def short(text: str, most: int = 22) -> str:
    """Return a text, cut where it is longer than ``most`` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def xml_text(text: str) -> str:
    """Return text as XML holds it, whoever wrote it."""
    return escape(plain(text))
