"""Copies of an operand whose elements are gathered: those of a convolution's windows, say.

The offset of an element, and the indices that may leave the array, are sums of a part that depends
on the row (or column) and a part that depends on the depth. Each thread computes the first parts
once, for all vectors that it moves, and the second ones at each step, for all rows at once; then an
addition gives an address, and one comparison for each bounded index tells which elements are zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.blocks.copies.block_copy import BlockCopy, widest_vector
from tilewright.spaces.cuda.blocks.copies.tile_copy import (
    TileCopy,
    position_type,
    runs_deep,
    source_of,
)
from tilewright.spaces.cuda.blocks.finish import parameter_name
from tilewright.spaces.cuda.blocks.gathered import Gathered
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.blocks.segments import entry_of
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class GatherCopy(BlockCopy):
    """Copies of the factor ``gathered`` of ``product``.

    ``{name}_depth`` is the first term of the next tile. ``{name}_at[turn]`` is the part of the
    offset that belongs to a row or column of a thread, and ``{name}_at1[turn]`` and so on are those
    of each bounded index.
    """

    product: ImplicitProduct
    gathered: Gathered

    @property
    def extents(self) -> tuple[int, int]:
        """Rows (or columns) and terms, in the order of the tile."""
        width, depth = self.gathered.shape
        return (width, depth) if self.gathered.deep else (depth, width)

    @property
    def step(self) -> int:
        """Terms of a tile."""
        return self.tile[1 - self._rank]

    def start(self, slow: str, fast: str) -> list[str]:
        """Print the declarations of the first term, and of the parts of a thread's rows or
        columns."""
        corner, depth = (slow, fast) if self.gathered.deep else (fast, slow)
        tables = [f"int {table}[{self._width_turns}];" for table in self._tables("at")]

        def body(indices: tuple[Index, ...]) -> list[str]:
            (along,) = indices
            number = index(corner) + along * (1 if self.gathered.deep else self.vector)
            entry = f"{self.name}_entry"
            values = self.gathered.of_width(number, self.product.number, index(entry))
            assigned = [
                f"{table}[{self._width_turn(along).text}] = {value.text};"
                for table, value in zip(self._tables("at"), values, strict=True)
            ]
            gather = self.gathered.gather
            if gather is None:
                return assigned
            read = entry_of(gather, parameter_name(self.product, gather.table), number)
            return ["{", f"  const int {entry} = {read};", *indented(assigned), "}"]

        tabled = unrolled(self._width_mapping, THREAD, body, f"{self.name}_")
        return [f"int {self.name}_depth = {depth};", *tables, *tabled]

    def advance(self, step: str | None = None) -> list[str]:
        """Print how the copy goes on to the next tile; or by ``step`` terms, in C."""
        return [f"{self.name}_depth += {step or self.step};"]

    # -- vectors -------------------------------------------------------------------------------

    def _located(self, indices: tuple[Index, ...]) -> list[str]:
        """Print the declarations of the parts that belong to the term of a vector."""
        within = indices[1] * self.vector if self.gathered.deep else indices[0]
        term, first = f"{self.name}_term", index(f"{self.name}_depth")
        values = self.gathered.of_depth(index(term, self.gathered.shape[1]))
        return [
            f"const u32 {term} = {(first + within).text};",
            *(
                f"const int {name} = {value.text};"
                for name, value in zip(self._tables("to"), values, strict=True)
            ),
        ]

    def _address(self, indices: tuple[Index, ...]) -> str:
        turn = self._width_turn(indices[0 if self.gathered.deep else 1]).text
        return f"{self.name} + ({self.name}_at[{turn}] + {self.name}_to)"

    def _within(self, indices: tuple[Index, ...]) -> list[str]:
        turn = self._width_turn(indices[0 if self.gathered.deep else 1]).text
        pairs = zip(self._tables("at")[1:], self._tables("to")[1:], strict=True)
        return [
            f"(u32)({at}[{turn}] + {to}) < {extent}u"
            for (at, to), extent in zip(pairs, self.gathered.extents, strict=True)
        ]

    def _tables(self, kind: str) -> list[str]:
        """Return the C names of the parts ``kind`` of the offset and of each bounded index."""
        return [f"{self.name}_{kind}{i or ''}" for i in range(len(self.gathered.indices))]

    @property
    def _rank(self) -> int:
        return 0 if self.gathered.deep else 1

    @property
    def _width_turns(self) -> int:
        """The number of rows, or of vectors of columns, that one thread moves."""
        return self._turns[self._rank]

    @property
    def _width_mapping(self) -> TaskMapping:
        """The mapping from threads to their rows, or to vectors of their columns."""
        turns, rank = [1, 1], self._rank
        turns[rank] = self._width_turns
        return (repeat(*turns) * spatial(*self._thread_grid)).project((rank,))

    def _width_turn(self, along: Index) -> Index:
        return along // self._thread_grid[self._rank]


def copy_of(
    product: Tiled,
    operand: Array,
    name: str,
    tile: tuple[int, int],
    threads: int,
    shared: Layout,
    shared_dtype: str = "",
) -> BlockCopy:
    """Return the copy of a factor's tiles: of a matrix by steps, of others by gathering
    elements."""
    vector = widest_vector(tile[1], product.run(operand), operand.element.bytes)
    kind, integer = shared_dtype or operand.dtype, position_type(product)
    source = source_of(product, operand)
    moved = (name, operand.dtype, tile, threads, vector, shared, kind, integer)
    if source is not None:
        step = (
            tile[1] * source.strides[1]
            if runs_deep(product, operand)
            else tile[0] * source.strides[0]
        )
        return TileCopy(*moved, source, step)
    assert isinstance(product, ImplicitProduct)
    return GatherCopy(*moved, product, product.gathered[operand is product.right])
