"""Work and memory traffic of chained kernels on Hopper; names and units are those of
``spaces.quantities``. Near memory is shared memory, middle memory L2.

Every tile of rows passes its tiles of keys, which come from L2 once for all its warpgroups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spaces.algebra.integers import ceil_div
from spaces.cuda.blocks.traffic import USABLE
from spaces.cuda.chained_hopper.fetching.tiles import SLICE
from spaces.cuda.chained_hopper.sizes import TERMS, ChainedSizes
from spaces.cuda.target import CudaTarget
from spaces.derivation.chained.work import share_inside
from spaces.quantities import filled, widened
from spaces.template import Columns
from spaces.workloads.computation import Computation

CHAIN = 5
"""Instructions for each score: maximum, multiplication, exponential, sum, half a conversion, and
turns of the units that are slower."""


def chained_quantities(
    workload: Computation, sizes: ChainedSizes, target: CudaTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Every quantity, one float64 array each."""
    c = widened(columns)
    key, depth, width = sizes.chained.key.extent, sizes.depth, sizes.width
    share = share_inside(workload, sizes.chained)
    tiles = sizes.items(c)
    rows = 1.0 * tiles * sizes.rows(c)
    whole = ceil_div(key, c["keys"])
    visits = np.minimum(np.maximum(share * whole + 0.5 * (share < 1), 1), whole) / c["split"]
    exchanged = np.where(c["split"] > 1, 8.0 * rows * width, 0)
    scores = rows * visits * c["keys"]
    products = scores / (SLICE * c["keys"]) * (depth + c["keys"] * (width / c["keys"])) / TERMS
    chain = scores * CHAIN / 32
    corrections = np.where(c["rescale"] == "always", 1.0, 0.25) * rows * visits * width / 32
    near = tiles * visits * sizes.stage_bytes(c) + rows * depth * 2.0
    least = float(workload.least_bytes)
    slots = target.multiprocessors * c["residency"]
    working = c["section"] * key * 2.0 * (depth + width)
    main = np.where(working <= USABLE * target.l2_bytes, least, np.maximum(near, least))
    read = scores * (depth + width) * 2.0 / SLICE
    from_rows = np.where(c["queries"] == "shared", scores * depth * 2.0 / c["keys"], 0)
    quantities: dict[str, Any] = {
        "flops": 2 * scores * (depth + width) + scores * CHAIN,
        "useful_flops": float(workload.work),
        "instructions": 4 * products + chain + corrections,
        "register_bytes": read + from_rows,
        "near_bytes": near,
        "middle_bytes": main,
        "main_bytes": main,
        "packing_bytes": exchanged,
        "epilogue_elements": rows / c["split"] * width,
        "registers": sizes.registers(c),
        "register_fraction": sizes.registers(c) / np.maximum(sizes.group_registers(c), 1),
        "near_footprint": sizes.shared_bytes(c),
        "near_fraction": c["residency"] * sizes.shared_bytes(c) / target.shared_per_multiprocessor,
        "middle_footprint": working,
        "middle_fraction": working / target.l2_bytes,
        "far_fraction": min(least / target.l2_bytes, 1e6),
        "parallelism": np.minimum(tiles, slots),
        "worker_fraction": np.minimum(tiles / target.multiprocessors, 1.0),
        "imbalance": _imbalance(tiles, slots, c, share),
        "independent_chains": c["warpgroups"]
        * c["residency"]
        * (1 + c["overlap"] + c["ping_pong"]),
        "vector_fraction": key / (whole * c["keys"]),
        "intensity": products,
        "main_loop_trips": visits,
        "tile_visits": tiles,
        "synchronisations": tiles * visits * (1 + c["ping_pong"]),
    }
    return filled(quantities, c["keys"].shape)


def _imbalance(tiles: Any, slots: Any, c: Any, share: float) -> Any:
    """Waves over their mean; uneven tiles, dealt out in turns, make it worse."""
    waves = np.ceil(tiles / slots) / (tiles / slots)
    uneven = np.where(c["blocks"] == "persistent", 1 + 0.3 * (share < 0.9), 1.0)
    return np.where(tiles < slots, 1.0, waves) * uneven
