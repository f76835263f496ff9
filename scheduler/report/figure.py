"""Figures as data, which other modules draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import Any

from tilewright.spaces.validation.files import output_file


class Kind(StrEnum):
    """The way a series is drawn."""

    POINTS = "points"
    CROSSES = "crosses"  # points of failures, at the upper edge
    STEPS = "steps"  # a line that keeps its value until the next one
    LINE = "line"
    RULE = "rule"  # one value, across the whole figure
    SPANS = "spans"  # intervals along x: two points each, whose y is the same
    BARS = "bars"  # lengths along x, one for each name on the y axis


@dataclass(frozen=True)
class Axis:
    """An axis. ``unit`` is ``s`` for seconds, ``%`` for shares, ``x`` for ratios, or empty.
    ``names`` stand at 0, 1 and so on, from the top, where it has no numbers."""

    label: str
    unit: str = ""
    log: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """Numbers of one kind: ``x`` and ``y`` are equally long, but for a rule, which has no ``x``."""

    name: str
    kind: Kind
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Picture(ABC):
    """A figure called ``name``; ``caption`` says in a sentence what it shows.

    In a notebook it shows itself. :meth:`save` writes it as SVG, PNG or JSON.
    """

    name: str
    title: str
    caption: str

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of points, or of lines that stand for a trial each."""

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to show."""
        return not self.count

    def to_json(self) -> dict[str, Any]:
        """Return the figure as a JSON object."""
        return asdict(self)

    def svg(self) -> str:
        """Return the figure as a picture that stands alone."""
        from tilewright.scheduler.report.drawing.svg import standalone

        return standalone(self)

    def png(self) -> bytes:
        """Return the figure as PNG; :class:`InputError` where resvg or a font is missing."""
        from tilewright.scheduler.report.drawing.png import png
        from tilewright.scheduler.report.drawing.svg import FONTS

        return png(self.svg(), FONTS)

    def save(self, path: str | Path) -> None:
        """Write the figure to a file, as JSON or PNG if its name ends so, or else as SVG."""
        import json

        place = Path(path)
        kind = place.suffix.lower()
        if kind == ".png":
            content = self.png()
        else:
            content = (json.dumps(self.to_json()) if kind == ".json" else self.svg()).encode()
        with output_file(place, "a figure") as file:
            file.write(content)

    def _repr_svg_(self) -> str:
        return self.svg()


@dataclass(frozen=True)
class Figure(Picture):
    """A figure of two axes, on which series are drawn."""

    x: Axis
    y: Axis
    series: tuple[Series, ...]

    @property
    def count(self) -> int:
        """The number of points; lines and bars are none."""
        points = (Kind.POINTS, Kind.CROSSES)
        return sum(len(each.x) for each in self.series if each.kind in points)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is nothing to show but lines."""
        return not any(each.x for each in self.series if each.kind is not Kind.LINE)


def series(name: str, kind: Kind, points: Iterable[tuple[float, float]]) -> Series:
    """Return a series of pairs, without those that are no numbers."""
    found = [(float(x), float(y)) for x, y in points if isfinite(x) and isfinite(y)]
    return Series(name, kind, tuple(x for x, _ in found), tuple(y for _, y in found))
