"""Draw parallel coordinates as SVG: an axis a row, a line a trial, from the top to the bottom.

The lines are one path for each group of trials. A page's script reads them back: it finds the
trials that a brush chooses by their places, and their values by the ticks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import pairwise

from tilewright.scheduler.cli.text import plain
from tilewright.scheduler.report.drawing.elements import (
    CHARACTER,
    NAMES_LEFT,
    RIGHT,
    ROW,
    TOP,
    WIDTH,
    label,
    short,
)
from tilewright.scheduler.report.parallel import GROUPS, Dimension, Parallel

STEP = 36  # height of an axis with its ticks
COLOURS = (1, 0, 5, 7)  # of the groups, by their numbers on the page


class ParallelDrawing:
    """Draws parallel coordinates: their axes, their lines, and what a script needs to brush."""

    def __init__(self, figure: Parallel) -> None:
        self._figure = figure
        self._top = TOP + ROW + 10
        self.height = self._top + STEP * max(1, len(figure.dimensions))

    def lines(self) -> Iterator[str]:
        """Yield all parts."""
        yield from self._legend()
        yield from self._trials()
        for place, dimension in enumerate(self._figure.dimensions):
            yield from self._axis(place, dimension)

    def _legend(self) -> Iterator[str]:
        x = 4.0
        for group, name in enumerate(GROUPS):
            yield f'<path class="trials g{group} c{COLOURS[group]} key" d="M{x:.0f} {TOP + 8}h12"/>'
            yield label(x + 17, TOP + 12, name, "start")
            x += 34 + CHARACTER * len(name)

    def _trials(self) -> Iterator[str]:
        """Yield a path for each group, the fastest in front."""
        columns = [
            [_across(place) for place in dimension.places] for dimension in self._figure.dimensions
        ]
        origins = list(dict.fromkeys(self._figure.origins))
        found: dict[int, list[tuple[str, str]]] = {}
        told = zip(
            *(self._figure.groups, self._figure.numbers),
            *(self._figure.latencies, self._figure.origins),
            zip(*columns, strict=True),
            strict=True,
        )
        for group, number, latency, origin, places in told:
            steps = " ".join(f"{b - a} {STEP}" for a, b in pairwise(places))
            text = f"M{places[0]} 0l{steps}" if steps else f"M{places[0]} 0v0"
            time = "" if latency is None else f"{1e9 * latency:.0f}"
            facts = f"{number} {time} {origins.index(origin)}"
            found.setdefault(group, []).append((text, facts))
        start = f'transform="translate(0 {self._top})"'
        yield f'<g class="lines" {start} data-origins="{" ".join(origins)}">'
        for group in sorted(found, reverse=True):
            path = "".join(text for text, _ in found[group])
            told_of = ",".join(facts for _, facts in found[group])
            style = f"trials g{group} c{COLOURS[group]}"
            yield f'<path class="{style}" d="{path}" data-trials="{told_of}"/>'
        yield "</g>"

    def _axis(self, place: int, dimension: Dimension) -> Iterator[str]:
        y = self._top + STEP * place
        ticks = [(_across(at), plain(name)) for at, name in dimension.ticks]
        name, known = plain(dimension.name), escape(json.dumps(ticks))
        yield f'<g class="axis" data-name="{escape(name)}" data-ticks="{known}">'
        yield f'<path class="frame" d="M{NAMES_LEFT} {y}H{WIDTH - RIGHT}"/>'
        yield label(NAMES_LEFT - 10, y + 4, short(name), "end", name)
        room = float(WIDTH)
        for x, text in reversed(ticks):
            yield f'<path class="frame" d="M{x} {y - 3}v6"/>'
            wide = CHARACTER * len(short(text, 9))
            if (at := min(x, WIDTH - 2 - wide / 2)) + wide / 2 <= room:
                yield label(at, y + 13, short(text, 9), "middle", text)
                room = at - wide / 2
        width = WIDTH - RIGHT - NAMES_LEFT
        yield f'<rect class="hit" x="{NAMES_LEFT}" y="{y - 12}" width="{width}" height="24"/>'
        yield "</g>"


def _across(place: float) -> int:
    """Return where a place from 0 to 1 is on an axis."""
    return round(NAMES_LEFT + place * (WIDTH - RIGHT - NAMES_LEFT))
