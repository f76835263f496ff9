"""Work and memory traffic of a product with packed codes; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.low_bit.decoding import COMPUTED, SHUFFLED
from tilewright.spaces.cpu.traffic import USABLE, footprints, shares
from tilewright.spaces.low_bit.order import DEPTH, ROWS, tile_bytes
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.low_bit.template import LowBit

LOOKING_UP, COMPUTING = 2, 3
"""Instructions for a vector of values, roughly: a shift and a shuffle, or those that mask, raise
and subtract."""


def coded_quantities(template: LowBit, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    c, product, cpu = widened(columns), template.product, template.cpu
    lanes, rows = cpu.lanes(FLOAT), product.row_count
    tiles, deep = ceil_div(product.columns, ROWS), ceil_div(product.terms, DEPTH)
    tile_rows, block = c["tile_rows"], np.minimum(c["block_depth"], deep)
    row_tiles, blocks = ceil_div(rows, tile_rows), ceil_div(deep, block)
    if segments := product.segments:
        row_tiles = segments.tiles(tile_rows)
    vectors = float(tiles * deep * ROWS * DEPTH // lanes)
    each, bits = template.terms_each, product.codes.element.bits
    multiplies, decoded = rows * vectors / each, row_tiles * vectors / each
    loads = multiplies / 2
    updates = 2.0 * rows * tiles * ROWS * 4 / lanes * blocks
    sums = FLOAT * 4.0 * rows * tiles * ROWS
    codes = float(tiles * deep * tile_bytes(bits))
    ordered = float(rows * template.ordered_row_bytes)
    near = template.ordered_row_bytes * tile_rows * block / deep + block * tile_bytes(bits)
    middle = near + sums / c["workers"]
    share = ceil_div(tiles, c["workers"])
    registers = np.minimum(template.registers(columns), cpu.vector_registers)
    everything = float(sum(array.bytes for array in template.workload.operands))
    quantities = {
        "flops": 2.0 * rows * vectors * lanes,
        "useful_flops": 2.0 * rows * product.columns * product.terms,
        "instructions": multiplies + loads + decoded * template.decoding_cost(c) + updates,
        "register_bytes": codes * row_tiles + FLOAT * lanes * (loads + updates),
        "near_bytes": codes * row_tiles + np.where(near > USABLE * cpu.l1_bytes, ordered, 0.0),
        "middle_bytes": codes + np.where(middle > USABLE * cpu.l2_bytes, sums * blocks, 0.0),
        "main_bytes": everything,
        "packing_bytes": 2 * ordered,
        "epilogue_elements": float(rows * product.columns),
        "registers": registers,
        "register_fraction": registers / cpu.vector_registers,
        **footprints(cpu, near, middle),
        "far_fraction": everything / cpu.l3_bytes,
        "independent_chains": np.where(tile_rows == 1, 4, 2 * tile_rows),
        "vector_fraction": product.columns * product.terms / (vectors * lanes),
        "intensity": multiplies / (loads + codes / (FLOAT * lanes)),
        "main_loop_trips": 1.0 * block,
        "tile_visits": 1.0 * tiles * row_tiles * blocks,
        "synchronisations": 3.0 * (c["workers"] > 1),
        **shares(cpu, c["workers"], c["workers"] * share / tiles),
    }
    return filled(quantities, tile_rows.shape)


def decoding_cost(template: LowBit, c: Columns) -> np.ndarray:
    """Compute the instructions for a vector of values, with those of zero points and early
    scales."""
    shuffled = c["decoding"] == SHUFFLED
    folded = [template.decoded(way).folds_zero for way in (SHUFFLED, COMPUTED)]
    zero = 1.0 * (template.product.zero is not None) * ~np.where(shuffled, *folded)
    early = (c["scales"] == "early") * 1.0
    found: np.ndarray = np.where(shuffled, LOOKING_UP, COMPUTING) + zero + early
    return found
