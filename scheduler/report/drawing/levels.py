"""Draw the levels of a kernel as SVG: each is one part of the level above, seen from near."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.scheduler.report.drawing.elements import RIGHT, TOP, WIDTH, label, short
from tilewright.scheduler.report.levels import Level, Levels, Spread

STEP, HEIGHT, LEFT = 42, 14, 8
MOST_CELLS = 32  # parts of a level that are drawn
COLOURS = {Spread.SIDE_BY_SIDE: "c0", Spread.IN_TURN: "c1", Spread.FILLED: "c2"}


class LevelsDrawing:
    """Draws a row for each level; lines lead from its first part to the row below."""

    def __init__(self, figure: Levels) -> None:
        self._levels = figure.levels
        self.height = TOP + STEP * max(1, len(figure.levels)) + 4

    def lines(self) -> Iterator[str]:
        """Yield all parts."""
        for row, level in enumerate(self._levels):
            top = TOP + STEP * row + 16
            yield label(LEFT, top - 4, short(_words(level), 70), "start", _words(level))
            yield from (
                self._memory(level, top)
                if level.spread is Spread.FILLED
                else self._cells(level, top, row + 1 < len(self._levels))
            )

    def _memory(self, level: Level, top: int) -> Iterator[str]:
        width = WIDTH - RIGHT - LEFT
        full = width * min(1.0, level.share or 0.0)
        yield f'<rect class="bars c2" x="{LEFT}" y="{top}" width="{full:.1f}" height="{HEIGHT}"/>'
        yield f'<path class="frame" d="M{LEFT} {top}h{width}v{HEIGHT}h-{width}z"/>'

    def _cells(self, level: Level, top: int, has_next: bool) -> Iterator[str]:
        drawn = min(level.count or 1, MOST_CELLS)
        step = (WIDTH - RIGHT - LEFT) / drawn
        style = f'class="bars {COLOURS[level.spread]}'
        cells = "".join(
            f"M{LEFT + step * n:.1f} {top}h{step - 1:.1f}v{HEIGHT}h-{step - 1:.1f}z"
            for n in range(drawn)
        )
        yield f'<path {style} part" d="{cells}"/>'
        first = f'x="{LEFT}" y="{top}" width="{step - 1:.1f}" height="{HEIGHT}"'
        yield f'<rect {style}" {first}/>'
        if has_next:
            bottom, below = top + HEIGHT, top + STEP
            lines = (
                f"M{LEFT} {bottom}V{below}M{LEFT + step - 1:.1f} {bottom}L{WIDTH - RIGHT} {below}"
            )
            yield f'<path class="grid" d="{lines}"/>'


def _words(level: Level) -> str:
    """Return what is said of a level."""
    if level.spread is Spread.FILLED:
        return f"{level.name}: {level.detail}"
    if level.spread is Spread.IN_TURN:
        return f"{level.detail} one after the other (line {level.line})"
    return f"{level.name}: {level.count} side by side ({level.detail})"
