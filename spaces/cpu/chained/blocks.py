"""The sizes of a chained kernel, and the parts of a worker's scratch memory.

A block of rows meets one tile of keys after the other. Register tiles of ``score_rows`` by
``score_vectors`` compute the scores of a tile, which become weights in place; register tiles of
``value_rows`` by ``value_vectors`` add the weighted rows of matrices to the sums. Rows of scores
and of sums are padded by a cache line: a stride of a power of two would map them all to the same
cache sets.
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
"""Terms of scores that are packed at a time if a tile of keys is packed in ``STEPS``."""
IN_PLACE, COPIED = "in_place", "copied"


@dataclass(frozen=True)
class Blocks:
    """The sizes of a schedule in elements, or of many, with one entry of an array for each.

    ``dots`` tells that keys are read in place with lanes along the depth; ``stepped`` that a tile
    of keys is packed when a block meets it, one step of its depth at a time; ``copied`` that rows
    of the matrices for a tile of keys are copied first.
    """

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
        """Return the sizes under a schedule's decisions, or under columns of many."""
        names = ("rows", "keys", "score_rows", "score_vectors", "value_rows", "value_vectors")
        sizes = {name: values[name] for name in names}
        forms = {"dots": values["key_layout"] == DOTS, "stepped": values["key_layout"] == STEPS}
        return cls(chained, lanes, **sizes, **forms, copied=values["value_layout"] == COPIED)

    @property
    def depth(self) -> int:
        """The number of terms of each score."""
        return self.chained.depth.extent

    @property
    def width(self) -> int:
        """The number of columns of each matrix of sums."""
        return self.chained.width.extent

    @property
    def panel(self) -> Any:
        """The number of keys of a register tile of scores, and of a packed panel of keys."""
        return self.score_vectors * (self.lanes - self.dots * (self.lanes - 1))

    @property
    def panels(self) -> Any:
        """The number of packed panels that hold all keys."""
        return ceil_div(self.chained.key.extent, self.panel)

    @property
    def whole_depth(self) -> int:
        """The depth, rounded up to whole vectors."""
        return round_up(self.depth, self.lanes)

    @property
    def passing_depth(self) -> Any:
        """The terms of a block's rows that are read for one tile of keys at a time."""
        return self.depth - self.stepped * (self.depth - DEPTH_STEP)

    @property
    def packed(self) -> Any:
        """The elements of keys that are packed at a time."""
        every = self.panels * self.panel * self.whole_depth * (1 - self.dots)
        return every + self.stepped * (self.keys * DEPTH_STEP + LINE - every)

    @property
    def columns(self) -> Any:
        """The number of columns of a register tile of sums."""
        return self.value_vectors * self.lanes

    @property
    def left_stride(self) -> int:
        """Elements from one row of the left operand to the next."""
        return self.whole_depth + LINE

    @property
    def score_stride(self) -> Any:
        """Elements from one row of scores or weights to the next."""
        return self.keys + LINE

    @property
    def sum_stride(self) -> int:
        """Elements from one row of sums, or of a copied matrix, to the next."""
        return round_up(self.width, self.lanes) + LINE

    def parts(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the size in floats of each part of a worker's scratch memory."""
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
    """Return the numbers ``first`` times powers of two, in units: for each, up to the least that
    holds ``extent``, and none above ``most``."""
    found: set[int] = set()
    for number in first:
        while number * unit <= most:
            found.add(number * unit)
            if number * unit >= extent:
                break
            number *= 2
    return tuple(sorted(found)) or (unit,)
