"""Tiles of rows in segments, which persistent blocks find by a list in shared memory
(:mod:`spaces.cuda.blocks.segment_list`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.spaces.algebra.layout import Strided
from tilewright.spaces.cuda.blocks.gathered import Gathered
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.hopper.tile import MatrixTile, numbered
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.language.program import Operand

PARTS = (0, 16, 32, 64)
"""Rows of the parts to which tiles of segments are trimmed; 0 for tiles that stay whole."""


@dataclass(frozen=True)
class SegmentTile(MatrixTile):
    """Tiles of one of ``count`` matrices, ``apart`` elements apart: that of the block's
    ``segment``."""

    count: int
    apart: int

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The map of one load, with a further dimension for the matrix."""
        return numbered(super().tensor_map, [(self.count, self.apart * self.operand.element.bytes)])

    @property
    def _matrix(self) -> tuple[str, str]:
        return "3d", ", segment"


@dataclass(frozen=True)
class TrimmedTile(MatrixTile):
    """Tiles of rows of a segment, loaded and multiplied in parts of ``part`` rows.

    Only the first ``parts`` (a C variable) of them have rows; the others are left out.
    """

    part: int

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The map of one load: a part."""
        whole = super().tensor_map
        return replace(whole, box=(whole.box[0], self.part))

    def count(self) -> list[str]:
        """Print the declaration of ``parts`` for the tile from ``first_row`` to ``end_row``."""
        return [f"const int parts = (end_row - first_row + {self.part - 1}) / {self.part};"]

    @property
    def part_bytes(self) -> int:
        """Bytes of a part."""
        return self.part * self.depth_bytes

    def load(
        self, to: str, tensor_map: str, barrier: str, start: str, depth: str, priority: str = ""
    ) -> list[str]:
        """Print how one thread loads the parts of a tile; sharers, numbered ``rank``, in turn."""
        place, at = f"{to} + part * {self.part_bytes}", f"{depth}, {start} + part * {self.part}"
        at += f", {priority}" if priority else ""
        call = f"tma_load_2d({place}, &{tensor_map}, {barrier}, {at})"
        if self.sharers > 1:
            everybody = (1 << self.sharers) - 1
            call = f"tma_multicast_2d({place}, &{tensor_map}, {barrier}, {everybody}, {at})"
        first = "(int)rank" if self.sharers > 1 else "0"
        return [
            "#pragma unroll 1",
            f"for (int part = {first}; part < parts; part += {self.sharers}) tw::{call};",
        ]


def trims_of(product: Tiled) -> bool:
    """Return true if tiles can be trimmed: rows come in segments and run deep in memory."""
    return isinstance(product, ImplicitProduct) and bool(
        product.view.segments and product.gathered[0].deep
    )


def segment_tile(product: ImplicitProduct, common: tuple[Operand, int, int, int]) -> SegmentTile:
    """Return the tiles of the right factor; ``common`` are the fields of :class:`OperandTile`."""
    gathered, matrix, apart = _matrices(product)
    assert product.view.segments is not None
    assert matrix is not None
    return SegmentTile(*common, matrix, gathered.deep, product.view.segments.count, apart)


def why_no_segment(product: ImplicitProduct) -> str | None:
    """Return why TMA cannot load the matrix of a segment, in words; None if it can."""
    operand, (gathered, matrix, apart) = product.right, _matrices(product)
    size = operand.element.bytes
    if matrix is None:
        return f"{operand.name} has windows, and rows come in segments"
    if not gathered.deep and size != 2:
        return f"{operand.name} is {operand.dtype} and does not run along the depth in memory"
    for distance in (matrix.strides[0], apart):
        if distance * size % 16 or distance == 0:
            return (
                f"{operand.name} has {distance * size} bytes a row or matrix; allowed: 16, 32, ..."
            )
    return None


def _matrices(product: ImplicitProduct) -> tuple[Gathered, Strided | None, int]:
    """Return the right factor, the layout of one of its matrices, and the elements between two."""
    gathered, (segment,) = product.gathered[1], product.view.batch
    return gathered, gathered.strided, gathered.place.offset.coefficient(segment.name)
