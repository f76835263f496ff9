"""Work and memory traffic of pairwise kernels; names and units are those of ``spaces.quantities``.

Each pass is a kernel of its own: what they take is added up, and what they hold at a time is that
of the one that holds more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.chained.traffic import CALL_SLOTS
from tilewright.spaces.cuda.occupancy import USABLE, Occupancy
from tilewright.spaces.cuda.pairwise.passes import Pass
from tilewright.spaces.cuda.pairwise.rules import of_pass
from tilewright.spaces.cuda.pairwise.sizes import BYTES, PassSizes
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.scopes import special
from tilewright.spaces.language.tree import AxisValue, Read
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cuda.pairwise.template import CudaPairwise

_PRODUCT = 16 * 8 * 32  # rows, columns and bytes of depth of one mma.sync
_ADDED = ("flops", "instructions", "register_bytes", "near_bytes", "middle_bytes", "main_bytes",
          "epilogue_elements", "tile_visits", "synchronisations")  # fmt: skip


def pairwise_quantities(template: CudaPairwise, columns: Columns) -> dict[str, np.ndarray]:
    """Return every quantity of ``spaces.quantities``, one float64 array each."""
    found = [_of(template, of, of_pass(of, widened(columns))) for of in template.passes]
    joined: dict[str, Any] = {
        name: sum(each[name] for each in found) if name in _ADDED
        else np.maximum.reduce([1.0 * each[name] for each in found])
        for name in found[0]
    }  # fmt: skip
    joined |= {"useful_flops": float(template.workload.work), "packing_bytes": 0.0}
    joined |= {"vector_fraction": 1.0}
    first = next(iter(columns.values()))
    return filled(joined, first.shape)


def _of(template: CudaPairwise, of: Pass, c: dict[str, Any]) -> dict[str, Any]:
    """Return the quantities of one pass."""
    sizes, target = PassSizes(of), template.cuda
    blocks, threads = sizes.blocks(c), sizes.threads(c)
    registers = np.minimum(sizes.registers(c), sizes.register_limit(target, c))
    occupancy = Occupancy(target, blocks, threads, registers, sizes.shared_bytes(c))
    tiles = of.pairwise.batches * _met(template, sizes, c)
    pairs = tiles * sizes.stay(c) * c["tile"]
    chain = pairs * _operations(of)
    products = pairs * (sizes.depth + sizes.width) * BYTES / _PRODUCT
    loads = products / (2 * c["fragments"]) + pairs * sizes.depth * BYTES / _PRODUCT * 8 / c["tile"]
    trips = tiles / blocks
    waits = occupancy.waits(trips / np.maximum(c["stages"] - 1, 1))
    issued = products + loads + chain / WARP + 30.0 * tiles * c["warps"]
    passing = tiles * sizes.stage_bytes(c) + blocks * sizes.stay_bytes(c)
    running = np.minimum(blocks, occupancy.slots)
    beyond = sizes.stage_bytes(c) * sizes.pass_tiles(c) * of.pairwise.batches
    again = passing * (beyond > USABLE * target.l2_bytes) * 0.25
    middle = passing / np.maximum(blocks, 1) * running
    least = float(template.workload.least_bytes)
    return {
        "flops": 2 * pairs * (sizes.depth + sizes.width) + chain,
        "instructions": issued * occupancy.starved + waits,
        "register_bytes": loads * 512,
        "near_bytes": passing,
        "middle_bytes": passing,
        "main_bytes": least + again,
        "epilogue_elements": blocks * sizes.stay(c) * sizes.width,
        "middle_footprint": middle,
        "middle_fraction": middle / target.l2_bytes,
        "far_fraction": min(least / target.l2_bytes, 1e6),
        "intensity": products / np.maximum(loads, 1),
        "main_loop_trips": trips,
        "tile_visits": tiles,
        "synchronisations": trips + 1,
        **occupancy.quantities(c["fragments"] * c["tile"] // 8),
    }


def _met(template: CudaPairwise, sizes: PassSizes, c: dict[str, Any]) -> Any:
    """Return how many tiles the blocks of a product meet."""
    stay, tile = sizes.stay(c), c["tile"]
    if sizes.of.keys_stay:
        # each tile of rows meets blocks of keys
        return np.maximum(template.visited_tiles.of(tile, stay)[0], ceil_div(1, tile))
    return np.maximum(template.visited_tiles.of(stay, tile)[0], 1)


def _operations(of: Pass) -> float:
    """Return the issue slots of all weights for each pair, equal ones counted once."""
    seen = set()
    total = float(len(of.weights))
    for weight in of.weights:
        for node in weight.values():
            if node not in seen and not isinstance(node, Read | AxisValue) and node.children:
                seen.add(node)
                inner = any(special(child) for child in node.children)
                total += CALL_SLOTS if special(node) and not inner else 1
    return total
