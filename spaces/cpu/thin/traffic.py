"""Work and memory traffic of a thin product; names and units are those of ``spaces.quantities``.

The right operand is read tile by tile; if L1 does not hold a tile, all tiles of rows but the first
read it from L2 again. The left operand and the sums are read again for each tile and each block of
the depth, from the cache that holds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.blocked.traffic import TOTALS
from tilewright.spaces.cpu.thin.blocking import ThinBlocking
from tilewright.spaces.cpu.traffic import USABLE, footprints, rows_without_conflict, shares
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns
from tilewright.spaces.workloads.product import Product

if TYPE_CHECKING:
    from tilewright.spaces.cpu.thin.template import Thin


def thin_quantities(template: Thin, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    traffic = _Traffic(template, widened(columns))
    found = filled(
        {**traffic.executed(), **traffic.moved(), **traffic.kept(), **traffic.divided()},
        columns["tile_rows"].shape,
    )
    batches = template.product.batches
    return {name: value * (batches if name in TOTALS else 1) for name, value in found.items()}


@dataclass(frozen=True)
class _MainLoop:
    """Counts of what the innermost loops of all workers execute: ``left_bytes`` are the bytes that
    they load of the left operand, and ``updates`` the loads and stores of sums."""

    multiplies: Any
    right_loads: Any
    left_loads: Any
    left_bytes: Any
    updates: Any
    trips: Any
    vector_fraction: Any


@dataclass(frozen=True)
class _Traffic:
    """The quantities of schedules with the ``values`` of decisions, grouped by what they are
    about."""

    template: Thin
    values: Columns

    @cached_property
    def b(self) -> ThinBlocking:
        """The extents of blocks and tiles."""
        return self.template.blocks(self.values)

    @property
    def product(self) -> Product:
        """The product that is computed."""
        return self.template.product

    @cached_property
    def loop(self) -> _MainLoop:
        """The counts of the innermost loops."""
        return self._dots() if self.template.dots else self._sums()

    # -- extents -----------------------------------------------------------------------------

    @cached_property
    def rows(self) -> float:
        """The number of rows of the product."""
        return float(self.product.rows)

    @cached_property
    def width(self) -> float:
        """The number of columns of the product."""
        return float(self.product.columns)

    @cached_property
    def deep(self) -> float:
        """The number of steps along the depth."""
        return float(self.product.terms) / self.template.terms

    @cached_property
    def block_steps(self) -> Any:
        """The number of steps along the depth of a block."""
        return np.minimum(self.b.block_depth, self.b.chunk_depth) / self.template.terms

    @cached_property
    def row_tiles(self) -> Any:
        """The number of tiles along the rows."""
        return ceil_div(self.product.rows, self.b.tile_rows)

    @cached_property
    def column_tiles(self) -> Any:
        """The number of tiles along the columns."""
        return ceil_div(self.product.columns, self.b.tile_columns)

    @cached_property
    def depth_blocks(self) -> Any:
        """The number of blocks along the depth."""
        return self.b.depth_blocks * self.b.depth_chunks

    # -- execution ---------------------------------------------------------------------------

    def _dots(self) -> _MainLoop:
        """Count what loops with lanes along the depth execute."""
        lanes = self.template.lanes
        steps = np.ceil(self.deep / lanes)
        left_loads = self.rows * self.column_tiles * steps
        return _MainLoop(
            multiplies=self.rows * self.width * steps,
            right_loads=self.row_tiles * self.width * steps,
            left_loads=left_loads,
            left_bytes=left_loads * lanes * FLOAT,
            updates=self.rows * self.width * self.depth_blocks * (2 + np.log2(lanes)),
            trips=self.block_steps / (lanes * self.values["unroll"]),
            vector_fraction=self.deep / (steps * lanes),
        )

    def _sums(self) -> _MainLoop:
        """Count what loops with lanes along the columns execute."""
        vectors = ceil_div(self.product.columns, self.template.lanes)
        left_loads = self.rows * self.column_tiles * self.deep
        return _MainLoop(
            multiplies=self.rows * vectors * self.deep,
            right_loads=self.row_tiles * vectors * self.deep,
            left_loads=left_loads,
            left_bytes=left_loads * FLOAT,
            updates=2 * self.rows * vectors * self.depth_blocks,
            trips=self.block_steps / self.values["unroll"],
            vector_fraction=self.product.columns / (vectors * self.template.lanes),
        )

    def executed(self) -> dict[str, Any]:
        """Compute the operations, instructions and registers."""
        loop, lanes = self.loop, self.template.lanes
        prefetches = loop.right_loads * (self.values["prefetch"] > 0)
        calls = self.row_tiles * self.column_tiles * self.depth_blocks
        registers = self.template.registers(self.values)
        issued = loop.multiplies + loop.right_loads + loop.left_loads + prefetches + loop.updates
        vectors_bytes = FLOAT * lanes * loop.right_loads + loop.left_bytes
        return {
            "flops": 2 * loop.multiplies * lanes * self.template.terms,
            "useful_flops": 2 * self.rows * self.width * float(self.product.terms),
            "instructions": issued + 3 * calls * loop.trips,
            "register_bytes": vectors_bytes + FLOAT * lanes * loop.updates,
            "epilogue_elements": self.rows * self.width * self.product.finished_arrays,
            "registers": registers,
            "register_fraction": registers / self.template.cpu.vector_registers,
            "independent_chains": self.template.chains(self.values),
            "vector_fraction": loop.vector_fraction,
            "intensity": loop.multiplies / (loop.right_loads + loop.left_loads),
            "main_loop_trips": loop.trips,
            "tile_visits": calls,
        }

    # -- memory ------------------------------------------------------------------------------

    @cached_property
    def left_block(self) -> Any:
        """Bytes of a block of the left operand."""
        return FLOAT * self.rows * self.block_steps

    @cached_property
    def reread(self) -> Any:
        """Bytes that are read again for each tile: a block of the left operand and its sums."""
        columns = np.minimum(self.b.block_columns, self.b.chunk_columns)
        return self.left_block + FLOAT * self.rows * columns

    @cached_property
    def tile(self) -> Any:
        """Bytes of a tile of the right operand."""
        return float(self.product.right.element.bytes) * self.b.block_depth * self.b.tile_columns

    def moved(self) -> dict[str, Any]:
        """Compute the bytes that move between caches and to memory."""
        loop, cpu = self.loop, self.template.cpu
        right_bytes = float(self.product.matrix_bytes(self.product.right))
        sums_bytes = 2 * FLOAT * self.rows * self.width * self.depth_blocks
        left_in_l1 = self.left_block <= USABLE * cpu.l1_bytes
        sums_in_l1 = self.reread <= USABLE * cpu.l1_bytes
        in_l2 = self.reread <= USABLE * cpu.l2_bytes
        chunks = self.b.depth_chunks
        partial = 2.0 * FLOAT * self.rows * self.width * (chunks > 1) * chunks
        everything = float(self.product.matmul.least_bytes)
        packed = 2.0 * FLOAT * self.rows * float(self.product.terms) * self.values["pack_left"]
        return {
            "near_bytes": (
                right_bytes * np.where(self._tile_stays(), 1, self.row_tiles)
                + np.where(left_in_l1, 0.0, loop.left_bytes)
                + np.where(sums_in_l1, 0.0, sums_bytes)
            ),
            "middle_bytes": right_bytes + np.where(in_l2, 0.0, loop.left_bytes + sums_bytes),
            "main_bytes": everything + partial * (everything > USABLE * cpu.l3_bytes),
            "packing_bytes": packed * self.b.column_workers,
        }

    def _tile_stays(self) -> Any:
        """Tell whether L1 keeps a tile of the right operand for all tiles of rows."""
        fits = self.tile <= USABLE * self.template.cpu.l1_bytes
        if self.template.dots:
            return fits
        # Rows of the right operand that are a page apart compete for the lines of one set.
        right = self.product.right
        stride = right.stride(self.product.depth) * right.element.bytes
        return fits & (self.b.block_depth <= rows_without_conflict(self.template.cpu, stride))

    def kept(self) -> dict[str, Any]:
        """Compute the bytes that have to fit in the caches."""
        cpu, near = self.template.cpu, self.reread + self.tile
        return {
            **footprints(cpu, near, self.reread),
            "far_fraction": float(self.product.matmul.least_bytes) / cpu.l3_bytes,
        }

    # -- workers -----------------------------------------------------------------------------

    def divided(self) -> dict[str, Any]:
        """Compute how the work is shared among workers."""
        b, product = self.b, self.product
        largest = (
            b.workers
            * b.chunk_batches
            * np.minimum(b.chunk_columns, product.columns)
            * np.minimum(b.chunk_depth, product.terms)
        )
        several = b.workers > 1
        mean = self.width * float(product.terms) * product.batches
        return {
            **shares(self.template.cpu, b.workers, largest / mean),
            "synchronisations": several + (b.depth_chunks > 1) * several,
        }
