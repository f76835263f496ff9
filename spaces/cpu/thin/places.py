"""Where a product with few rows has its operands, packed rows and partial sums."""

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
"""Blocks of depth that are added to one sum as they are."""


@dataclass(frozen=True)
class ThinPlaces:
    """Layouts in memory under the decisions ``values``; the depth is walked in steps of ``terms``
    terms each (see ``spaces.cpu.tiles.steps``)."""

    product: Product
    values: Mapping[str, Value]
    blocks: ThinBlocking
    lanes: int
    terms: int

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory of all workers: their packed rows, then the partial sums."""
        sums = self.blocks.batch_workers * self.sums_floats
        return int(4 * (self.sums_start + sums + self.excess))

    @property
    def workers(self) -> int:
        """All workers."""
        return int(self.blocks.workers)

    @property
    def steps(self) -> int:
        """Steps of the whole depth."""
        return self.product.terms // self.terms

    @property
    def chunk_steps(self) -> int:
        """Steps of a worker."""
        return int(self.blocks.chunk_depth) // self.terms

    @property
    def block_steps(self) -> int:
        """Steps of a block of depth."""
        return int(self.blocks.block_depth) // self.terms

    @cached_property
    def left(self) -> Stream:
        """The rows as they lie."""
        return stream(self.product, self.product.left, self.terms)

    @cached_property
    def right(self) -> Stream:
        """The other operand as it lies."""
        return stream(self.product, self.product.right, self.terms)

    @property
    def packed_dtype(self) -> str:
        """Dtype of packed rows."""
        return PAIR if self.terms > 1 else "float32"

    @cached_property
    def packed_left(self) -> Strided | None:
        """Layout of a worker's share of the rows, contiguous along the depth and a little apart,
        so that they do not compete for the same cache sets."""
        if not self.values["pack_left"]:
            return None
        return row_major(self.product.rows, self.chunk_steps).padded(1, LINE)

    @property
    def left_floats(self) -> int:
        """Scratch memory of a worker's packed rows."""
        return round_up(self.packed_left.size + self.lanes, LINE) if self.packed_left else 0

    @cached_property
    def sums(self) -> Strided | None:
        """Layout of a depth worker's partial sums, where the output cannot hold them itself."""
        is_float = self.product.output.dtype == "float32"
        if self.blocks.depth_chunks == 1 and is_float and not self.is_long:
            return None
        return row_major(self.product.rows, round_up(self.product.columns, LINE)).padded(1, LINE)

    @property
    def is_long(self) -> bool:
        """Whether so many blocks of depth are added up that what rounding adds is kept."""
        return bool(self.blocks.depth_blocks > MOST_BLOCKS)

    @property
    def excess(self) -> int:
        """Floats from the partial sums to what rounding added to them; 0 if it is not kept."""
        return int(self.blocks.batch_workers * self.sums_floats) if self.is_long else 0

    @property
    def sums_start(self) -> int:
        """Where the partial sums begin in the workspace, in floats: past the packed rows."""
        return self.workers * self.left_floats

    @property
    def sums_floats(self) -> int:
        """Scratch memory of the partial sums of one product."""
        return self.sums.size * self.blocks.depth_chunks if self.sums else 0

    def packing(self, name: str, rows: int | str) -> list[str]:
        """C function ``name(p, q, depth)``: copies the terms of ``rows`` from p to q. If these are
        a C variable, it comes before the depth."""
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
