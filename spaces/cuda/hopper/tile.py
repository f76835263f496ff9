"""One operand of a Hopper product in shared memory: how TMA loads it, where wgmma finds it.

A tile has ``extent`` rows (of the left operand, say, or columns of the right one) of one step of
depth. Where the operand runs deep in memory, the tile is cut into slabs as deep as the swizzle, and
each row is one swizzled row of shared memory in each of them. Where it runs along the rows, the
tile is cut into panels as wide as the swizzle, and each holds one swizzled row for every term.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import gcd

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Strided
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.product import Numbering, Product

ATOM = 8
"""Swizzled rows after which the pattern of a swizzle repeats."""
STEP_BYTES = 32
"""Bytes of depth that one wgmma multiplies."""
WIDEST_SWIZZLE = 128
BLOCK = 64
"""Rows of the output that one wgmma computes."""
MOST_NUMBERS = 2
"""The most dimensions of a tensor map that number the matrices of a batch."""
ROWS = 1
"""The dimension of a matrix' tensor map that is its rows."""
MOST_WRITTEN_OUT = 4
"""The most panels that are loaded without a loop: more need too many registers."""


def why_no_tensor_map(operand: Array) -> str | None:
    """Return why TMA cannot read or write ``operand``, in words; None if it can.

    The operand is a matrix or a batch of them.
    """
    pitches = (operand.strides[d] * operand.element.bytes for d in reversed(operand.order[:-1]))
    wrong = next((pitch for pitch in pitches if pitch % 16), None)
    if wrong is None:
        return None
    return (
        f"rows of {operand.name} are {wrong} bytes apart in memory; "
        "TMA needs a multiple of 16 bytes"
    )


def matrix_map(
    product: Product, operand: Operand, axes: tuple[str, str], box: tuple[int, int], swizzle: int
) -> TensorMapSpec:
    """Return the map of an operand with ``box`` elements along ``axes``, both (fast, slow).

    The matrices of a batch lie along further dimensions.
    """
    extents, size = product.whole.extents, operand.element.bytes
    spec = TensorMapSpec(
        operand.name,
        operand.dtype,
        (extents[axes[0]], extents[axes[1]]),
        (operand.stride(axes[1]) * size,),
        box,
        swizzle,
        open=axes.index(product.row) if product.is_open and product.row in axes else None,
    )
    if not product.batch:
        return spec
    one = Numbering(Index(), 1, extents[axes[1]] * operand.stride(axes[1]))
    numbers = product.numbering(operand, Index()) or [one]
    return numbered(spec, [(n.count, n.step * size) for n in numbers])


def numbered(spec: TensorMapSpec, matrices: Sequence[tuple[int, int]]) -> TensorMapSpec:
    """Return the map of one matrix with further dimensions, a (count, bytes apart) for each."""
    return replace(
        spec,
        dims=(*spec.dims, *(count for count, _ in matrices)),
        strides=(*spec.strides, *(apart for _, apart in matrices)),
        box=(*spec.box, *[1] * len(matrices)),
    )


def matrix_of(product: Tiled, operand: Operand | None = None) -> tuple[str, str]:
    """Return the rank of an operand's map in the names of TMA's calls, and their last arguments.

    These arguments choose the matrix of product ``number``, a C variable. The operand is by default
    the output.
    """
    if isinstance(product, ImplicitProduct) or not product.batch:
        return "2d", ""
    operand = operand or product.output
    numbers = product.numbering(operand, index("number", product.batches))
    places = [n.place.text for n in numbers] or [Index().text]
    return f"{2 + len(places)}d", "".join(f", {place}" for place in places)


@dataclass(frozen=True)
class OperandTile(ABC):
    """Tiles of ``extent`` elements along rows or columns and ``depth_bytes`` along the depth.

    ``sharers`` blocks of a cluster need the same tile: each loads its share of it for all.
    """

    operand: Array
    extent: int
    depth_bytes: int
    sharers: int

    @property
    @abstractmethod
    def runs_deep(self) -> bool:
        """True if neighbours in memory are terms of one sum."""

    @property
    def terms(self) -> int:
        """Elements along the depth."""
        return self.depth_bytes // self.operand.element.bytes

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return self.extent * self.depth_bytes

    @property
    def swizzle(self) -> int:
        """Bytes of a swizzled row."""
        if self.runs_deep:
            return min(self.depth_bytes, WIDEST_SWIZZLE)
        return gcd(self.extent * self.operand.element.bytes, WIDEST_SWIZZLE)

    @property
    def panel(self) -> int:
        """Elements of a panel along rows or columns; all of them where the operand runs deep."""
        return self.extent if self.runs_deep else self.swizzle // self.operand.element.bytes

    @property
    def panel_bytes(self) -> int:
        """Bytes of a panel."""
        return self.panel * self.depth_bytes

    @property
    def slab_bytes(self) -> int:
        """Bytes of a slab."""
        return self.extent * self.swizzle

    @property
    @abstractmethod
    def tensor_map(self) -> TensorMapSpec:
        """The map of one load: a panel, or one sharer's share of it."""

    @property
    def further_maps(self) -> dict[str, TensorMapSpec]:
        """The maps of further loads, by the names that :meth:`load` reads besides."""
        return {}

    @property
    def _matrix(self) -> tuple[str, str]:
        """The operand's rank and matrix, see :func:`matrix_of`."""
        return "2d", ""

    @property
    def _slow_rows(self) -> int:
        """Swizzled rows of a panel."""
        return self.extent if self.runs_deep else self.terms

    def load(
        self, to: str, tensor_map: str, barrier: str, start: str, depth: str, priority: str = ""
    ) -> list[str]:
        """Print how one thread loads the tile at (start, depth) to the address ``to``.

        In a batch, that is the tile of the product ``number``. ``priority`` names the L2 eviction
        policy, if there is one. Sharers, numbered ``rank``, load equally many rows each and
        multicast them to all.
        """
        share = self._slow_rows // self.sharers
        offset, ahead = "", ""
        if self.sharers > 1:
            offset, ahead = f" + rank * {share * self.swizzle}", f" + (int)rank * {share}"
        rank, matrix = self._matrix
        everybody = (1 << self.sharers) - 1
        last = f"{matrix}, {priority}" if priority else matrix
        call = f"tma_multicast_{rank}({{}}, &{tensor_map}, {barrier}, {everybody}, {{}}{last})"
        if self.sharers == 1:
            call = f"tma_load_{rank}({{}}, &{tensor_map}, {barrier}, {{}}{last})"

        def line(panel: tuple[object, ...]) -> list[str]:
            number = index(panel[0])  # type: ignore[arg-type]
            place, along, term = index(to) + number * apart, index(start), index(depth)
            if self.runs_deep:
                term += number * (self.swizzle // self.operand.element.bytes)
            else:
                along += number * self.panel
            return [
                f"tw::{call.format(place.text + offset, self._place(along, ahead, term.text))};"
            ]

        apart = self.slab_bytes if self.runs_deep else self.panel_bytes
        count = self.bytes // apart
        return repeat(count).emit(
            0,
            line,
            prefix=f"{tensor_map}_",
            unroll=True if count <= MOST_WRITTEN_OUT else 1,
            integer="int",
            language="cuda",
        )

    def _place(self, along: Index, ahead: str, depth: str) -> str:
        """Return C text of the coordinates of a panel at ``along`` the rows (or columns).

        ``ahead``, a sharer's offset, is added along the panel's slow rows.
        """
        if self.runs_deep:
            return f"{depth}, {along.text}{ahead}"
        return f"{along.text}, {depth}{ahead}"

    def descriptor(self, address: str) -> str:
        """Return C text of the wgmma descriptor of the tile, or of a block, at ``address``."""
        leading = 16 if self.runs_deep else self.panel_bytes
        stride = ATOM * self.swizzle
        return f"tw::wgmma_descriptor<{self.swizzle}>({address}, {leading}, {stride})"

    @property
    def block_bytes(self) -> int:
        """Bytes between blocks of :data:`BLOCK` rows or columns."""
        return BLOCK * (self.swizzle if self.runs_deep else self.depth_bytes)

    def part_at(self, number: Index) -> Index:
        """Return the offset in bytes of the part of the tile that wgmma ``number`` reads."""
        if not self.runs_deep:
            return number * (STEP_BYTES // self.operand.element.bytes * self.swizzle)
        if self.depth_bytes == self.swizzle:
            return number * STEP_BYTES
        parts = self.swizzle // STEP_BYTES
        return number // parts * self.slab_bytes + number % parts * STEP_BYTES


@dataclass(frozen=True)
class ProductTile(OperandTile):
    """Tiles of an operand of ``product``, along its ``axis``."""

    product: Product
    axis: str

    @property
    def runs_deep(self) -> bool:
        """True if the depth has stride 1."""
        return self._operand.stride(self.product.depth) == 1

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The map of one load: a panel, or one sharer's share of it."""
        depth = self.product.depth
        axes = (depth, self.axis) if self.runs_deep else (self.axis, depth)
        box = (self.swizzle // self.operand.element.bytes, self._slow_rows // self.sharers)
        return matrix_map(self.product, self._operand, axes, box, self.swizzle)

    @property
    def _matrix(self) -> tuple[str, str]:
        return matrix_of(self.product, self._operand)

    @property
    def _operand(self) -> Operand:
        return self.product.left if self.operand is self.product.left else self.product.right


@dataclass(frozen=True)
class MatrixTile(OperandTile):
    """Tiles of a factor that is a ``matrix``, whose last axis has stride 1.

    That axis is the depth if the factor is ``deep``, else the one along rows (or columns).
    """

    matrix: Strided
    deep: bool
    is_open: bool = field(default=False, kw_only=True)
    """True if calls give the rows, of a matrix that is deep."""

    @property
    def runs_deep(self) -> bool:
        """True if the depth has stride 1."""
        return self.deep

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The map of one load: a panel, or one sharer's share of it."""
        size = self.operand.element.bytes
        return TensorMapSpec(
            self.operand.name,
            self.operand.dtype,
            self.matrix.shape[::-1],
            (self.matrix.strides[0] * size,),
            (self.swizzle // size, self._slow_rows // self.sharers),
            self.swizzle,
            open=ROWS if self.is_open else None,
        )
