"""Extents and resources of schedules on windows: tiles, shared memory, registers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.blocks.sizes import ALIGNMENT, BlockSizes
from tilewright.spaces.cuda.mma.accumulators import slab_bytes
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.windows.image import Image

OFFSET_BYTES = 4
"""Bytes of an entry of the table of terms."""


@dataclass(frozen=True)
class WindowSizes(BlockSizes):
    """Sizes of blocks that hold windows of an :class:`Image` in shared memory.

    There are windows, or sums on their way to the output; then the whole depth of the right
    factor's columns, and the table of the terms' places.
    """

    @cached_property
    def image(self) -> Image:
        """The left factor with its borders."""
        return Image(self.product)  # type: ignore[arg-type]

    @property
    def depth(self) -> int:
        """Places of terms, in whole fragments."""
        return int(round_up(self.image.runs.terms, FRAGMENT))

    @property
    def element(self) -> int:
        """Bytes of an element of both factors."""
        return self.product.left.element.bytes

    def block(self, c: Any) -> tuple[Any, Any]:
        """Return rows and columns of a tile."""
        return c["warp_rows"] * c["tile_rows"], c["warp_columns"] * c["tile_columns"]

    def tiles(self, c: Any) -> tuple[Any, Any]:
        """Return the tiles along rows and columns."""
        rows, columns = self.block(c)
        return ceil_div(self.product.rows, rows), ceil_div(self.product.columns, columns)

    def blocks(self, c: Any) -> Any:
        """Return the blocks of the launch along rows."""
        return ceil_div(self.tiles(c)[0], c["coarsening"])

    def vectors(self, c: Any) -> Any:
        """Return the vectors of a window."""
        return each(self.image, self.block(c)[0])

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector of the image."""
        return self.image.vector * self.element

    @property
    def asynchronous(self) -> bool:
        """True if ``cp.async`` can copy such vectors."""
        return self.vector_bytes >= 4

    def buffers(self, c: Any) -> Any:
        """Return the windows in shared memory: two if a block has several tiles and can copy
        ahead."""
        return 1 + (c["coarsening"] > 1) * self.asynchronous

    def window_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a window, or of all warps' sums."""
        window = self.vectors(c) * self.vector_bytes
        warps = c["warp_rows"] * c["warp_columns"]
        slabs = (c["store_path"] == "shared") * warps * slab_bytes(c["tile_columns"])
        return round_up(np.maximum(window, slabs), ALIGNMENT)

    def right_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of the right factor's columns."""
        return round_up(self.block(c)[1] * self.depth * self.element, ALIGNMENT)

    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block.

        It holds windows, the right factor's columns, and the table of terms.
        """
        windows = self.buffers(c) * self.window_bytes(c)
        return windows + self.right_bytes(c) + self.depth * OFFSET_BYTES

    def sums(self, c: Any) -> Any:
        """Return the registers of a thread's sums."""
        return c["tile_rows"] * c["tile_columns"] // 32

    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers with which a thread does not spill.

        Calibrated on what NVRTC 13.5 needs.
        """
        fragments = (c["tile_rows"] + c["tile_columns"]) // FRAGMENT * 4
        rows = c["tile_rows"] // FRAGMENT * 2
        return self.sums(c) + fragments + rows + 8 * self.product.is_fused + 16


def each(image: Image, rows: Any) -> Any:
    """Return the vectors of the largest window of ``rows`` rows, element by element."""
    found, places = np.unique(rows, return_inverse=True)
    return np.array([_window(image, int(number)) for number in found])[places].reshape(
        np.shape(rows)
    )


@lru_cache(maxsize=4096)
def _window(image: Image, rows: int) -> int:
    return image.window(rows)
