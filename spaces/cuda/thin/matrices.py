"""Thin products by ``mma.sync``, whose operands come as vectors straight from memory.

The columns of the large operand are the rows of the instruction's first matrix: any order of
columns and of terms is as good as another, so vectors need no shuffling, and the eight columns of
the second matrix are the rows of the small operand. Transposed, the small operand is the first
matrix, half of it zeros if it has no more than eight rows, and tiles of the large one may be as
narrow as the second matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.thin.multiply import Place, ThinMultiply
from tilewright.spaces.cuda.thin.product import FRAGMENT, MMA_TYPES


@dataclass(frozen=True)
class MatrixInstructions(ThinMultiply):
    """Products by ``mma.sync`` with the large operand as the first matrix.

    Two columns of a thread and four neighbouring terms are its part of one instruction.
    """

    @property
    def pairs(self) -> bool:
        """True: the instruction takes pairs."""
        return True

    @property
    def small_pairs(self) -> bool:
        """True: the instruction takes pairs."""
        return True

    @property
    def rows(self) -> int:
        """Rows of the small operand that a lane reads: one for each instruction."""
        return int(ceil_div(self.tile.thin.few, FRAGMENT))

    def row(self, number: Index) -> Index:
        """Return the row that the lane reads as its number ``number``.

        Lanes for which there is none read the last row; their results are not used.
        """
        thin, row = self.tile.thin, self.tile.lane[0] + number * FRAGMENT
        most = thin.few if number.value is None else number.value * FRAGMENT + FRAGMENT - 1
        return thin.nearest_row(row, most)

    def declare(self) -> list[str]:
        """Print the declaration of the sums, four for each instruction."""
        return [f"float sums[{self._fragments * self.rows}][4] = {{}};"]

    @property
    def _fragments(self) -> int:
        """Pairs of a thread's columns."""
        return self.tile.own[0] // 2

    def run(self, held: str, small: str, number: Index, run: Index) -> list[str]:
        """Print the products of a run, four terms after the other."""

        def quad(indices: tuple[Index, ...]) -> list[str]:
            def fragment(at: tuple[Index, ...]) -> list[str]:
                return self._multiply(held, small, number, run, at[0], indices[0] * 4)

            return unrolled(repeat(self._fragments), 0, fragment, "f")

        return unrolled(repeat(self.tile.run // 4), 0, quad, "q")

    def _multiply(
        self, held: str, small: str, number: Index, run: Index, f: Index, e: Index
    ) -> list[str]:
        """Print the products of four terms, from ``e`` on, of fragment ``f``."""
        kind, half = MMA_TYPES[self.tile.thin.large.dtype], self._fragments
        pairs = [
            self._pair(held, f + column, number, e + t) for t in (0, 2) for column in (0, half)
        ]
        lines = [f"const u32 a[4] = {{{', '.join(pairs)}}};"]
        for row in range(self.rows):
            b = [f"{small}[{self.small_word(index(row), run, e + t).text}]" for t in (0, 2)]
            total = f"sums[{(f * self.rows + row).text}]"
            lines += [
                "{",
                f"  const u32 b[2] = {{{', '.join(b)}}};",
                f"  tw::mma_m16n8k16_f32_{kind}_{kind}({total}, a, b);",
                "}",
            ]
        return lines

    def _pair(self, held: str, column: Index, number: Index, e: Index) -> str:
        """Return C text of two neighbouring terms of a thread's column, in one register."""
        tile = self.tile
        if tile.by_rows:
            return f"{held}[{((column * tile.run + e) // 2).text}]"
        term = number * tile.run + e
        if tile.thin.large_runs_deep:
            return f"{held}[{self.word(column, term).text}]"
        # words hold neighbouring columns of one term: even ones are low halves
        words = [f"{held}[{self.word(column, term + t).text}]" for t in (0, 1)]
        low = f"({words[0]} & 0xffffu) | {words[1]} << 16"
        high = f"{words[0]} >> 16 | ({words[1]} & 0xffff0000u)"
        return f"({(column % 2).text} ? {high} : {low})"

    def fold(self, slab: str, place: Place) -> list[str]:
        """Print how each lane stores its results that are rows of the small operand."""
        few, lines = self.tile.thin.few, []
        for result, (first, most) in enumerate(self._held_rows):
            store = unrolled(
                repeat(self.tile.vectors[0]),
                0,
                partial(self._store, slab, place, result, first),
                "s",
            )
            head = "{" if most < few else f"if ({first.text} < {few}) {{"
            lines += [head, *indented(store), "}"]
        return lines

    @property
    def _held_rows(self) -> list[tuple[Index, int]]:
        """The rows of the small operand that a lane has, by result, and the last row of all
        lanes."""
        firsts = [n // 2 * FRAGMENT + n % 2 for n in range(2 * self.rows)]
        return [(self.tile.lane[1] * 2 + first, first + 6) for first in firsts]

    def _store(
        self, slab: str, place: Place, result: int, row: Index, at: tuple[Index, ...]
    ) -> list[str]:
        tile, half = self.tile, self._fragments
        lines = []
        for c in range(tile.vector[0]):
            own = at[0] * tile.vector[0] + c
            total = own % half * self.rows + result // 2
            register = own // half * 2 + result % 2
            address = place.address(slab, row, tile.column(at[0]) + c)
            lines.append(f"tw::store_shared({address}, sums[{total.text}][{register.text}]);")
        return lines


@dataclass(frozen=True)
class TransposedMatrices(MatrixInstructions):
    """Products by ``mma.sync`` with the small operand as the first matrix.

    One column of a thread and four neighbouring terms are its part of one instruction, which has
    room for as many rows of the small operand as there may be.
    """

    @property
    def _fragments(self) -> int:
        """Columns of a thread."""
        return self.tile.own[0]

    def declare(self) -> list[str]:
        """Print the declaration of the sums, four for each instruction."""
        return [f"float sums[{self._fragments}][4] = {{}};"]

    def _multiply(
        self, held: str, small: str, number: Index, run: Index, f: Index, e: Index
    ) -> list[str]:
        def word(row: int, term: int) -> str:
            """Return C text of a pair of terms of the thread's row number ``row``.

            It is zero if the thread has only one row.
            """
            if row == self.rows:
                return "0u"
            return f"{small}[{self.small_word(index(row), run, e + term).text}]"

        kind = MMA_TYPES[self.tile.thin.large.dtype]
        a = [word(row, term) for term in (0, 2) for row in range(2)]
        b = [self._pair(held, f, number, e + term) for term in (0, 2)]
        return [
            f"const u32 a[4] = {{{', '.join(a)}}};",
            f"const u32 b[2] = {{{', '.join(b)}}};",
            f"tw::mma_m16n8k16_f32_{kind}_{kind}(sums[{f.text}], a, b);",
        ]

    @property
    def _held_rows(self) -> list[tuple[Index, int]]:
        """The row of each of the lane's numbers, and the last row of all lanes."""
        firsts = [number * FRAGMENT for number in range(self.rows)]
        return [(self.tile.lane[0] + first, first + FRAGMENT - 1) for first in firsts]

    def _store(
        self, slab: str, place: Place, result: int, row: Index, at: tuple[Index, ...]
    ) -> list[str]:
        """Print the stores of a fragment's sums: the columns of two neighbouring lanes."""
        tile, lines = self.tile, []
        for c in range(tile.vector[0]):
            total = at[0] * tile.vector[0] + c
            for side in range(2):
                column = tile.column(at[0], tile.lane[1] * 2 + side) + c
                register = result * 2 + side
                lines.append(
                    f"tw::store_shared({place.address(slab, row, column)}, "
                    f"sums[{total.text}][{register}]);"
                )
        return lines
