"""Work and memory traffic of a product with packed codes that stream through rings; names and units
are those of ``spaces.quantities``."""

from __future__ import annotations

import numpy as np

from tilewright.spaces.cuda.low_bit.pairs import BYTE
from tilewright.spaces.cuda.low_bit.sizes import ACTIVATION, COLUMNS, FLOAT
from tilewright.spaces.cuda.low_bit_ring.rules import WARPS
from tilewright.spaces.cuda.low_bit_ring.sizes import RingSizes
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS
from tilewright.spaces.quantities import filled
from tilewright.spaces.workloads.workload import Workload

STEPS = DEPTH // FRAGMENT
"""Instructions of tensor cores for a tile of codes and eight rows."""
PAIRS = ROWS * DEPTH // 2 // WARP
"""Pairs of codes of a lane of a tile."""
RAISED, EXACT, SCALED, JOINED = 1.75, 2.75, 1.0, 2.5
"""Instructions to decode a pair: a larger number, the number itself; to multiply it; and to make
half of a quad of codes that do not stand in bytes."""
STAGE, VALUE = 40, 8
"""Instructions of a warp for a stage, and to read a zero point or scale, about."""


def ring_quantities(
    workload: Workload, sizes: RingSizes, target: CudaTarget
) -> dict[str, np.ndarray]:
    """Return every quantity as a float64 array with one entry for each schedule."""
    c, product = sizes.values, sizes.product
    bits = sizes.pairs.decoding.bits
    count, passes = sizes.rows // COLUMNS, sizes.visits / sizes.blocks
    stages = 1.0 * sizes.visits * sizes.share
    tiles = stages * sizes.block_tiles * c["stage_depth"]
    parts = sizes.depth // sizes.part_depth
    early = (product.scale is not None) & ~sizes.late
    zero = (sizes.known_zero is None) & (not sizes.raised)
    pair = (RAISED if sizes.raised else EXACT) + SCALED * (zero + early)
    steps = STEPS * sizes.activation // ACTIVATION
    if sizes.has_bytes:
        pair = 1.0 if BYTE % bits == 0 else JOINED
    corrected = FLOAT * count * parts / c["stage_depth"] * sizes.apart
    groups = sizes.on_warpgroups
    tile = PAIRS * pair + steps * np.where(groups, 1, count) + corrected + bits / FLOAT
    shared = steps * count * c["stage_depth"] * (~groups + 1 * sizes.raised)
    reads = np.where(groups, c["warp_columns"] * c["warp_tiles"] / WARPS, c["warp_columns"])
    values = sizes.shared_values * sizes.value_columns / WARP * VALUE
    stage = c["warp_columns"] * (STAGE + shared + values)
    held = sizes.blocks_per_sm if sizes.segments else np.inf
    items = sizes.visits if sizes.segments else sizes.blocks
    resources = sizes.threads, sizes.registers, sizes.shared_bytes
    occupancy = Occupancy(target, items, *resources, held)
    work = tiles * tile + stages * stage
    codes = tiles * ROWS * DEPTH * bits / 8
    activations = stages * sizes.activation_stage
    sums = 1.0 * sizes.visits * sizes.rows * sizes.columns
    merged = 2.0 * FLOAT * sums * (c["splits"] > 1)
    multiplies = tiles * ROWS * DEPTH * sizes.rows
    main = float(workload.least_bytes)
    quantities = {
        "flops": 2.0 * multiplies,
        "useful_flops": 2.0 * product.row_count * product.columns * product.terms,
        "instructions": work * occupancy.starved,
        "register_bytes": codes + activations * reads,
        "near_bytes": codes + activations,
        "middle_bytes": codes + activations + merged,
        "main_bytes": main,
        "packing_bytes": merged,
        "epilogue_elements": sums / c["splits"],
        "far_fraction": main / target.l2_bytes,
        "vector_fraction": product.columns * product.terms / (tiles * ROWS * DEPTH),
        "intensity": steps * count / (bits / FLOAT),
        "main_loop_trips": 1.0 * sizes.share / c["warp_depth"],
        "tile_visits": 1.0 * sizes.visits / occupancy.resident,
        "synchronisations": 1.0 * passes * sizes.share / c["warp_depth"] * (c["warp_columns"] > 1)
        + 3.0
        + 2.0 * (c["splits"] > 1),
        **occupancy.quantities(HALVES * c["warp_tiles"] * count),
        **occupancy.flight(sizes.rings * sizes.code_stage / sizes.threads),
    }
    return filled(quantities, sizes.rows.shape)
