"""Work and memory traffic of chained kernels on Hopper.

Names and units are those of ``spaces.quantities``. Near memory is shared memory, middle memory L2.
Each tile of rows passes its tiles of keys, which come from L2 once for all its warpgroups.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import SLICE
from tilewright.spaces.cuda.chained_hopper.fetching.transposing import TransposedCopy
from tilewright.spaces.cuda.chained_hopper.sizes import ChainedSizes
from tilewright.spaces.cuda.chains.splits.splitting import CLUSTER
from tilewright.spaces.cuda.occupancy import USABLE
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.chained.work import share_inside
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns
from tilewright.spaces.workloads.workload import Workload

CHAIN = 5
"""Instructions for each score.

Maximum, multiplication, exponential, sum, half a conversion, and waits for slower units.
"""


def chained_quantities(
    workload: Workload, sizes: ChainedSizes, target: CudaTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Return every quantity of ``spaces.quantities``, one float64 array each."""
    c = widened(columns)
    passes = _Passes(sizes, share_inside(workload, sizes.chained), c)
    quantities = _work(workload, passes)
    quantities |= _memory(workload, target, passes)
    quantities |= _parallelism(target, passes)
    return filled(quantities, c["keys"].shape)


@dataclass(frozen=True)
class _Passes:
    """The meetings of tiles of rows with tiles of keys, by schedule.

    Rows see a ``share`` of all keys.
    """

    sizes: ChainedSizes
    share: float
    columns: Columns

    @cached_property
    def tiles(self) -> Any:
        """Tiles of rows, once for each part of the keys."""
        return self.sizes.items(self.columns)

    @cached_property
    def rows(self) -> Any:
        """Rows of all tiles."""
        return 1.0 * self.tiles * self.sizes.rows(self.columns)

    @cached_property
    def whole(self) -> Any:
        """Tiles of all keys."""
        return ceil_div(self.sizes.chained.key.extent, self.columns["keys"])

    @cached_property
    def visits(self) -> Any:
        """Tiles of keys that a tile of rows meets."""
        seen = self.share * self.whole + 0.5 * (self.share < 1)
        return np.minimum(np.maximum(seen, 1), self.whole) / self.columns["splits"]

    @cached_property
    def scores(self) -> Any:
        """Scores of all rows and the keys they meet."""
        return self.rows * self.visits * self.columns["keys"]

    @cached_property
    def products(self) -> Any:
        """Instructions of wgmma."""
        c, sizes = self.columns, self.sizes
        deep = sizes.depth + c["keys"] * (sizes.width / c["keys"])
        return self.scores / (SLICE * c["keys"]) * deep / sizes.terms


def _work(workload: Workload, passes: _Passes) -> dict[str, Any]:
    """Return operations, instructions and registers."""
    c, sizes, scores = passes.columns, passes.sizes, passes.scores
    depth, width = sizes.depth, sizes.width
    corrections = np.where(c["rescale"] == "always", 1.0, 0.25)
    corrections = corrections * passes.rows * passes.visits * width / 32
    size = float(sizes.element_bytes)
    read = scores * (depth + width) * size / SLICE
    from_rows = np.where(c["query_storage"] == "shared", scores * depth * size / c["keys"], 0)
    return {
        "flops": 2 * scores * (depth + width) + scores * CHAIN,
        "useful_flops": float(workload.work),
        "instructions": 4 * passes.products + scores * CHAIN / 32 + corrections,
        "register_bytes": read + from_rows,
        "registers": sizes.registers(c),
        "register_fraction": sizes.registers(c) / np.maximum(sizes.group_registers(c), 1),
        "vector_fraction": sizes.chained.key.extent / (passes.whole * c["keys"]),
        "intensity": passes.products,
        "main_loop_trips": passes.visits,
        "tile_visits": passes.tiles,
        "synchronisations": passes.tiles * passes.visits * (1 + c["ping_pong"]),
    }


def _memory(workload: Workload, target: CudaTarget, passes: _Passes) -> dict[str, Any]:
    """Return bytes moved, and bytes that must stay near."""
    c, sizes, tiles = passes.columns, passes.sizes, passes.tiles
    depth, width = sizes.depth, sizes.width
    size = float(sizes.element_bytes)
    near = tiles * passes.visits * sizes.stage_bytes(c) + passes.rows * depth * size
    least = float(workload.least_bytes)
    working = c["head_group"] * sizes.chained.key.extent * size * (depth + width)
    is_left = (c["splits"] > 1) & (c["merge"] != CLUSTER)
    transposed = 2.0 * TransposedCopy(sizes.chained).array.bytes if sizes.has_bytes else 0.0
    main = np.where(working <= USABLE * target.l2_bytes, least, np.maximum(near, least))
    return {
        "near_bytes": near,
        "middle_bytes": main,
        "main_bytes": main,
        "packing_bytes": np.where(is_left, 8.0 * passes.rows * width, 0) + transposed,
        "epilogue_elements": passes.rows / c["splits"] * width,
        "near_footprint": sizes.shared_bytes(c),
        "near_fraction": c["blocks_per_sm"]
        * sizes.shared_bytes(c)
        / target.shared_per_multiprocessor,
        "middle_footprint": working,
        "middle_fraction": working / target.l2_bytes,
        "far_fraction": min(least / target.l2_bytes, 1e6),
    }


def _parallelism(target: CudaTarget, passes: _Passes) -> dict[str, Any]:
    """Return how many tiles are in work at a time."""
    c, tiles = passes.columns, passes.tiles
    slots = target.multiprocessors * c["blocks_per_sm"]
    chains = c["warpgroups"] * c["blocks_per_sm"] * (1 + c["overlap"] + c["ping_pong"])
    return {
        "parallelism": np.minimum(tiles, slots),
        "worker_fraction": np.minimum(tiles / target.multiprocessors, 1.0),
        "imbalance": _imbalance(tiles, slots, c, passes.share),
        "independent_chains": chains,
    }


def _imbalance(tiles: Any, slots: Any, c: Any, share: float) -> Any:
    """Return waves over their mean; if uneven tiles are dealt out in turns, more."""
    waves = np.ceil(tiles / slots) / (tiles / slots)
    uneven = np.where(c["tile_scheduler"] == "persistent", 1 + 0.3 * (share < 0.9), 1.0)
    return np.where(tiles < slots, 1.0, waves) * uneven
