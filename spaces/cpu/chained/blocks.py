"""The sizes of a chained kernel, and what a worker keeps of them in its scratch memory.

A block of rows meets one tile of keys after the other. Scores of a tile, from ``score_rows`` times
``score_vectors`` register tiles, become weights in place; sums gather ``value_rows`` times
``value_vectors`` at a time. Rows of both are a line of the cache more than a power of two apart, or
all of them would compete for the same sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.abi import LINE
from tilewright.spaces.cpu.chained.chain import weight_tiles
from tilewright.spaces.derivation.chained.view import Chained

PANELS, DOTS, STEPS = "panels", "dots", "steps"
DEPTH_STEP = 512
"""Terms of scores that are packed at a time where a tile of keys is packed in ``STEPS``."""
IN_PLACE, COPIED = "in_place", "copied"


@dataclass(frozen=True)
class Blocks:
    """Sizes in elements. Those of a schedule may be arrays, one entry a schedule: ``dots`` says
    that keys are read in place, lanes along the depth, ``stepped`` that a tile of keys is packed
    when it is met, a step of its depth at a time, and ``copied`` that the rows that matrices
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
    stepped: Any
    copied: Any

    @classmethod
    def of(cls, chained: Chained, lanes: int, values: Mapping[str, Any]) -> Blocks:
        """Those of a schedule's decisions, or of columns of many."""
        names = ("rows", "keys", "score_rows", "score_vectors", "value_rows", "value_vectors")
        sizes = {name: values[name] for name in names}
        forms = {"dots": values["key_layout"] == DOTS, "stepped": values["key_layout"] == STEPS}
        return cls(chained, lanes, **sizes, **forms, copied=values["value_layout"] == COPIED)

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
    def passing_depth(self) -> Any:
        """Terms that a block's rows have with one tile of keys at a time."""
        return self.depth - self.stepped * (self.depth - DEPTH_STEP)

    @property
    def packed(self) -> Any:
        """Elements of keys that are packed at a time."""
        every = self.panels * self.panel * self.whole_depth * (1 - self.dots)
        return every + self.stepped * (self.keys * DEPTH_STEP + LINE - every)

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
        yield "packed", self.packed
        yield "computed", computed * self.panel * self.left_stride
        yield "left", self.rows * self.left_stride
        yield "score", self.rows * self.score_stride
        for tile in sorted(set(weight_tiles(chained).values()) - {"score"}):
            yield tile, self.rows * self.score_stride
        for number, _ in enumerate(chained.weighings):
            yield f"sums{number}", self.rows * self.sum_stride
            yield f"values{number}", self.copied * self.keys * self.sum_stride


def multiples(extent: int, first: tuple[int, ...], most: int, unit: int = 1) -> tuple[int, ...]:
    """The numbers ``first`` times powers of two, in units, up to the first that holds ``extent``,
    or ``most``."""
    found: set[int] = set()
    for number in first:
        while number * unit <= most:
            found.add(number * unit)
            if number * unit >= extent:
                break
            number *= 2
    return tuple(sorted(found)) or (unit,)
