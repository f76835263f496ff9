"""Work and memory traffic of deep chained kernels; names and units are those of
``spaces.quantities``.

Beside what any chained kernel moves: the matrix of keys comes from main memory once for all blocks
that run at a time, and so do rows that come again with each tile, if L2 does not hold them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spaces.algebra.integers import ceil_div
from spaces.cuda.blocks.traffic import USABLE, Occupancy
from spaces.cuda.chained.traffic import chained_quantities
from spaces.cuda.chained_deep.sizes import STAGES
from spaces.quantities import filled, widened
from spaces.template import Columns

if TYPE_CHECKING:
    from spaces.cuda.chained_deep.template import ChainedDeep


def deep_quantities(template: ChainedDeep, columns: Columns) -> dict[str, np.ndarray]:
    """Every quantity, one float64 array each."""
    found = chained_quantities(template, columns)
    again = filled({"main_bytes": _again(template, widened(columns))}, columns["keys"].shape)
    return {**found, "main_bytes": found["main_bytes"] + again["main_bytes"]}


def _again(template: ChainedDeep, c: Any) -> Any:
    """Bytes that come from main memory another time."""
    sizes, target = template.sizes, template.cuda
    blocks, depth = sizes.blocks(c), sizes.chained.depth.extent
    registers = np.minimum(sizes.registers(c), sizes.register_limit(target, c))
    occupancy = Occupancy(target, blocks, sizes.threads(c), registers, sizes.shared_bytes(c))
    running = np.minimum(blocks, occupancy.slots)
    keys = sizes.chained.batches * sizes.chained.key.extent * depth * sizes.score_bytes
    own_rows = sizes.rows(c) * depth * sizes.score_bytes
    tiles = np.maximum(ceil_div(sizes.chained.key.extent, c["keys"]) / c["split"], 1)
    missed = (c["queries"] == STAGES) & (running / c["split"] * own_rows > USABLE * target.l2_bytes)
    return (ceil_div(blocks, running) - 1) * keys + missed * blocks * (tiles - 1) * own_rows
