"""Matrices whose columns are the pixels of several images with channels first (NCHW).

Only the pixels of one image are neighbours in memory, so that the tensor map of such a matrix has a
further dimension for the image.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cuda.blocks.gathered import Gathered
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct
from tilewright.spaces.cuda.hopper.tile import BLOCK, ROWS, OperandTile, numbered
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.derivation.products.addresses import Address
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import extent
from tilewright.spaces.workloads.array import Array

LEAST_TILE = 16
"""Columns of the smallest tile along n."""


@dataclass(frozen=True)
class Images:
    """A matrix whose columns come in ``count`` images of ``columns`` neighbours each.

    Its ``rows`` are ``pitch`` elements apart, images ``step`` elements.
    """

    rows: int
    columns: int
    count: int
    pitch: int
    step: int

    def tensor_map(self, array: Array, box: tuple[int, int], swizzle: int) -> TensorMapSpec:
        """Return the map with ``box`` (columns, rows) of one image; 3-D if there are several."""
        size, dims = array.element.bytes, (self.columns, self.rows)
        one = TensorMapSpec(array.name, array.dtype, dims, (self.pitch * size,), box, swizzle)
        return one if self.count == 1 else numbered(one, [(self.count, self.step * size)])

    def why_no_map(self, array: Array) -> str | None:
        """Return why TMA cannot address ``array``, in words; None if it can."""
        size = array.element.bytes
        for apart in (self.pitch * size, self.step * size):
            if apart % 16:
                return f"rows of {array.name} are {apart} bytes apart; allowed: multiples of 16"
        return None

    def why_no_tile(self, factor: Array, along_columns: bool) -> str | None:
        """Return why a factor has no tiles along the product's columns (or rows), in words."""
        if factor.element.bytes != 2:
            return f"{factor.name} is {factor.dtype} and does not run deep; allowed: 2 bytes"
        least = LEAST_TILE if along_columns else BLOCK
        if self.columns % least:
            return f"{factor.name} has {self.columns} pixels in each image; needs whole {least}"
        return self.why_no_map(factor)


def _images(place: Address, rows: tuple[Part, ...], columns: tuple[Part, ...]) -> Images | None:
    """Return how a matrix at ``place`` lies in memory, if it has the form of :class:`Images`."""
    longer = [part for part in columns if part.extent > 1]
    apart = next((n for n in range(len(longer)) if place.step(longer[n:]) == 1), None)
    step = None if apart is None else place.step(longer[:apart])
    pitch = place.step(rows)
    if pitch is None or step is None or place.bounds or place.offset.constant:
        return None
    run, count = extent(tuple(longer[apart:])), extent(tuple(longer[:apart]))
    return Images(extent(rows), run, count, pitch or run, step or run * extent(rows))


@dataclass(frozen=True)
class ImageTile(OperandTile):
    """Tiles of a factor whose rows (or columns) are pixels of ``images``, its depth being slow."""

    images: Images

    @property
    def runs_deep(self) -> bool:
        """False: pixels are neighbours in memory, terms of a sum are not."""
        return False

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The map of one load: a panel, all of one image, or one sharer's share of it."""
        box = (self.panel, self._slow_rows // self.sharers)
        return self.images.tensor_map(self.operand, box, self.swizzle)

    @property
    def _matrix(self) -> tuple[str, str]:
        return "3d", ""

    def _place(self, along: Index, ahead: str, depth: str) -> str:
        own, image = along % self.images.columns, along // self.images.columns
        return f"(int)({own.text}), {depth}{ahead}, (int)({image.text})"


def images_of_factor(gathered: Gathered) -> Images | None:
    """Return how a factor lies whose rows (or columns) are pixels of images; None of others."""
    if gathered.deep or gathered.strided is not None:
        return None
    return _images(gathered.place, gathered.depth, gathered.width)


def images_of(product: ImplicitProduct) -> Images | None:
    """Return how the output lies if its columns are neighbours, at least within each image."""
    view = product.view
    written = Address(product.output.name, view.offset, (), None)
    return _images(written, view.rows, view.columns)


def output_map(product: ImplicitProduct, box: tuple[int, int], swizzle: int) -> TensorMapSpec:
    """Return the output's tensor map with ``box`` (columns, rows).

    Only for outputs that :func:`why_no_placed_output` does not refuse.
    """
    images = images_of(product)
    assert images is not None
    written = images.tensor_map(product.output, box, swizzle)
    return replace(written, open=ROWS) if product.is_open else written


def why_no_placed_output(product: ImplicitProduct) -> str | None:
    """Return why TMA cannot write the output, in words; None if it can."""
    images = images_of(product)
    if images is None:
        return f"rows of {product.output.name} are not the same distance apart everywhere"
    return images.why_no_map(product.output)
