"""What schedules of windows in shared memory take: tiles, shared memory, registers."""

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
"""Of an entry of the table of terms."""


@dataclass(frozen=True)
class WindowSizes(BlockSizes):
    """Of blocks that hold windows of an :class:`Image` in shared memory, or sums on their way out;
    then the whole depth of the right factor's columns, and the table of where terms are."""

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
        """Rows and columns of a tile."""
        return c["warp_rows"] * c["tile_rows"], c["warp_columns"] * c["tile_columns"]

    def tiles(self, c: Any) -> tuple[Any, Any]:
        """How many along rows and columns."""
        rows, columns = self.block(c)
        return ceil_div(self.product.rows, rows), ceil_div(self.product.columns, columns)

    def blocks(self, c: Any) -> Any:
        """How many are launched along rows."""
        return ceil_div(self.tiles(c)[0], c["coarsening"])

    def vectors(self, c: Any) -> Any:
        """Those of a window."""
        return each(self.image, self.block(c)[0])

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector of the image."""
        return self.image.vector * self.element

    @property
    def asynchronous(self) -> bool:
        """Whether ``cp.async`` can copy such vectors."""
        return self.vector_bytes >= 4

    def buffers(self, c: Any) -> Any:
        """Windows in shared memory: two, of which one is filled, if a block has several tiles."""
        return 1 + (c["coarsening"] > 1) * self.asynchronous

    def window_bytes(self, c: Any) -> Any:
        """Shared memory of a window, or of all warps' sums."""
        window = self.vectors(c) * self.vector_bytes
        warps = c["warp_rows"] * c["warp_columns"]
        slabs = (c["store_path"] == "shared") * warps * slab_bytes(c["tile_columns"])
        return round_up(np.maximum(window, slabs), ALIGNMENT)

    def right_bytes(self, c: Any) -> Any:
        """Shared memory of the right factor's columns."""
        return round_up(self.block(c)[1] * self.depth * self.element, ALIGNMENT)

    def shared_bytes(self, c: Any) -> Any:
        """Bytes of shared memory of a block: windows, the right factor's columns, the table of
        terms."""
        windows = self.buffers(c) * self.window_bytes(c)
        return windows + self.right_bytes(c) + self.depth * OFFSET_BYTES

    def sums(self, c: Any) -> Any:
        """Registers of a thread's sums."""
        return c["tile_rows"] * c["tile_columns"] // 32

    def registers(self, c: Any) -> Any:
        """The least 32-bit registers that a thread can do with. Calibrated on what NVRTC 13.5 needs
        not to spill."""
        fragments = (c["tile_rows"] + c["tile_columns"]) // FRAGMENT * 4
        rows = c["tile_rows"] // FRAGMENT * 2
        return self.sums(c) + fragments + rows + 8 * self.product.is_fused + 16


def each(image: Image, rows: Any) -> Any:
    """Vectors of the largest window of so many rows, element by element."""
    found, places = np.unique(rows, return_inverse=True)
    return np.array([_window(image, int(number)) for number in found])[places].reshape(
        np.shape(rows)
    )


@lru_cache(maxsize=4096)
def _window(image: Image, rows: int) -> int:
    return image.window(rows)
