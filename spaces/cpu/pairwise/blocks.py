"""The sizes of a pairwise kernel, and the parts of a worker's scratch memory.

A tile of keys meets one block of rows after the other. The matrices of both are copied as float32;
those of keys that scores read are packed in panels, too. Scores become weights in place. Sums of a
tile's keys are kept until it has met all blocks, those of a product's rows until all tiles have
passed. Rows of all of them are padded by a cache line: a stride of a power of two would map them to
the same cache sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.abi import LINE
from tilewright.spaces.derivation.pairwise.view import PairSum, Pairwise
from tilewright.spaces.derivation.products.splitting import Part

NAMES = ("rows", "keys", "score_rows", "score_vectors", "sum_rows", "sum_vectors")
"""The decisions about sizes."""


@dataclass(frozen=True)
class Blocks:
    """The sizes of a schedule in elements, or of many, with one entry of an array for each."""

    pairwise: Pairwise
    lanes: int
    rows: Any
    keys: Any
    score_rows: Any
    score_vectors: Any
    sum_rows: Any
    sum_vectors: Any

    @classmethod
    def of(cls, pairwise: Pairwise, lanes: int, values: Mapping[str, Any]) -> Blocks:
        """Return the sizes under a schedule's decisions, or under columns of many."""
        return cls(pairwise, lanes, *(values[name] for name in NAMES))

    @property
    def panel(self) -> Any:
        """The number of keys of a register tile of scores, and of a packed panel."""
        return self.score_vectors * self.lanes

    @property
    def columns(self) -> Any:
        """The number of columns of a register tile of sums."""
        return self.sum_vectors * self.lanes

    @property
    def pair_stride(self) -> Any:
        """Elements from one row of scores or weights to the next."""
        return self.keys + LINE

    @property
    def tiles(self) -> int:
        """The number of arrays for the pairs of a block and a tile: scores, and weights in their
        places."""
        return max(len(self.pairwise.scores), len(self.pairwise.weights))

    @property
    def whole_keys(self) -> Any:
        """The keys of a tile, in whole register tiles of sums."""
        return round_up(self.keys, self.sum_rows)

    @property
    def whole_rows(self) -> Any:
        """The rows of a product, in whole blocks."""
        return round_up(self.pairwise.row_count, self.rows)

    def whole(self, part: Part) -> int:
        """Return the extent of an axis in whole vectors."""
        return round_up(part.extent, self.lanes)

    def stride(self, part: Part) -> int:
        """Return the elements from one row of a matrix along this axis to the next."""
        return self.whole(part) + LINE

    def length(self, each: PairSum) -> Any:
        """Return the number of rows that a sum has in scratch memory."""
        return self.whole_keys if each.of_key else self.whole_rows

    def near(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the size in floats of each array for a block and a tile."""
        for n, (_, part) in enumerate(self.pairwise.row_matrices):
            yield f"rows{n}", self.rows * self.stride(part)
        for n, (_, part) in enumerate(self.pairwise.key_matrices):
            yield f"keys{n}", self.keys * self.stride(part)
        for n, score in enumerate(self.pairwise.scores):
            yield f"packed{n}", self.keys * self.whole(score.depth) + self.lanes
        for n in range(self.tiles):
            yield f"pairs{n}", self.rows * self.pair_stride + LINE
        for n, each in enumerate(self.pairwise.sums):
            if each.of_key:
                yield f"sums{n}", self.whole_keys * self.stride(each.width)

    def row_sums(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the size in floats of each sum of all rows of a product."""
        for n, each in enumerate(self.pairwise.sums):
            if not each.of_key:
                yield f"sums{n}", self.whole_rows * self.stride(each.width)

    def of_product(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the size in floats of each scalar of a product."""
        for n, scalar in enumerate(self.pairwise.scalars):
            yield f"scalar{n}", self.keys + self.lanes if scalar.of_key else self.whole_rows

    @property
    def near_floats(self) -> Any:
        """Floats of all arrays for a block and a tile."""
        return sum(size for _, size in self.near())

    @property
    def row_tiles(self) -> Any:
        """The number of blocks of a product's rows."""
        return ceil_div(self.pairwise.row_count, self.rows)
