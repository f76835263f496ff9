"""Work and memory traffic of chained kernels; names and units are those of ``spaces.quantities``.

Operations of a product are those of whole tiles; those of the chain are computed for each score,
special functions counting for several. Near memory is shared memory, middle memory L2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.chains.splits.splitting import CLUSTER
from tilewright.spaces.cuda.occupancy import USABLE, Occupancy
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.chained.levels import Levels
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chained.work import operations, share_inside
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cuda.chained.template import CudaChained

CALL_SLOTS = 6
"""Issue slots of a special function, roughly."""
_PRODUCT = 16 * 8 * 32  # rows, columns and bytes of depth of one mma.sync


def chained_quantities(template: CudaChained, columns: Columns) -> dict[str, np.ndarray]:
    """Return every quantity of ``spaces.quantities``, one float64 array each."""
    c, sizes, target = widened(columns), template.sizes, template.cuda
    chained = sizes.chained
    blocks, threads = sizes.blocks(c), sizes.threads(c)
    registers = np.minimum(sizes.registers(c), sizes.register_limit(target, c))
    occupancy = Occupancy(target, blocks, threads, registers, sizes.shared_bytes(c))
    running = np.minimum(blocks, occupancy.slots)
    visited = np.maximum(_visited(template, c) / c["splits"], 1)
    tiles = blocks * visited
    scores = tiles * sizes.rows(c) * c["keys"]
    width = c["columns"] * len(chained.weighings)
    multiplied = scores * (sizes.terms(c) + width)
    chain = scores * chain_operations(chained.unscaled)
    rescaled = np.where(c["rescale"] == "always", 1.0, 0.2) * tiles * sizes.rows(c) * width
    shared = sizes.terms(c) * sizes.score_bytes + width * sizes.weight_bytes(c)
    products = scores * shared / _PRODUCT
    loads = (
        products / (2 * c["row_fragments"]) * (1 + (c["query_storage"] == "shared") / c["keys"] * 8)
    )
    steps = tiles * sizes.steps(c)
    trips = np.ceil(visited / c["warp_splits"]) * sizes.steps(c)
    waits = occupancy.waits(trips / np.maximum(c["stages"] - 1, 1) + _merging(c))
    issued = products + loads + (chain + rescaled) / WARP + 30.0 * steps * c["warps"]
    passing = tiles * sizes.tile_bytes(c) + blocks * sizes.left_bytes(c)
    least = float(template.workload.least_bytes)
    quantities: dict[str, Any] = {
        "flops": 2 * multiplied + chain,
        "useful_flops": float(template.workload.work),
        "instructions": issued * occupancy.starved + waits,
        "register_bytes": loads * 512,
        "near_bytes": passing,
        "middle_bytes": passing,
        "main_bytes": least + sizes.again_bytes(c, running, USABLE * target.l2_bytes),
        "packing_bytes": 0.0,
        "epilogue_elements": blocks * sizes.rows(c) * np.maximum(c["columns"], 1.0),
        "middle_footprint": passing / np.maximum(blocks, 1) * running,
        "far_fraction": min(least / target.l2_bytes, 1e6),
        "vector_fraction": 1.0,
        "intensity": products / np.maximum(loads, 1),
        "main_loop_trips": trips,
        "tile_visits": tiles,
        "synchronisations": np.where(c["warp_splits"] > 1, 3, visited * sizes.steps(c)),
        **occupancy.quantities(c["row_fragments"] * c["keys"] // 8),
    }
    quantities["middle_fraction"] = quantities["middle_footprint"] / target.l2_bytes
    return filled(quantities, c["keys"].shape)


def _merging(c: Any) -> Any:
    """Return how often a block waits for memory until parts of its keys are merged.

    It waits for its own part, for a ticket or another kernel, and for the other parts.
    """
    return np.where((c["splits"] > 1) & (c["merge"] != CLUSTER), 3, 0)


def _visited(template: CudaChained, c: Any) -> Any:
    """Return the tiles of keys that a block visits, by the share of pairs that a mask leaves."""
    chained, sizes = template.sizes.chained, template.sizes
    share = share_inside(template.workload, chained)
    tiles = ceil_div(chained.key.extent, c["keys"])
    return np.minimum(tiles, share * tiles + (share < 1) * 0.5 + 0 * sizes.rows(c))


def chain_operations(chained: Chained) -> float:
    """Return the issue slots of the chain for each score."""
    bodies = [*(r.element for r in chained.scalars), *Levels(chained).weights]
    return float(2 * len(bodies) + operations(chained, bodies, CALL_SLOTS))
