"""The sizes of a chained kernel, and what a worker keeps of them in its scratch memory.

A block of rows meets one tile of keys after the other. Scores of a tile, from ``score_rows`` times
``score_vectors`` register tiles, become weights in place; sums gather ``value_rows`` times
``value_vectors`` at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spaces.algebra.integers import ceil_div, round_up
from spaces.cpu.chained.chain import weight_tiles
from spaces.derivation.chained.view import Chained

LINE = 16
"""Floats of a cache line. Rows of scores and sums are that much apart from a power of two, or all
of them would compete for the same sets of the cache."""
PANELS, DOTS = "panels", "dots"
IN_PLACE, COPIED = "in_place", "copied"


@dataclass(frozen=True)
class Blocks:
    """Sizes in elements. Those of a schedule may be arrays, one entry a schedule: ``dots`` says
    that keys are read in place, lanes along the depth, and ``copied`` that the rows that matrices
    have for a tile of keys are copied first."""

    chained: Chained
    lanes: int
    rows: Any
    keys: Any
    score_rows: Any
    score_vectors: Any
    value_rows: Any
    value_vectors: Any
    dots: Any
    copied: Any

    @classmethod
    def of(cls, chained: Chained, lanes: int, values: Mapping[str, Any]) -> Blocks:
        """Those of a schedule's decisions, or of columns of many."""
        names = ("rows", "keys", "score_rows", "score_vectors", "value_rows", "value_vectors")
        sizes = {name: values[name] for name in names}
        dots, copied = values["scores"] == DOTS, values["values"] == COPIED
        return cls(chained, lanes, **sizes, dots=dots, copied=copied)

    @property
    def depth(self) -> int:
        """Terms of each score."""
        return self.chained.depth.extent

    @property
    def width(self) -> int:
        """Columns of each matrix of sums."""
        return self.chained.width.extent

    @property
    def panel(self) -> Any:
        """Keys of a tile of scores, and of a packed panel of keys."""
        return self.score_vectors * (self.lanes - self.dots * (self.lanes - 1))

    @property
    def panels(self) -> Any:
        """Packed panels of all keys."""
        return ceil_div(self.chained.key.extent, self.panel)

    @property
    def whole_depth(self) -> int:
        """The depth in whole vectors."""
        return round_up(self.depth, self.lanes)

    @property
    def columns(self) -> Any:
        """Columns of a tile of sums."""
        return self.value_vectors * self.lanes

    @property
    def left_stride(self) -> int:
        """From a row of the left operand to the next."""
        return self.whole_depth + LINE

    @property
    def score_stride(self) -> Any:
        """From a row of scores or weights to the next."""
        return self.keys + LINE

    @property
    def sum_stride(self) -> int:
        """From a row of sums, or a copied row of a matrix, to the next."""
        return round_up(self.width, self.lanes) + LINE

    def parts(self) -> Iterator[tuple[str, Any]]:
        """The name and size of each part of the scratch memory."""
        chained = self.chained
        computed = chained.in_place(chained.right) is None
        yield "packed", self.panels * self.panel * self.whole_depth * (1 - self.dots)
        yield "computed", computed * self.panel * self.left_stride
        yield "left", self.rows * self.left_stride
        yield "score", self.rows * self.score_stride
        for tile in sorted(set(weight_tiles(chained).values()) - {"score"}):
            yield tile, self.rows * self.score_stride
        for number, _ in enumerate(chained.weighings):
            yield f"sums{number}", self.rows * self.sum_stride
            yield f"values{number}", self.copied * self.keys * self.sum_stride
