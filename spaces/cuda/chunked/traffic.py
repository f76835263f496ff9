"""Work and memory traffic of chunked kernels; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.spaces.cuda.chained.traffic import CALL_SLOTS
from tilewright.spaces.cuda.chunked.sizes import GROWN, READING, TERM, WEIGHT
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cuda.chunked.template import CudaChunked

_PRODUCT = 16 * 8 * 16
"""Terms of one ``mma.sync``."""
_LOADED = 512
"""Bytes of fragments that one ``ldmatrix`` of a warp loads."""


def chunked_quantities(template: CudaChunked, columns: Columns) -> dict[str, np.ndarray]:
    """Return every quantity, one float64 array each."""
    c = widened(columns)
    sizes, target, view = template.sizes, template.cuda, template.view
    segments, chunks = c["segments"], sizes.chunks(c)
    blocks, threads = sizes.blocks(c) * segments, sizes.threads(c)
    registers = np.minimum(sizes.registers(c), sizes.register_limit(target, c))
    occupancy = Occupancy(target, blocks, threads, registers, sizes.shared_bytes(c))
    chunk, wide, deep, warps = c["chunk"], sizes.columns(c), sizes.depth, c["warps"]
    rows, visits = chunk // FRAGMENT, 1.0 * sizes.blocks(c) * chunks
    pairs = chunk * chunk
    again = 1.0 - 1.0 / segments
    # scores, the sums of a chunk, the state read in two parts, and added to, by either launch
    terms = pairs * deep + chunk * (chunk + FRAGMENT) / 2 * wide
    terms = terms + (3 + again) * chunk * deep * wide
    products = visits * terms / _PRODUCT
    powers = view.decay is not None
    weighing = 3.0 + CALL_SLOTS * powers + len({GROWN, READING, TERM, WEIGHT} & {*sizes.numbers})
    chain = visits * (pairs * weighing + chunk * wide * (2.0 + powers))
    # what warps load of scores, of what they read the state with, of the matrix, of what they add
    own = sizes.score_rows(c)
    scores = chunk * deep * (warps / own + own)
    state = 2 * warps * chunk * deep
    sums = warps * rows * (rows + 1) / 2 * FRAGMENT**2 + 3 * chunk * wide
    loads = visits * (scores + state + sums) * 2 / _LOADED
    split = visits * deep * wide * 6
    trips = sizes.segment_chunks(c) * (1.0 + again)
    waits = occupancy.waits(trips / np.maximum(c["stages"] - 1, 1))
    issued = products + loads + (chain + split) / WARP + 60.0 * visits * warps
    states = sizes.workspace_bytes(c) * (1.0 + segments / 2.0)
    moved = visits * sizes.stage_bytes(c) * (1.0 + again) + states
    running = np.minimum(blocks, occupancy.slots)
    middle = running * sizes.stage_bytes(c) * c["stages"]
    least = float(template.workload.least_bytes)
    points = view.batches * float(view.key.extent) * view.width.extent
    return filled(
        {
            "flops": 2.0 * visits * terms + chain,
            "useful_flops": 4.0 * points * view.depth,
            "instructions": issued * occupancy.starved + waits,
            "register_bytes": loads * _LOADED,
            "near_bytes": moved,
            "middle_bytes": moved,
            "main_bytes": least,
            "packing_bytes": 0.0,
            "epilogue_elements": visits * chunk * wide,
            "middle_footprint": middle,
            "middle_fraction": middle / target.l2_bytes,
            "far_fraction": min(least / target.l2_bytes, 1e6),
            "vector_fraction": points / (visits * chunk * wide),
            "intensity": products / loads,
            "main_loop_trips": trips,
            "tile_visits": visits,
            "synchronisations": 2.0 * trips,
            **occupancy.quantities(2 * c["fragments"] * rows),
        },
        next(iter(columns.values())).shape,
    )
