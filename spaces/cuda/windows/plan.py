"""The plan of one kernel on windows in shared memory: the numbers of its code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.spaces.algebra.index import index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, swizzled_tile
from tilewright.spaces.cuda.plan import Plan, Size
from tilewright.spaces.cuda.windows.image import Image
from tilewright.spaces.cuda.windows.sizes import WindowSizes
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class WindowPlan(Plan):
    """The plan of a kernel under the decisions ``values``."""

    sizes: WindowSizes
    values: Mapping[str, Value]

    @property
    def product(self) -> ImplicitProduct:
        """The product that is computed."""
        assert isinstance(self.sizes.product, ImplicitProduct)
        return self.sizes.product

    @property
    def image(self) -> Image:
        """The left factor with its borders."""
        return self.sizes.image

    threads = Size()
    blocks = Size()
    buffers = Size()
    window_bytes = Size()

    @property
    def tiles(self) -> tuple[int, int]:
        """Tiles along rows and columns."""
        rows, columns = self.sizes.tiles(self.values)
        return int(rows), int(columns)

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        rows, columns = self.sizes.block(self.values)
        return int(rows), int(columns)

    @property
    def warps(self) -> tuple[int, int]:
        """Warps of a block along rows and columns."""
        return self.number("warp_rows"), self.number("warp_columns")

    @property
    def fragments(self) -> tuple[int, int]:
        """Fragments of 16 rows and of 16 columns in a warp's tile."""
        return self.number("tile_rows") // FRAGMENT, self.number("tile_columns") // FRAGMENT

    @property
    def kind(self) -> str:
        """The C type of both factors' elements."""
        return C_TYPES[self.product.left.dtype]

    @property
    def right_layout(self) -> Layout:
        """The layout of the right factor's columns, (column, term)."""
        return swizzled_tile(self.block[1], self.sizes.depth, self.sizes.element)

    def first(self, row: str) -> str:
        """Return the number of the image's vector with which the window of a tile begins."""
        unit, vector = self.image.unit, self.image.vector
        return (self.image.of_row(index(row)) // unit * (unit // vector)).text
