"""Staging buffers in shared memory between a warpgroup and the output.

TMA stores a buffer in whole rows of 32 to 128 bytes, which are swizzled in it, and clips what lies
outside of the output. Before, TMA may have fetched an operand with the output's layout into the
same buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Layout, row_major, swizzled
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.finish import AnyWritten, Finish, operand_name
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.hopper.images import images_of, output_map
from tilewright.spaces.cuda.hopper.tile import BLOCK, WIDEST_SWIZZLE, matrix_map, matrix_of
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.product import Product


@dataclass(frozen=True)
class StagingBuffer:
    """A buffer for 64 x ``columns`` finished sums.

    They are as many rows and columns of the output or, if ``swapped``, columns and rows. A panel of
    it has as many columns as TMA stores at a time. Lines read ``buffer``, its address, and ``row0``
    and ``column0``, the position in the output of the warpgroup's first sum; (m, n) is the position
    of the buffer's first element among these sums. It is for output ``number``.
    """

    finish: Finish
    swapped: bool
    columns: int
    fetched: Operand | None
    number: int = 0

    @property
    def written(self) -> AnyWritten:
        """The output, and what is written there."""
        return self.finish.written[self.number]

    @property
    def bytes(self) -> int:
        """Bytes of the buffer."""
        return BLOCK * self.columns * self.element_bytes

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of the output."""
        return self.written.array.element.bytes

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the output in the buffer."""
        return (self.columns, BLOCK) if self.swapped else (BLOCK, self.columns)

    @property
    def _panel(self) -> int:
        """Columns of the output that TMA stores at a time."""
        return min(self.shape[1], WIDEST_SWIZZLE // self.element_bytes)

    @cached_property
    def _layout(self) -> Layout:
        """The place in the buffer, in elements, of (row, column) of the output."""
        rows, columns = self.shape
        bits = (self._panel * self.element_bytes // 16).bit_length() - 1
        base = (16 // self.element_bytes).bit_length() - 1
        panel = swizzled(row_major(rows, self._panel), bits, base, 3)
        return row_major(1, columns // self._panel) * panel

    def address(self, row: Index, column: Index) -> str:
        """Return C text of the address of an element at (row, column) of the output."""
        return (index("buffer") + self._layout.index([row, column]) * self.element_bytes).text

    @property
    def map_name(self) -> str:
        """The name of :attr:`tensor_map` in C."""
        return f"output_map{self.number or ''}"

    @cached_property
    def tensor_map(self) -> TensorMapSpec:
        """The map by which a panel of the buffer is stored to the output."""
        made, (rows, _) = self.finish.product, self.shape
        box = (self._panel, rows)
        if isinstance(made, ImplicitProduct):
            return output_map(made, box, self._panel * self.element_bytes)
        axes = (made.column, made.row)
        written = made.written[self.number].array
        return matrix_map(made, written, axes, box, self._panel * self.element_bytes)

    @cached_property
    def fetched_map(self) -> TensorMapSpec:
        """The map by which a panel is fetched."""
        made, (rows, _) = self.finish.product, self.shape
        assert isinstance(made, Product) and self.fetched  # noqa: PT018
        axes, box = (made.column, made.row), (self._panel, rows)
        return matrix_map(made, self.fetched, axes, box, self._panel * self.element_bytes)

    def send(self, m: Index, n: Index) -> list[str]:
        """Print how one thread stores the buffer to the output."""
        made = self.finish.product
        output = made.written[self.number].array if isinstance(made, Product) else None
        rank, matrix = matrix_of(made, output)
        images = images_of(made) if isinstance(made, ImplicitProduct) else None
        run = images.columns if images and images.count > 1 else 0
        if run:
            rank = "3d"
        return [
            f"tw::tma_store_{rank}(&{self.map_name}, "
            f"{(index('buffer') + offset).text}, {at}{matrix});"
            for offset, at in self._panels(m, n, run)
        ]

    def receive(self, m: Index, n: Index, number: int) -> list[str]:
        """Print how one thread fetches an operand's elements into buffer ``number``."""
        rank, matrix = matrix_of(self.finish.product, self.fetched)
        to = index("staging") + number * self.bytes
        return [
            f"tw::tma_load_{rank}({(to + offset).text}, &fetched_map, fetched, {at}{matrix});"
            for offset, at in self._panels(m, n)
        ]

    def _panels(self, m: Index, n: Index, run: int = 0) -> Iterator[tuple[int, str]]:
        """Yield each panel's offset in the buffer, and C text of its place in the output.

        If the output has several images, each has ``run`` columns.
        """
        row, column = (n, m) if self.swapped else (m, n)
        rows, columns = self.shape
        for panel in range(columns // self._panel):
            first = index("column0") + column + panel * self._panel
            own = first % run if run else first
            at = f"(int)({own.text}), (int)({(index('row0') + row).text})"
            at += f", (int)({(first // run).text})" if run else ""
            yield panel * self._panel * rows * self.element_bytes, at

    def store_rows(self, row: Index, column: Index) -> list[str]:
        """Print how all threads store the buffer's rows before ``end_row``.

        (row, column) is its first element.
        """
        rows, columns = self.shape
        width = self.finish.vector(16 // self.element_bytes)
        wide, kind = columns // width, C_TYPES[self.written.array.dtype]
        output = operand_name(self.finish.product, self.written.array)

        def body(indices: tuple[Index, ...]) -> list[str]:
            r, c = indices[0], indices[1] * width
            at = f"{output} + {self.written.at(row + r, column + c).text}"
            return [
                f"if ({(row + r).text} < end_row && {(column + c).text} < "
                f"{self.finish.product.columns}) {{",
                f"  {kind} value[{width}];",
                f"  tw::load_shared<{width}>(value, {self.address(r, c)});",
                f"  tw::store_global<{width}>({at}, value);",
                "}",
            ]

        turns = max(1, rows * wide // (2 * BLOCK))
        mapping = repeat(turns, 1) * spatial(2 * BLOCK // wide, wide)
        return unrolled(mapping, "thread", body, "w", (rows, wide))
