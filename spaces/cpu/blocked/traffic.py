"""Work and memory traffic of a blocked product, computed for whole populations at once.

The model is that of Low et al., "Analytical Modeling Is Enough for High-Performance BLIS", ACM TOMS
2016: each loop around the micro-kernel keeps one operand's block in one cache and streams the other
operand past it; a block that does not fit is streamed again on every turn. Names and units are
those of ``spaces.quantities``.
"""

from __future__ import annotations

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT, LINE_BYTES
from tilewright.spaces.cpu.blocked.blocking import Blocking, blocking
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.tiles.decisions import registers
from tilewright.spaces.cpu.traffic import (
    USABLE,
    footprints,
    line_turns,
    middle_reach,
    near_reach,
    shares,
)
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.product import Product

TOTALS = {
    *("flops", "useful_flops", "instructions", "register_bytes", "near_bytes", "middle_bytes"),
    *("packing_bytes", "epilogue_elements", "tile_visits"),
}
"""Quantities that add up over a batch; they are computed for one product and multiplied."""


def contraction_quantities(
    product: Product, target: CpuTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Compute every quantity of ``spaces.quantities``, one float64 array each."""
    lanes = target.lanes(FLOAT)
    wide = widened(columns)
    b = blocking(product, lanes, wide)
    traffic = {
        **_work(product, b, lanes, wide),
        **_near_and_middle(product, b, target, wide),
    }
    quantities = {
        **{
            name: value * (product.batches if name in TOTALS else 1)
            for name, value in traffic.items()
        },
        **_far_and_main(product, b, target, wide),
        **_workers(product, b, target),
    }
    shape = wide["tile_rows"].shape
    return filled(quantities, shape)


def _terms_a_step(values: Columns) -> np.ndarray:
    return np.where(values["multiply"] == "dot", 2.0, 1.0)


def _term_bytes(values: Columns) -> np.ndarray:
    return FLOAT / _terms_a_step(values)


def _work(product: Product, b: Blocking, lanes: int, values: Columns) -> dict[str, np.ndarray]:
    rows, columns = float(product.rows), float(product.columns)
    steps = product.terms / _terms_a_step(values)
    vectors = float(ceil_div(product.columns, lanes))
    tile_vectors = b.tile_columns // lanes
    row_tiles = ceil_div(product.rows, b.tile_rows)
    column_tiles = ceil_div(product.columns, b.tile_columns)
    visits = row_tiles * column_tiles * b.depth_blocks
    multiplies = rows * vectors * steps
    broadcasts, loads = rows * column_tiles * steps, row_tiles * vectors * steps
    updates = 2 * rows * vectors * b.depth_blocks
    bookkeeping = 3 * row_tiles * column_tiles * steps / values["unroll"]
    prefetches = product.matrix_bytes(product.right) / LINE_BYTES * values["prefetch"]
    chains = b.tile_rows * tile_vectors
    return {
        "flops": 2 * rows * vectors * lanes * product.terms,
        "useful_flops": 2 * rows * columns * product.terms,
        "instructions": multiplies + broadcasts + loads + prefetches + bookkeeping + updates,
        "register_bytes": FLOAT * lanes * (broadcasts + loads + updates),
        "epilogue_elements": rows * vectors * lanes * product.finished_arrays,
        "independent_chains": chains,
        "registers": registers(b.tile_rows, tile_vectors),
        "vector_fraction": columns / (vectors * lanes),
        "intensity": chains / (b.tile_rows + tile_vectors),
        "main_loop_trips": np.minimum(b.block_depth / _terms_a_step(values), steps)
        / values["unroll"],
        "tile_visits": visits,
    }


def _near_and_middle(
    product: Product, b: Blocking, target: CpuTarget, values: Columns
) -> dict[str, np.ndarray]:
    """Compute the bytes that move between L1 and L2, and between L2 and L3.

    One panel stays in L1 while the other operand's block, which stays in L2 if it fits, streams
    past it.
    """
    row_tiles = ceil_div(product.rows, b.tile_rows)
    column_tiles = ceil_div(product.columns, b.tile_columns)
    row_blocks, column_blocks = b.row_blocks * b.row_workers, b.column_blocks * b.column_workers
    size = _term_bytes(values) * float(product.terms)
    left, right = size * product.rows, size * product.columns
    rows_outer = values["order"] == "rows_outer"
    tile = _term_bytes(values) * b.block_depth
    left_panel, right_panel = tile * b.tile_rows, tile * b.tile_columns
    staying = np.where(rows_outer, left_panel, right_panel)
    streaming = np.where(rows_outer, right * row_tiles, left * column_tiles)
    once = np.where(rows_outer, left * column_blocks, right * row_blocks)
    again = np.where(rows_outer, left * column_tiles, right * row_tiles)
    sums = 2.0 * FLOAT * product.rows * product.columns * b.depth_blocks
    apart = [_apart(product, operand) for operand in (product.left, product.right)]
    panels = _in_place(values, near_reach(product.right.element.bytes * b.tile_columns, apart[1]))
    stays = staying <= USABLE * target.l1_bytes * np.where(rows_outer, 1.0, panels)
    turns = np.where(values["pack_left"], 1, line_turns(target, b.tile_rows, apart[0]))
    near = streaming + np.where(stays, once, again) + left * column_tiles * (turns - 1) + sums

    block = np.where(rows_outer, tile * b.block_columns, tile * b.block_rows)
    block_once = np.where(rows_outer, right * row_blocks, left * column_blocks)
    panels, blocks = (
        _in_place(values, middle_reach(product.right.element.bytes * width, apart[1]))
        for width in (b.tile_columns, b.block_columns)
    )
    fits = block <= USABLE * target.l2_bytes * np.where(rows_outer, blocks, 1.0)
    returns = rows_outer | (right_panel <= USABLE * target.l2_bytes * panels)
    middle = np.where(returns, once, again) + np.where(fits, block_once, streaming) + sums
    near_footprint = left_panel + right_panel + FLOAT * b.tile_rows * b.tile_columns
    # A block that was prefetched is in L2 when it is packed: it is only written then.
    right_passes = values["pack_right"] * (2 - values["prefetch"])
    packing = 2 * left * column_blocks * values["pack_left"] + right * b.row_workers * right_passes
    return {
        "near_bytes": near,
        "middle_bytes": middle,
        "packing_bytes": packing,
        **footprints(target, near_footprint, block + staying),
        "register_fraction": registers(b.tile_rows, b.tile_columns // target.lanes(FLOAT))
        / target.vector_registers,
    }


def _apart(product: Product, operand: Operand) -> int:
    """Return the bytes from one run of an operand to the next."""
    if operand.packed:
        return LINE_BYTES
    return int(operand.element.bytes * max(product.layout(operand).strides))


def _in_place(values: Columns, share: np.ndarray) -> np.ndarray:
    """Return the share of a cache that the right operand can use: all of it if it is packed."""
    found: np.ndarray = np.where(values["pack_right"], 1.0, share)
    return found


def _far_and_main(
    product: Product, b: Blocking, target: CpuTarget, values: Columns
) -> dict[str, np.ndarray]:
    """Compute the bytes that move to and from memory: the right block stays in L3, and the left
    operand streams past it."""
    workers = b.workers
    right_block = _term_bytes(values) * b.block_depth * b.block_columns
    left_block = _term_bytes(values) * b.block_depth * b.block_rows
    footprint = workers * (right_block + left_block)
    everything = float(product.matmul.least_bytes)
    left, right = (float(product.matrix_bytes(o)) for o in (product.left, product.right))
    right_turns = np.where(
        workers * right_block <= USABLE * target.l3_bytes, b.row_workers, b.row_blocks
    )
    turns = b.column_blocks * b.column_workers
    output = float(product.matrix_bytes(product.output))
    streamed = left * turns + right * right_turns + output * (2 * b.depth_blocks - 1)
    stays = b.batch_workers * everything / product.batches <= USABLE * target.l3_bytes
    main = np.where(stays, everything, streamed * product.batches)
    return {
        "main_bytes": np.maximum(main, everything),
        "far_fraction": np.minimum(footprint, everything) / target.l3_bytes,
    }


def _workers(product: Product, b: Blocking, target: CpuTarget) -> dict[str, np.ndarray]:
    workers = b.workers
    largest = np.minimum(b.chunk_rows, product.rows) * np.minimum(b.chunk_columns, product.columns)
    elements = float(product.rows) * product.columns * product.batches
    imbalance = largest * b.chunk_batches * workers / elements
    return {**shares(target, workers, imbalance), "synchronisations": workers > 1}
