"""Extents and resources of Hopper schedules, for a single one or for a whole population.

A method takes decisions by name, numbers or arrays alike, and returns what it computes of them
elementwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.segment_list import list_bytes
from tilewright.spaces.cuda.blocks.segments import drawn_row_tiles, most_rows, segments_of
from tilewright.spaces.cuda.hopper.fetched import fetched_of
from tilewright.spaces.cuda.hopper.storing.store import CHUNK
from tilewright.spaces.cuda.hopper.tile import BLOCK, WIDEST_SWIZZLE
from tilewright.spaces.cuda.warpgroups import GROUP, launch_registers

TILE = ("block_m", "block_n", "swap_ab")
"""Decisions that say how large a tile of the output is."""
CLUSTERS = {"1x1": (1, 1), "2x1": (2, 1), "1x2": (1, 2)}
"""Tiles per cluster along m and n, by the values of the decision ``cluster``."""

SKEWED = 3
"""Segments may be so many times longer than the longest of a table drawn at random."""

SPARE_REGISTERS, SPARE_FOR_EPILOGUE = 40, 8
"""Registers of a consumer thread beside its sums, and further ones where there is an epilogue:
measured on hundreds of kernels, the least that lets them all but one compile without spills."""


def group_registers(consumers: int, producer_registers: int, residency: int = 1) -> int:
    """Return the register limit of a consumer thread.

    With a producer warpgroup: the launch pool less the ``producer_registers`` that each of its
    threads keeps, shared by the consumers. With a single producer warp (0): the launch limit.
    """
    if not producer_registers:
        return launch_registers(consumers * GROUP + 32, residency)
    groups = consumers + 1
    pool = launch_registers(groups * GROUP) * groups
    return (pool - producer_registers) // consumers // 8 * 8


@dataclass(frozen=True)
class HopperSizes:
    """Extents and resources of schedules of ``product``, from their decisions."""

    product: Tiled

    @property
    def element(self) -> int:
        """Bytes of an element of the operands."""
        return self.product.left.element.bytes

    @property
    def spare(self) -> int:
        """Registers that a consumer thread needs beside its results."""
        return SPARE_REGISTERS + self.product.is_fused * SPARE_FOR_EPILOGUE

    def block(self, c: Any) -> tuple[Any, Any]:
        """Return rows and columns of the output in a tile."""
        m, n, swapped = c["block_m"], c["block_n"], c["swap_ab"]
        return np.where(swapped, n, m), np.where(swapped, m, n)

    def tiles(self, c: Any) -> Any:
        """Return the number of tiles of all products of a batch."""
        return self.tiles_of_one(c) * self.product.batches

    def tiles_of_one(self, c: Any) -> Any:
        """Return the number of tiles of one product."""
        rows, columns = self.shape(c)
        return rows * columns

    def shape(self, c: Any) -> tuple[Any, Any]:
        """Return the number of tiles along the output's rows and columns."""
        rows, columns = self.block(c)
        return drawn_row_tiles(self.product, rows), ceil_div(self.product.columns, columns)

    def cluster(self, c: Any) -> tuple[Any, Any]:
        """Return the tiles of a cluster along m and n."""
        m, n = 1 + (c["cluster"] == "2x1"), 1 + (c["cluster"] == "1x2")
        return m, n

    def filled(self, c: Any) -> Any:
        """Return the fraction of tiles along n that is loaded and multiplied; 1 if none are
        trimmed."""
        part = c.get("tail_rows", 0 * c["block_n"])
        rows = drawn_row_tiles(self.product, np.maximum(part, 1)) * part
        whole = drawn_row_tiles(self.product, c["block_n"]) * c["block_n"]
        return np.where(part > 0, rows / whole, 1.0)

    def sides(self, c: Any) -> tuple[Any, Any]:
        """Return extents of the product along m and n; for segments, the most that is likely."""
        columns, swapped = self.product.columns, c["swap_ab"]
        rows = self.product.rows
        if segments_of(self.product):
            rows = min(SKEWED * most_rows(self.product), rows)
        return np.where(swapped, columns, rows), np.where(swapped, rows, columns)

    def row_blocks(self, c: Any) -> Any:
        """Return the blocks of 64 rows along m that one warpgroup computes."""
        sharing = np.where(c["schedule"] == "pingpong", 1, c["consumers"])
        return c["block_m"] // BLOCK // sharing

    def sums(self, c: Any) -> Any:
        """Return the number of sums that each consumer thread holds."""
        return self.row_blocks(c) * c["block_n"] // 2

    def results(self, c: Any) -> Any:
        """Return the number of sums, twice if they are kept apart from those of wgmma."""
        apart = c["promotion_interval"] > 0 if promotes(self.product) else 0
        return self.sums(c) * (1 + apart)

    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""
        return c["consumers"] * GROUP + np.where(c["producer_registers"] > 0, GROUP, 32)

    def launch_registers(self, c: Any) -> Any:
        """Return the registers that each thread has at launch."""
        return np.vectorize(launch_registers, otypes=[np.int64])(
            self.threads(c), c["blocks_per_sm"]
        )

    def group_registers(self, c: Any) -> Any:
        """Return the registers of a consumer thread; see :func:`group_registers`."""
        return np.vectorize(group_registers, otypes=[np.int64])(
            c["consumers"], c["producer_registers"], c["blocks_per_sm"]
        )

    def buffer_bytes(self, c: Any) -> Any:
        """Return the bytes of a staging buffer."""
        bytes_out = self.product.output.element.bytes
        most = np.where(c["swap_ab"], CHUNK, min(CHUNK, WIDEST_SWIZZLE // bytes_out))
        return BLOCK * np.gcd(c["block_n"], most) * bytes_out

    def panel(self, c: Any) -> Any:
        """Return the columns of the output that TMA stores at a time."""
        most = WIDEST_SWIZZLE // self.product.output.element.bytes
        return np.where(c["swap_ab"], min(BLOCK, most), np.gcd(c["block_n"], min(CHUNK, most)))

    def chunks(self, c: Any) -> Any:
        """Return how many chunks of a tile one warpgroup finishes, each in a staging buffer."""
        pieces = BLOCK * c["block_n"] * self.product.output.element.bytes // self.buffer_bytes(c)
        return self.row_blocks(c) * pieces

    def stage_bytes(self, c: Any) -> Any:
        """Return the bytes of a stage."""
        return (c["block_m"] + c["block_n"]) * c["depth"] * self.element

    def ring_bytes(self, c: Any) -> Any:
        """Return the shared memory of a block, in bytes, without an exchange in a cluster.

        Stages with two barriers each, staging buffers, a word for each warpgroup and perhaps a
        barrier, and the list of segments.
        """
        staging = c["consumers"] * c["store_buffers"] * self.buffer_bytes(c)
        words = c["consumers"] * (4 + 8 * (fetched_of(self.product) is not None))
        listed = list_bytes(segments_of(self.product))
        return c["stages"] * (self.stage_bytes(c) + 16) + staging + words + listed

    def exchange_bytes(self, c: Any) -> Any:
        """Return the shared memory that an exchange of sums in a cluster takes, in bytes.

        Room for the slices that other blocks send, and a barrier.
        """
        sent = 4 * c["block_m"] * (c["block_n"] // c["splits"]) * (c["splits"] - 1)
        return np.where(c["merge"] == "cluster", sent + 8, 0)

    def shared_bytes(self, c: Any) -> Any:
        """Return all shared memory of a block, in bytes."""
        return self.ring_bytes(c) + self.exchange_bytes(c)


def promotes(product: Tiled) -> bool:
    """Return true if sums can be kept apart from wgmma's, which lose bits: for float8."""
    return product.left.element.bytes == 1
