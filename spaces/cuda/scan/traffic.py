"""Work and memory traffic of scans on a GPU; names and units are those of ``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.scalar_math import CALL_INSTRUCTIONS
from tilewright.spaces.cuda.scan.sizes import ScanSizes
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.work import work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cuda.scan.template import CudaScan

BOOKKEEPING = 40
"""Instructions of a thread to find its place in a tile."""


def scan_quantities(template: CudaScan, columns: Columns) -> dict[str, np.ndarray]:
    """Return every quantity, one float64 array each."""
    c = widened(columns)
    sizes, view, target = template.sizes(c), template.view, template.cuda
    elements = float(view.row_count) * view.column_count
    tiles = 1.0 * sizes.row_tiles * sizes.chunks
    padded = tiles * sizes.block_rows * sizes.tile
    counted = work(view.program)
    own = float(counted.flops + counted.arithmetic + CALL_INSTRUCTIONS * counted.special) / elements
    joins = sizes.sums * (3.0 + _lane_joins(sizes) / sizes.vector)
    arrays = len(template.arrays.streams)
    moves = arrays / sizes.vector
    waits = np.where(sizes.splits, sizes.chunks / 2.0, 0.0) * sizes.sums
    fixed = BOOKKEEPING + 2.0 * sizes.sums * np.where(sizes.groups > 1, sizes.groups, 0) + waits
    occupancy = Occupancy(target, sizes.blocks, sizes.threads, sizes.registers, sizes.shared_bytes)
    instructions = (padded * (own + joins + moves) + tiles * sizes.threads * fixed) / WARP
    main = float(template.workload.least_bytes)
    again = tiles * sizes.sums * sizes.block_rows * sizes.real * waits
    steps = np.where(sizes.splits, 1, sizes.chunks)
    barriers = sizes.sums * (1.0 * (sizes.groups > 1) + 2.0 * sizes.splits)
    return filled(
        {
            "flops": padded * (own + joins),
            "useful_flops": elements * max(1.0, own),
            "instructions": instructions * occupancy.starved + occupancy.waits(steps),
            "register_bytes": tiles * sizes.slot_bytes * sizes.sums * (1.0 + sizes.groups),
            "near_bytes": main + again,
            "middle_bytes": main + again,
            "main_bytes": main,
            "packing_bytes": 0.0,
            "epilogue_elements": padded,
            "far_fraction": min(main / target.l2_bytes, 1e6),
            "vector_fraction": elements / padded,
            "intensity": (own + joins) / moves,
            "main_loop_trips": steps,
            "tile_visits": tiles,
            "synchronisations": steps * barriers,
            **occupancy.quantities(sizes.vectors),
            **occupancy.flight(template.arrays.element_bytes * sizes.elements),
        },
        c["vector"].shape,
    )


def _lane_joins(sizes: ScanSizes) -> Any:
    """Return the instructions by which lanes join the states of a vector: shuffles and sums."""
    return np.where(sizes.lanes > 1, 2.0 * np.log2(sizes.lanes) + 4.0, 0.0)
