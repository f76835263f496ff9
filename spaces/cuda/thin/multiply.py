"""The ways in which threads of a thin kernel multiply, and add up their sums.

Here are ordinary multiply-adds; ``mma.sync`` is in ``spaces.cuda.thin.matrices``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.finish import SUM_TYPES, sum_dtype
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.thin.product import MMA_TYPES
from tilewright.spaces.cuda.thin.tile import ThinTile
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class ThinMultiply(ABC):
    """A way to add the products of a step to ``sums``; ``tile`` says which thread reads what.

    A thread holds elements of both operands in arrays of words, which are elements or, to be taken
    apart later, pairs of neighbours.
    """

    tile: ThinTile

    @property
    @abstractmethod
    def pairs(self) -> bool:
        """True if words of the large operand are pairs."""

    @property
    @abstractmethod
    def small_pairs(self) -> bool:
        """True if words of the small operand are pairs."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """Rows of the small operand that a thread reads."""

    @abstractmethod
    def row(self, number: Index) -> Index:
        """Return the row of the small operand that a thread reads as its number ``number``."""

    @abstractmethod
    def declare(self) -> list[str]:
        """Print the declaration of the sums, all zero."""

    @abstractmethod
    def run(self, held: str, small: str, number: Index, run: Index) -> list[str]:
        """Print the products of one run of terms, the thread's run ``number``.

        In the array ``small`` it is run ``run``.
        """

    @abstractmethod
    def fold(self, slab: str, place: Place) -> list[str]:
        """Print how the sums of a warp are stored to the shared memory at ``slab``."""

    @property
    def sum_kind(self) -> str:
        """The C type of the sums."""
        return SUM_TYPES[sum_dtype(self.tile.thin.product)]

    @property
    def kind(self) -> str:
        """The C type of words of the large operand."""
        return "u32" if self.pairs else C_TYPES[self.tile.thin.large.dtype]

    @property
    def small_kind(self) -> str:
        """The C type of words of the small operand."""
        return "u32" if self.small_pairs else C_TYPES[self.tile.thin.small.dtype]

    @property
    def held(self) -> int:
        """Words of the large operand in a step."""
        return self.tile.own[0] * self.tile.own[1] // (1 + self.pairs)

    @property
    def small_held(self) -> int:
        """Words of the small operand in one run of all rows."""
        return self.rows * self.tile.run // (1 + self.small_pairs)

    def word(self, column: Index, term: Index) -> Index:
        """Return the place of the word with a thread's column and term of the large operand."""
        return self.tile.register(column, term) // (1 + self.pairs)

    def small_word(self, row: Index, run: Index, term: Index) -> Index:
        """Return the place of the word with a thread's row, run and term of the small operand."""
        return ((run * self.rows + row) * self.tile.run + term) // (1 + self.small_pairs)


@dataclass(frozen=True)
class Place:
    """The place of a block's sums in shared memory: one slab for each warp along the depth."""

    tile: ThinTile
    bytes: int

    def address(self, slab: str, row: Index, column: Index) -> str:
        """Return C text of the address of a warp's own sum at (row, column) of the block."""
        offset = (self.tile.part * self.tile.thin.few + row) * self.tile.columns + column
        return f"{slab} + {offset * self.bytes}"

    @property
    def part_bytes(self) -> int:
        """Bytes of one slab."""
        return self.tile.thin.few * self.tile.columns * self.bytes

    @property
    def size(self) -> int:
        """Bytes of all slabs."""
        return self.tile.warps[1] * self.part_bytes


@dataclass(frozen=True)
class MultiplyAdds(ThinMultiply):
    """Products by ordinary multiply-adds; the lanes along the depth add up by shuffles."""

    @property
    def pairs(self) -> bool:
        """True if elements are of a type that comes in pairs, and at least pairs are read."""
        return self._comes_in_pairs and self.tile.thin.large_vector % 2 == 0

    @property
    def small_pairs(self) -> bool:
        """True if words are pairs, which need rows that begin at even terms: in shared memory they
        do, in global memory where vectors are even."""
        aligned = (
            self.tile.values["small_operand"] == "shared" or self.tile.thin.small_vector % 2 == 0
        )
        return self._comes_in_pairs and self.tile.run % 2 == 0 and aligned

    @property
    def _comes_in_pairs(self) -> bool:
        return self.tile.thin.large.dtype in MMA_TYPES

    @property
    def rows(self) -> int:
        """Rows of the small operand: each thread reads all."""
        return self.tile.thin.few

    def row(self, number: Index) -> Index:
        """Return ``number``, for rows keep their order."""
        return self.tile.thin.nearest_row(number, 0)

    def declare(self) -> list[str]:
        """Print the declaration of the sums, row after row."""
        return [f"{self.sum_kind} sums[{self.rows * self.tile.own[0]}] = {{}};"]

    def run(self, held: str, small: str, number: Index, run: Index) -> list[str]:
        """Print the products of a run: vector after vector of the large operand by all rows."""
        tile, rows = self.tile, self.rows
        wide, deep = tile.vector

        def row(at: tuple[Index, ...]) -> list[str]:
            place = self.small_word(at[0], run, Index())
            return self._numbers("x", at[0] * tile.run, small, place, tile.run, self.small_pairs)

        def vector(at: tuple[Index, ...]) -> list[str]:
            column, term = at[0] * wide, at[1] * deep
            place = self.word(column, number * tile.run + term)
            count = max(tile.vector)
            return [
                f"{self.sum_kind} w[{count}];",
                *self._numbers("w", Index(), held, place, count, self.pairs),
                *unrolled(repeat(rows, wide, deep), 0, lambda i: product(column, term, *i), "p"),
            ]

        def product(column: Index, term: Index, r: Index, c: Index, e: Index) -> list[str]:
            total = f"sums[{(r * tile.own[0] + column + c).text}]"
            small, large = f"x[{(r * tile.run + term + e).text}]", f"w[{(c + e).text}]"
            return [f"{total} = tw::fused({small}, {large}, {total});"]

        return [
            f"{self.sum_kind} x[{rows * tile.run}];",
            *unrolled(repeat(rows), 0, row, "y"),
            *unrolled(repeat(tile.vectors[0], tile.run // deep), 0, vector, "c"),
        ]

    def _numbers(
        self, to: str, first: Index, words: str, place: Index, count: int, pairs: bool
    ) -> list[str]:
        """Print how ``count`` elements, from the word at ``place`` on, become the sums' type."""
        if not pairs:
            return [
                f"{to}[{(first + i).text}] = {self._converted(f'{words}[{(place + i).text}]')};"
                for i in range(count)
            ]
        kind = C_TYPES[self.tile.thin.large.dtype]
        return [
            f"tw::unpack2<{kind}>({words}[{(place + i // 2).text}], "
            f"{to}[{(first + i).text}], {to}[{(first + i + 1).text}]);"
            for i in range(0, count, 2)
        ]

    def fold(self, slab: str, place: Place) -> list[str]:
        """Print shuffles that add up the lanes along the depth, and one lane's stores."""
        tile = self.tile
        count, (_, deep) = self.rows * tile.own[0], tile.lanes
        lines = []
        lanes = deep
        while lanes > 1:
            lanes //= 2
            added = f"sums[i] += tw::shuffle_xor(sums[i], {lanes});"
            lines += CUDA.loop("i", count, added, unroll=True)
        vectors = repeat(tile.vectors[0])
        store = unrolled(vectors, 0, lambda at: self._store(slab, place, at[0]), "s")
        if deep == 1:
            return [*lines, *store]
        return [*lines, *CUDA.when(f"{tile.lane[1].text} == 0", store)]

    def _store(self, slab: str, place: Place, vector: Index) -> list[str]:
        tile = self.tile
        own, column = vector * tile.vector[0], tile.column(vector)
        return [
            f"tw::store_shared({place.address(slab, index(row), column + c)}, "
            f"sums[{(own + c + row * tile.own[0]).text}]);"
            for row in range(self.rows)
            for c in range(tile.vector[0])
        ]

    def _converted(self, element: str) -> str:
        source = self.tile.thin.large.dtype
        target = sum_dtype(self.tile.thin.product)
        if dtype(source).bytes == dtype(target).bytes:
            return element
        return f"tw::to_float({element})" if target == "float32" else f"({self.sum_kind}){element}"
