"""Work and memory traffic of products of placed operands, computed for whole populations at once.

Padded copies and packed blocks are written once and read again; ``spaces.cpu.windows.caches`` says
what caches hold. Names and units are those of ``spaces.quantities``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.tiles.decisions import registers
from tilewright.spaces.cpu.tiles.dot_panel import columns_at_once
from tilewright.spaces.cpu.traffic import footprints, packing_passes, shares
from tilewright.spaces.cpu.windows.blocking import Blocking, blocking
from tilewright.spaces.cpu.windows.caches import CacheTraffic
from tilewright.spaces.cpu.windows.copies.patches import patches
from tilewright.spaces.cpu.windows.nest import Windows
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

DOT_SUM = 10.0
"""Instructions that add the lanes of one sum, where lanes run along the depth."""


def window_quantities(
    view: Windows, in_place: Windows | None, target: CpuTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Compute every quantity of ``spaces.quantities``, one float64 array each; ``in_place`` is the
    view whose left operand has patches."""
    lanes = target.lanes(FLOAT)
    values = widened(columns)
    b = _as_drawn(view, blocking(view, lanes, values))
    quantities = {
        **_work(view, b, target, values),
        **_traffic(view, b, target, values, _copied(view, in_place, b, values)),
        **_workers(b, target),
    }
    return filled(quantities, values["tile_rows"].shape)


def _as_drawn(view: Windows, b: Blocking) -> Blocking:
    """Return the extents for segments of equal size: one product for each segment that the table's
    draw gives rows."""
    segments = view.product.segments
    if segments is None:
        return b
    drawn = segments.drawn.size
    rows = ceil_div(b.rows, drawn)
    tiles = ceil_div(rows, b.tile_rows)
    return replace(
        b,
        products=b.products // segments.count * drawn,
        rows=rows,
        row_tiles=tiles,
        chunk_tiles=ceil_div(tiles, b.row_workers),
        chunk_products=b.products // segments.count * drawn,
    )


def _work(view: Windows, b: Blocking, target: CpuTarget, values: Columns) -> dict[str, np.ndarray]:
    nest, lanes = view.nest(True), target.lanes(FLOAT)
    terms, lines = float(nest.terms), float(nest.line_count)
    rows, products = lines * b.rows, np.asarray(b.products, np.float64)
    vectors = ceil_div(b.columns, lanes)
    dots = view.has_dots & np.logical_not(values["pack_right"])
    at_once = columns_at_once(b.tile_rows, values["unroll"], target.vector_registers)
    # If lanes run along the depth, tiles have fewer columns, and there is a step for each
    # vector of terms.
    column_tiles = ceil_div(b.columns, np.where(dots, at_once, b.tile_columns))
    step_columns = np.where(dots, b.columns, vectors)
    steps_a_tile = terms / np.where(dots, lanes, 1)
    row_tiles = b.row_tiles
    multiplies = rows * vectors * terms
    broadcasts = rows * column_tiles * steps_a_tile
    loads = row_tiles * step_columns * steps_a_tile
    updates = 2 * rows * vectors * b.depth_blocks
    bookkeeping = 3 * row_tiles * column_tiles * steps_a_tile / values["unroll"]
    chains = np.where(
        dots, b.tile_rows * at_once * values["unroll"], b.tile_rows * (b.tile_columns // lanes)
    )
    added = DOT_SUM * rows * b.columns * b.depth_blocks * dots
    instructions = multiplies + broadcasts + loads + bookkeeping + updates + added
    steps = np.minimum(b.block_terms, nest.multiplied[-1].extent)
    return {
        "flops": 2 * products * rows * vectors * lanes * terms,
        "useful_flops": 2 * products * rows * b.columns * terms,
        "instructions": products * instructions,
        "register_bytes": products * FLOAT * lanes * (broadcasts + loads + updates),
        "epilogue_elements": products * rows * vectors * lanes * _written(view),
        "independent_chains": chains,
        "registers": chains + b.tile_columns // lanes + 1,
        "vector_fraction": b.columns / (vectors * lanes),
        "intensity": chains / (b.tile_rows + b.tile_columns // lanes),
        "main_loop_trips": steps / values["unroll"],
        "tile_visits": products * row_tiles * column_tiles * b.depth_blocks,
    }


def _written(view: Windows) -> int:
    """Count the outputs that are computed from the sums and written after them."""
    return view.product.fused + len(view.product.further)


def _copied(
    view: Windows, in_place: Windows | None, b: Blocking, values: Columns
) -> tuple[Any, Any]:
    """Compute the bytes read and written for padded copies or patches, and for the copies alone."""
    copies = float(sum(2 * copy.bytes for copy in view.copies))
    if in_place is None:
        return copies, copies
    others = float(sum(2 * copy.bytes for copy in in_place.copies))
    known = np.zeros(int(values["tile_rows"].max()) + 1)
    for rows in np.unique(values["tile_rows"]).astype(int).tolist():
        found = patches(in_place, True, rows)
        known[rows] = 2.0 * found.crossing(in_place) * found.copied_bytes
    columns_outer = values["order"] == "columns_outer"
    turns = np.where(columns_outer, ceil_div(b.columns, b.tile_columns), b.column_blocks)
    patched = known[values["tile_rows"].astype(int)] * b.products * turns
    copied = values["padding"] == "copied"
    return np.where(copied, copies, others + patched), np.where(copied, copies, others)


def _traffic(
    view: Windows,
    b: Blocking,
    target: CpuTarget,
    values: Columns,
    copied: tuple[Any, Any],
) -> dict[str, np.ndarray]:
    caches = CacheTraffic(view, b, target, values)
    products = np.asarray(b.products, np.float64)
    moved, copies = copied
    passes = packing_passes(target, caches.tile * b.block_columns)
    packing = moved + passes * caches.right * products * b.row_workers * values["pack_right"]
    footprint = b.workers * caches.tile * b.block_columns + copies / 2
    everything = float(sum(array.bytes for array in view.product.program.operands))
    everything += sum(each.output.bytes for each in view.product.finished)
    return {
        "near_bytes": products * caches.near(),
        "middle_bytes": products * caches.middle(),
        "main_bytes": everything + np.where(copies > target.l3_bytes, copies, 0.0),
        "packing_bytes": packing,
        **footprints(target, caches.left_tile + caches.panel, caches.block + caches.staying),
        "far_fraction": footprint / target.l3_bytes,
        "register_fraction": registers(b.tile_rows, b.tile_columns // target.lanes(FLOAT))
        / target.vector_registers,
    }


def _workers(b: Blocking, target: CpuTarget) -> dict[str, np.ndarray]:
    share = np.minimum(b.chunk_tiles, b.row_tiles) * np.minimum(b.chunk_columns, b.columns)
    return {
        **shares(
            target,
            b.workers,
            share * b.chunk_products * b.workers / (b.row_tiles * b.columns * b.products),
        ),
        "synchronisations": b.workers > 1,
    }
