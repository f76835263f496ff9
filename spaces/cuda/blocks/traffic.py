"""Work and memory traffic of a tiled product on a GPU, for whole populations at once.

A block loads a step of depth of its rows and columns into shared memory, threads read it into
registers from there, and blocks that run at the same time share loads in L2. Names and units are
those of ``spaces.quantities``; near memory is shared memory, middle memory is L2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.segments import drawn_row_tiles
from tilewright.spaces.cuda.occupancy import USABLE, Occupancy
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.quantities import filled
from tilewright.spaces.template import Columns

SENT = 5.0
"""Cost of a byte that a block sends to another one, in bytes of L2 traffic.

Calibrated on 213 schedules of convolutions and products on an H200.
"""


@dataclass(frozen=True)
class Blocks:
    """The blocks of many schedules, one array entry each.

    Extents of a tile are in elements; ``threads`` and ``shared_bytes`` are those of a block,
    ``registers`` of a thread. For one step of depth of one block: ``step_instructions`` are issue
    slots of its warps together, ``step_loads`` those that load from shared memory,
    ``step_multiplies`` those that multiply, ``step_register_bytes`` bytes that these loads bring
    into registers.

    ``chains`` are independent accumulations of a warp, ``vector_fraction`` the share of 16 bytes
    that global loads move at a time, ``ahead`` the steps in flight at a time, ``most_resident`` the
    most blocks that a multiprocessor is given.
    """

    rows: Any
    columns: Any
    depth: Any
    threads: Any
    registers: Any
    shared_bytes: Any
    step_instructions: Any
    step_loads: Any
    step_multiplies: Any
    step_register_bytes: Any
    chains: Any
    vector_fraction: Any
    ahead: Any
    most_resident: Any = np.inf


def grid_quantities(
    product: Tiled, target: CudaTarget, blocks: Blocks, columns: Columns
) -> dict[str, np.ndarray]:
    """Return every quantity of ``spaces.quantities``, one float64 array each.

    ``columns`` has the decisions of :func:`spaces.cuda.blocks.tile_grid.grid_decisions` and
    ``merge``.
    """
    splits = columns["splits"].astype(np.int64)
    # blocks of a cluster send each other their sums without a trip to L2
    through_memory = (splits > 1) & (columns["merge"] != "cluster")
    rows, columns_of_tiles = (
        drawn_row_tiles(product, blocks.rows),
        ceil_div(product.columns, blocks.columns),
    )
    steps = ceil_div(product.terms, blocks.depth)
    tiles = rows * columns_of_tiles * product.batches
    launched = tiles * splits
    total_steps = 1.0 * tiles * steps
    element = product.left.element.bytes
    tile_elements = 1.0 * blocks.rows * blocks.columns
    occupancy = Occupancy(
        target,
        launched,
        blocks.threads,
        blocks.registers,
        blocks.shared_bytes,
        blocks.most_resident,
    )
    near = total_steps * (blocks.rows + blocks.columns) * blocks.depth * element
    passes = SENT * (splits - 1) + np.where(through_memory, 2.0 * splits + 1, 0.0)
    exchange = passes * tiles * 4 * tile_elements
    useful = float(product.whole.flops)
    rounds = ceil_div(steps, splits) / blocks.ahead
    quantities = {
        "flops": 2 * total_steps * tile_elements * blocks.depth,
        "useful_flops": useful,
        "instructions": total_steps * blocks.step_instructions * occupancy.starved
        + occupancy.waits(rounds),
        "register_bytes": total_steps * blocks.step_register_bytes,
        "near_bytes": near,
        "packing_bytes": exchange,
        "epilogue_elements": tiles * tile_elements * len(product.written),
        "vector_fraction": blocks.vector_fraction,
        "intensity": blocks.step_multiplies / np.maximum(blocks.step_loads, 1),
        "main_loop_trips": ceil_div(steps, splits),
        "tile_visits": launched,
        "synchronisations": through_memory,
        **occupancy.quantities(blocks.chains),
        **_from_memory(product, target, blocks, columns, occupancy.slots),
    }
    shape = columns["splits"].shape
    return filled(quantities, shape)


def _from_memory(
    product: Tiled, target: CudaTarget, blocks: Blocks, columns: Columns, slots: Any
) -> dict[str, Any]:
    """Return the bytes between memory and L2, and what follows from them.

    The blocks of one wave form a band of ``group`` tiles, and share what they load; or everything
    stays in L2, if all products of a batch that are at work fit there.
    """
    element = product.left.element.bytes
    rows = drawn_row_tiles(product, blocks.rows)
    wide = ceil_div(product.columns, blocks.columns)
    along_columns = columns["raster"] == "along_columns"
    group = columns["raster_group"].astype(np.int64)
    wave = np.minimum(slots / columns["splits"], rows * wide)
    crossed = np.minimum(group, np.where(along_columns, rows, wide))
    walked = np.minimum(np.ceil(wave / crossed), np.where(along_columns, wide, rows))
    high = np.where(along_columns, crossed, walked)
    long = np.where(along_columns, walked, crossed)
    waves = rows * wide / np.maximum(high * long, 1)
    tall = high * blocks.rows / product.reuse(product.left)
    broad = long * blocks.columns / product.reuse(product.right)
    loaded = waves * (tall + broad) * product.terms * float(element)
    everything = float(product.whole.least_bytes)
    streamed = loaded * product.batches + sum(each.array.bytes for each in product.written)
    at_work = np.clip(slots / (columns["splits"] * rows * wide), 1, product.batches)
    fits = everything / product.batches * at_work <= USABLE * target.l2_bytes
    main = np.where(fits, everything, np.maximum(streamed, everything))
    working = (high * blocks.rows + long * blocks.columns) * blocks.depth * element
    return {
        "main_bytes": main,
        "middle_bytes": main,
        "middle_footprint": working,
        "middle_fraction": working / target.l2_bytes,
        "far_fraction": min(everything / target.l2_bytes, 1e6) + 0 * main,
    }
