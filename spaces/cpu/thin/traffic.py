"""Work and memory traffic of a thin product; names and units are those of ``spaces.quantities``.

The right operand is read tile by tile, from L2 again by all tiles of rows but the first if L1 does
not hold the tile; the left operand and the sums are read again for each tile and each block of
depth, from whichever cache holds them.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from spaces.algebra.integers import ceil_div
from spaces.cpu.blocked.memory_rules import PAGE
from spaces.cpu.blocked.traffic import TOTALS
from spaces.template import Columns

if TYPE_CHECKING:
    from spaces.cpu.thin.template import Thin

FLOAT = 4
USABLE = 0.75
"""Share of a cache that what stays can keep while the right operand streams through."""


def thin_quantities(template: Thin, columns: Columns) -> dict[str, np.ndarray]:
    """Every quantity, one float64 array each."""
    values = {n: v.astype(np.int64) if v.dtype.kind == "i" else v for n, v in columns.items()}
    product, target = template.product, template.cpu
    b = template.blocks(values)
    lanes = template.lanes
    rows, terms, width = float(product.rows), float(product.terms), float(product.columns)
    row_tiles = ceil_div(product.rows, b.tile_rows)
    column_tiles = ceil_div(product.columns, b.tile_columns)
    depth_blocks = b.depth_blocks * b.depth_chunks

    deep = terms / template.terms  # steps along the depth
    block_steps = np.minimum(b.block_depth, b.chunk_depth) / template.terms
    if template.dots:
        steps = np.ceil(deep / lanes)
        multiplies = rows * width * steps
        right_loads, left_loads = row_tiles * width * steps, rows * column_tiles * steps
        left_bytes = left_loads * lanes * FLOAT
        updates = rows * width * depth_blocks * (2 + np.log2(lanes))
        trips = block_steps / (lanes * values["unroll"])
        vector_fraction = deep / (steps * lanes)
    else:
        vectors = ceil_div(product.columns, lanes)
        multiplies = rows * vectors * deep
        right_loads, left_loads = row_tiles * vectors * deep, rows * column_tiles * deep
        left_bytes = left_loads * FLOAT
        updates = 2 * rows * vectors * depth_blocks
        trips = block_steps / values["unroll"]
        vector_fraction = product.columns / (vectors * lanes)

    right_bytes = float(product.matrix_bytes(product.right))
    sums_bytes = 2 * FLOAT * rows * width * depth_blocks
    left_block = FLOAT * rows * block_steps
    sums_block = FLOAT * rows * np.minimum(b.block_columns, b.chunk_columns)
    tile = float(product.right.element.bytes) * b.block_depth * b.tile_columns
    footprint = left_block + sums_block + tile
    staying = tile <= USABLE * target.l1_bytes
    if not template.dots:
        # Rows of the right operand a page apart compete for the lines of one set.
        stride = product.right.stride(product.depth) * product.right.element.bytes
        staying &= b.block_depth <= target.l1_bytes // PAGE * (PAGE // gcd(stride, PAGE))
    left_in_l1 = left_block <= USABLE * target.l1_bytes
    sums_in_l1 = left_block + sums_block <= USABLE * target.l1_bytes
    in_l2 = left_block + sums_block <= USABLE * target.l2_bytes
    near = (
        right_bytes * np.where(staying, 1, row_tiles)
        + np.where(left_in_l1, 0.0, left_bytes)
        + np.where(sums_in_l1, 0.0, sums_bytes)
    )
    middle = right_bytes + np.where(in_l2, 0.0, left_bytes + sums_bytes)
    partial = 2.0 * FLOAT * rows * width * (b.depth_chunks > 1) * b.depth_chunks
    packing = 2.0 * FLOAT * rows * terms * values["pack_left"] * b.column_workers
    prefetches = right_loads * (values["prefetch"] > 0)
    calls = row_tiles * column_tiles * depth_blocks
    chains = template.chains(values)
    registers = template.registers(values)
    everything = float(product.workload.least_bytes)
    resident = everything <= USABLE * target.l3_bytes
    quantities = {
        "flops": 2 * multiplies * lanes * template.terms,
        "useful_flops": 2 * rows * width * terms,
        "instructions": multiplies
        + right_loads
        + left_loads
        + prefetches
        + updates
        + 3 * calls * trips,
        "register_bytes": FLOAT * lanes * right_loads + left_bytes + FLOAT * lanes * updates,
        "near_bytes": near,
        "middle_bytes": middle,
        "main_bytes": everything + partial * (not resident),
        "packing_bytes": packing,
        "epilogue_elements": rows * width * (product.workload.epilogue is not None),
        "registers": registers,
        "register_fraction": registers / target.vector_registers,
        "near_footprint": footprint,
        "near_fraction": footprint / target.l1_bytes,
        "middle_footprint": left_block + sums_block,
        "middle_fraction": (left_block + sums_block) / target.l2_bytes,
        "far_fraction": everything / target.l3_bytes,
        "parallelism": b.workers,
        "worker_fraction": b.workers / target.threads,
        "imbalance": b.workers
        * b.chunk_batches
        * np.minimum(b.chunk_columns, product.columns)
        * np.minimum(b.chunk_depth, product.terms)
        / (width * terms * product.batches),
        "independent_chains": chains,
        "vector_fraction": vector_fraction,
        "intensity": multiplies / (right_loads + left_loads),
        "main_loop_trips": trips,
        "tile_visits": calls,
        "synchronisations": (b.workers > 1) + (b.depth_chunks > 1) * (b.workers > 1),
    }
    shape = values["tile_rows"].shape
    return {
        name: np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
        * (product.batches if name in TOTALS else 1)
        for name, value in quantities.items()
    }
