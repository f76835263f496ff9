"""A warpgroup finishes sums and writes them into a buffer in shared memory.

Elements of 16 bits go by stmatrix, others by ordinary stores of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.hopper.storing.staging import StagingBuffer
from tilewright.spaces.cuda.hopper.storing.sums import GroupSums, pairs_of_warp

MATRIX = 16
"""Rows and columns that the four 8 x 8 matrices of one stmatrix cover."""


@dataclass(frozen=True)
class BufferFill:
    """The code that finishes some of ``sums`` and writes them into ``buffer``.

    An operand of the epilogue may have been fetched into the same places of the buffer before.
    Lines read ``thread``, the number in the warpgroup, and ``lane``; (m, n) is the position of the
    buffer's first element in the warpgroup's sums.
    """

    sums: GroupSums
    buffer: StagingBuffer

    def lines(self, m: Index, n: Index) -> list[str]:
        """Print how the whole buffer is filled from the sums at (m, n) on."""
        return self._matrices(m, n) if self.buffer.element_bytes == 2 else self._pairs(m, n)

    def _pairs(self, m: Index, n: Index) -> list[str]:
        def body(indices: tuple[Index, ...]) -> list[str]:
            row, column = indices[0], indices[1] * 2
            return [
                "float value[2];",
                *(self._beside(row, column) if self.sums.fetched else []),
                *self.sums.finished(m + row, n + column, 0),
                *self._store_pair(row, column),
            ]

        return unrolled(spatial(4, 1) * pairs_of_warp(self.buffer.columns), "thread", body, "f")

    def _store_pair(self, m: Index, n: Index) -> list[str]:
        address = self.buffer.address
        if not self.sums.swapped:
            return [f"tw::store_shared<2>({address(m, n)}, value);"]
        return [f"tw::store_shared({address(n + e, m)}, value[{e}]);" for e in range(2)]

    def _beside(self, m: Index, n: Index) -> list[str]:
        """Print the declaration of ``beside``, what was fetched for the pair at (m, n) of the
        buffer."""
        if not self.sums.swapped:
            return ["float beside[2];", f"tw::load_shared<2>(beside, {self.buffer.address(m, n)});"]
        loads = [f"tw::load_shared<float>({self.buffer.address(n + e, m)})" for e in range(2)]
        return [f"const float beside[2] = {{{', '.join(loads)}}};"]

    def _matrices(self, m: Index, n: Index) -> list[str]:
        """Print how elements of 16 bits are stored by stmatrix, four 8 x 8 matrices at a time."""
        kind = C_TYPES[self.buffer.written.array.dtype]
        pairs = [f"tw::pack2<{kind}>(value[{i}], value[{i + 1}])" for i in range(0, 8, 2)]

        def body(indices: tuple[Index, ...]) -> list[str]:
            first = (indices[0] * MATRIX, indices[1] * MATRIX)
            places = iter(range(0, 8, 2))

            def pair(task: tuple[Index, ...]) -> list[str]:
                at = m + first[0] + task[0], n + first[1] + task[1] * 2
                return self.sums.finished(*at, next(places))

            return [
                "float value[8];",
                *(self._fetched_matrices(first) if self.sums.fetched else []),
                *pairs_of_warp(MATRIX).emit("lane", pair, unroll=True, language="cuda"),
                f"const u32 packed[4] = {{{', '.join(pairs)}}};",
                *self._each_row(first, f"tw::stmatrix_x4{self._suffix}({{}}, packed);"),
            ]

        parts = spatial(4, 1) * repeat(1, self.buffer.columns // MATRIX)
        # braces: a loop of one turn prints no scope for its declarations
        return ["{", *unrolled(parts, "thread / 32", body, "p"), "}"]

    def _fetched_matrices(self, first: tuple[Index, Index]) -> list[str]:
        """Print the declaration of ``beside``, what was fetched for four matrices."""
        kind = C_TYPES[self.buffer.written.array.dtype]
        return [
            "u32 held[4];",
            *self._each_row(first, f"tw::ldmatrix_x4{self._suffix}(held, {{}});"),
            "float beside[8];",
            *(
                f"tw::unpack2<{kind}>(held[{i}], beside[{2 * i}], beside[{2 * i + 1}]);"
                for i in range(4)
            ),
        ]

    def _each_row(self, first: tuple[Index, Index], call: str) -> list[str]:
        """Print the ``call`` of an instruction on four matrices, one row's address per lane."""
        unit, matrix_rows = (
            ((8, 1), spatial(1, 8)) if self.sums.swapped else ((1, 8), spatial(8, 1))
        )

        def body(task: tuple[Index, ...]) -> list[str]:
            at = [f + t * u for f, t, u in zip(first, task, unit, strict=True)]
            return [call.format(self.buffer.address(*(reversed(at) if self.sums.swapped else at)))]

        addresses = spatial(1, 2) * spatial(2, 1) * matrix_rows
        return addresses.emit("lane", body, integer="int", language="cuda")

    @property
    def _suffix(self) -> str:
        """The ending of the instruction's name; transposed where n runs along the output's rows."""
        return "_trans" if self.sums.swapped else ""
