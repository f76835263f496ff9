"""Extents and resources of chained kernels on Hopper, for one schedule or whole populations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import PANEL_BYTES, SLICE
from tilewright.spaces.cuda.chains.splits.leaving import SHARERS, row_words
from tilewright.spaces.cuda.chains.splits.splitting import shares
from tilewright.spaces.cuda.warpgroups import GROUP, launch_registers
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.tree import Expression

TERM_BYTES = 32
"""Bytes of a row, or a column, that one wgmma multiplies."""
OUTPUT_PANEL = PANEL_BYTES // 2
"""Columns of 16 bits of a panel of the output."""
SPARE_REGISTERS = 32
"""Registers of a consumer thread beside sums, scores, weights and rows.

Of about 100 kernels compiled, this number foresaw four of five that spilled, and kept one that did
not from being tried.
"""
MOVED = {2: (240, 24), 3: (160, 32), 4: (112, 24)}
"""Registers of each consumer and each producer thread once they are moved, by ``warpgroups``.

A single consumer warpgroup keeps the registers of the launch.
"""


def group_registers(warpgroups: int, residency: int) -> int:
    """Return the registers that a consumer thread may have; 0 if ``residency`` blocks leave too
    few."""
    if warpgroups == 1:
        return launch_registers((warpgroups + 1) * GROUP, residency)
    return MOVED[warpgroups][0] if residency == 1 else 0


@dataclass(frozen=True)
class ChainedSizes:
    """Extents and resources of schedules, from their decisions.

    ``chained`` is a program as :func:`~spaces.cuda.chained_hopper.fetching.tiles.tiled` returns it.
    Decisions are numbers or arrays, and so are results.
    """

    chained: Chained

    def dtype_of(self, factor: Expression) -> str:
        """Return the dtype of a factor, which is an array in place."""
        read = self.chained.in_place(factor)
        assert read
        return self.chained.program.operand[read.name].dtype

    @cached_property
    def element_bytes(self) -> int:
        """Bytes of an element of a factor, and of a weight."""
        return dtype(self.dtype_of(self.chained.left)).bytes

    @property
    def has_bytes(self) -> bool:
        """True if factors have 8 bits.

        Then the matrix of values is transposed, so that its keys run along memory
        (:mod:`spaces.cuda.chained_hopper.fetching.transposing`).
        """
        return self.element_bytes == 1

    @property
    def terms(self) -> int:
        """Terms that one wgmma multiplies."""
        return TERM_BYTES // self.element_bytes

    @property
    def panel(self) -> int:
        """Elements of a row of a panel."""
        return PANEL_BYTES // self.element_bytes

    @property
    def depth(self) -> int:
        """Terms of a score, rounded up to whole wgmma."""
        return int(round_up(self.chained.depth.extent, self.terms))

    @property
    def width(self) -> int:
        """Columns of the sums, rounded up as wgmma needs them."""
        return int(round_up(self.chained.width.extent, 8))

    @property
    def depth_panels(self) -> int:
        """Panels of a row or a key."""
        return int(ceil_div(self.chained.depth.extent, self.panel))

    @property
    def width_panels(self) -> int:
        """Panels of a row of the output, and of a row of values in 16 bits."""
        return int(ceil_div(self.chained.width.extent, OUTPUT_PANEL))

    def rows(self, c: Any) -> Any:
        """Return the rows of a tile."""
        return c["warpgroups"] * SLICE

    def row_tiles(self, c: Any) -> Any:
        """Return the tiles of a head."""
        return ceil_div(self.chained.row_count, self.rows(c))

    def tile_count(self, c: Any) -> Any:
        """Return the tiles of all heads."""
        return self.row_tiles(c) * self.chained.batches

    def items(self, c: Any) -> Any:
        """Return the tiles times the parts that keys are split into."""
        return self.tile_count(c) * c["splits"]

    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""
        return (c["warpgroups"] + 1) * GROUP

    def registers(self, c: Any) -> Any:
        """Return the registers that a consumer thread needs.

        They hold sums, in float8 the sums of one tile as well, scores, weights that a product still
        reads, rows that stay in registers, and more (:data:`SPARE_REGISTERS`).
        """
        weights = np.where(c["overlap"], c["keys"] * self.element_bytes // 8, 0)
        rows = np.where(c["query_storage"] == "registers", self.depth * self.element_bytes // 8, 0)
        sums = self.width // 2 * (1 + self.has_bytes)
        return sums + c["keys"] // 2 + weights + rows + SPARE_REGISTERS

    def group_registers(self, c: Any) -> Any:
        """Return the registers that a consumer thread may have; 0 if blocks leave too few."""
        return np.vectorize(group_registers, otypes=[np.int64])(c["warpgroups"], c["blocks_per_sm"])

    def launch_registers(self, c: Any) -> Any:
        """Return the registers that each thread has at launch."""
        threads = (c["warpgroups"] + 1) * GROUP
        return np.vectorize(launch_registers, otypes=[np.int64])(threads, c["blocks_per_sm"])

    @property
    def region_bytes(self) -> int:
        """Bytes of shared memory of a warpgroup's rows, where its output waits to be stored."""
        return max(self.depth_panels, self.width_panels) * SLICE * PANEL_BYTES

    def sent_bytes(self, c: Any) -> Any:
        """Return the bytes that the blocks of a cluster send one warpgroup.

        It merges a share of the columns. They are, of each row, states, whether it has seen a key,
        and sums.
        """
        states = 2 * row_words(len(self.chained.scalars)) // SHARERS
        return 4 * GROUP * c["splits"] * (states + 4 * shares(self.width // 8, c["splits"]))

    @property
    def lies_along_keys(self) -> bool:
        """True if neighbours in memory of the right operand are keys."""
        read = self.chained.in_place(self.chained.right)
        assert read
        return self.chained.step(read, self.chained.depth) != 1

    def key_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a tile of keys."""
        if self.lies_along_keys:
            return ceil_div(c["keys"], self.panel) * self.depth * PANEL_BYTES
        return c["keys"] * PANEL_BYTES * self.depth_panels

    def value_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a tile of values, transposed ones in 8 bits."""
        if self.has_bytes:
            return ceil_div(c["keys"], self.panel) * self.width * PANEL_BYTES
        return c["keys"] * PANEL_BYTES * self.width_panels

    def stage_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a stage: keys and values."""
        return self.key_bytes(c) + self.value_bytes(c)

    def shared_bytes(self, c: Any) -> Any:
        """Return all shared memory of a block in bytes.

        Rows, stages, barriers of both, two tickets with theirs, and a word for each warpgroup.
        """
        buffers = c["query_buffers"] * c["warpgroups"]
        return buffers * (self.region_bytes + 16) + c["stages"] * (self.stage_bytes(c) + 32) + 56
