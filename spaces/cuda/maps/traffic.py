"""Work and memory traffic of a map on a GPU; names and units are those of ``spaces.quantities``."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.cuda.maps.sizes import TILE, MapSizes, loops_inside, splits_sectors, width
from tilewright.spaces.cuda.occupancy import SECTOR, Occupancy
from tilewright.spaces.cuda.scalar_math import CALL_INSTRUCTIONS
from tilewright.spaces.cuda.target import VECTOR_BYTES, WARP, CudaTarget
from tilewright.spaces.derivation.maps.plane import ALONG, Plane
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.derivation.work import work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns
from tilewright.spaces.workloads.workload import Workload

BOOKKEEPING = 24
"""Instructions of a thread to find its place."""


def map_quantities(
    workload: Workload, plane: Plane, target: CudaTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Return every quantity of ``spaces.quantities``, one float64 array each."""
    c = widened(columns)
    sizes, view = MapSizes(plane, c), plane.view
    elements = float(np.prod([loop.extent for loop in view.loops]))
    turns = prod(loop.extent for loop in loops_inside(plane))
    padded = 1.0 * sizes.tiles * sizes.rows * sizes.columns * turns
    counted = work(view.program)
    useful = float(counted.flops + counted.arithmetic + counted.special)
    operations = useful / elements + (CALL_INSTRUCTIONS - 1) * counted.special / elements
    accesses = (*view.loaded, *view.outputs)
    widths = [_width(plane, access) for access in accesses]
    moves = sum(1.0 / np.minimum(w, c["vector"]) for w in widths) + len(plane.transposed)
    threads = sizes.threads
    registers = np.minimum(24 + sizes.thread_bytes // 4, target.registers_per_thread)
    occupancy = Occupancy(target, sizes.tiles, threads, registers, sizes.shared_bytes)
    main = float(workload.least_bytes)
    quantities = {
        "flops": useful * padded / elements,
        "useful_flops": useful,
        "instructions": (padded * (moves + operations) + BOOKKEEPING * sizes.tiles * threads)
        / WARP,
        "register_bytes": 2 * padded * sizes.transposed_bytes,
        "near_bytes": main + _split_bytes(sizes),
        "middle_bytes": main,
        "main_bytes": main,
        "packing_bytes": 0.0,  # a transpose stays in shared memory, while other blocks load
        "epilogue_elements": padded,
        "far_fraction": main / target.l2_bytes,
        "vector_fraction": elements / padded,
        "intensity": operations / moves,
        "main_loop_trips": sizes.chunks,
        "tile_visits": sizes.tiles,
        "synchronisations": 1.0 * bool(plane.transposed),
        **occupancy.quantities(sizes.chunks),
        **occupancy.flight(sizes.thread_bytes),
    }
    return filled(quantities, c["vector"].shape)


def _split_bytes(sizes: MapSizes) -> Any:
    """Return the bytes of sectors that lanes read beyond their own, where rows begin anywhere."""
    plane, values = sizes.plane, sizes.values
    first = sizes.values.get("lanes", TILE) == TILE
    written = [(output, sizes.columns) for output in plane.view.outputs]
    total: Any = 0.0
    for access, tile in [*((access, sizes.rows) for access in plane.transposed), *written]:
        bytes = access.array.element.bytes
        run = np.where(first, np.minimum(WARP * values["vector"], tile), tile) * bytes
        total += splits_sectors(plane, access) * access.array.bytes * (SECTOR - bytes) / run
    return total


def _width(plane: Plane, access: Access) -> int:
    """Return the most elements that are moved at once; 1 if they are not side by side."""
    moved = access in plane.view.outputs or access in plane.transposed
    return width(plane, access, VECTOR_BYTES) if moved or plane.kind(access) == ALONG else 1
