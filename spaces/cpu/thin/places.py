"""The memory of a product with few rows: operands, packed rows and partial sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.layout import Strided, row_major
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import LINE
from tilewright.spaces.cpu.thin.blocking import ThinBlocking
from tilewright.spaces.cpu.tiles.steps import PAIR, Stream, stream
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.schedule import Value
from tilewright.spaces.workloads.product import Product

MOST_BLOCKS = 1024
"""The most blocks of the depth that are added to one sum without compensation of rounding
errors."""


@dataclass(frozen=True)
class ThinPlaces:
    """The layouts in memory under the decisions ``values``; the depth is walked in steps of
    ``terms`` terms each (see ``spaces.cpu.tiles.steps``)."""

    product: Product
    values: Mapping[str, Value]
    blocks: ThinBlocking
    lanes: int
    terms: int

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the scratch memory of all workers: their packed rows, then the partial sums."""
        sums = self.blocks.batch_workers * self.sums_floats
        return int(4 * (self.sums_start + sums + self.excess))

    @property
    def workers(self) -> int:
        """The number of workers."""
        return int(self.blocks.workers)

    @property
    def steps(self) -> int:
        """The number of steps of the whole depth."""
        return self.product.terms // self.terms

    @property
    def chunk_steps(self) -> int:
        """The number of steps of a worker."""
        return int(self.blocks.chunk_depth) // self.terms

    @property
    def block_steps(self) -> int:
        """The number of steps of a block of the depth."""
        return int(self.blocks.block_depth) // self.terms

    @cached_property
    def left(self) -> Stream:
        """The left operand, read in place."""
        return stream(self.product, self.product.left, self.terms)

    @cached_property
    def right(self) -> Stream:
        """The right operand, read in place."""
        return stream(self.product, self.product.right, self.terms)

    @property
    def packed_dtype(self) -> str:
        """The type of packed rows."""
        return PAIR if self.terms > 1 else "float32"

    @cached_property
    def packed_left(self) -> Strided | None:
        """The layout of a worker's share of the rows, contiguous along the depth; None if they are
        not packed. Rows are padded, so that they do not compete for the same cache sets."""
        if not self.values["pack_left"]:
            return None
        return row_major(self.product.rows, self.chunk_steps).padded(1, LINE)

    @property
    def left_floats(self) -> int:
        """Floats of a worker's packed rows."""
        return round_up(self.packed_left.size + self.lanes, LINE) if self.packed_left else 0

    @cached_property
    def sums(self) -> Strided | None:
        """The layout of a depth worker's partial sums; None if the output holds them."""
        is_float = self.product.output.dtype == "float32"
        if self.blocks.depth_chunks == 1 and is_float and not self.is_long:
            return None
        return row_major(self.product.rows, round_up(self.product.columns, LINE)).padded(1, LINE)

    @property
    def is_long(self) -> bool:
        """True if so many blocks of the depth are added up that rounding errors are compensated."""
        return bool(self.blocks.depth_blocks > MOST_BLOCKS)

    @property
    def excess(self) -> int:
        """Floats from the partial sums to the rounding errors that are kept of them; 0 if none
        are."""
        return int(self.blocks.batch_workers * self.sums_floats) if self.is_long else 0

    @property
    def sums_start(self) -> int:
        """The start of the partial sums in the workspace, in floats: behind the packed rows."""
        return self.workers * self.left_floats

    @property
    def sums_floats(self) -> int:
        """Floats of the partial sums of one product."""
        return self.sums.size * self.blocks.depth_chunks if self.sums else 0

    def packing(self, name: str, rows: int | str) -> list[str]:
        """Return the C function ``name(p, q, depth)`` that packs the terms of ``rows`` from p to q.
        If ``rows`` is the name of a C variable, the function takes it before the depth."""
        packed, left = self.packed_left, self.left
        if packed is None:
            return []
        stride = left.strides[1]

        def vector(indices: Sequence[Index]) -> list[str]:
            i, k = indices
            place = f"p + {left.layout.emit(i, k)}"
            load = left.load(place, f"depth - {k}", k)
            if stride != 1:
                load = f"tw_gather_{left.dtype}({place}, {stride}, depth - {k})"
            return [f"tw_store_{self.packed_dtype}(q + {packed.emit(i, k)}, {load});"]

        grid = repeat(self.product.rows, ceil_div(self.chunk_steps, self.lanes))
        vectors = grid * spatial(1, self.lanes)
        given = f"long {rows}, " if isinstance(rows, str) else ""
        return [
            f"static __attribute__((noinline)) void {name}(",
            f"    const {left.c_type} *restrict p, {C_TYPES[self.packed_dtype]} *restrict q,",
            f"    {given}long depth) {{",
            *vectors.emit(0, vector, extents=(rows, "depth")),
            "}",
        ]
