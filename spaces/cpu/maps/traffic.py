"""Work and memory traffic of a map; names and units are those of ``spaces.quantities``.

Every array moves once. Stores into the caches first fetch the lines that they overwrite; narrow
tiles touch lines of what turns more than once; what is transposed passes through L1 twice more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spaces.algebra.integers import ceil_div
from spaces.cpu.maps.tiling import LINE
from spaces.derivation.work import work
from spaces.template import Columns

if TYPE_CHECKING:
    from spaces.cpu.maps.template import MapTemplate

FLOAT = 4
USABLE = 0.75
"""Share of a cache that what stays can keep."""


def map_quantities(template: MapTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Every quantity, one float64 array each."""
    values = {n: v.astype(np.int64) if v.dtype.kind == "i" else v for n, v in columns.items()}
    plane, cpu, lanes = template.plane, template.cpu, template.lanes
    t = template.tiling(values)
    elements = float(np.prod([loop.extent for loop in plane.view.loops]))
    planes = elements / (plane.height * plane.width)
    row_vectors = (plane.width // t.tile_columns) * ceil_div(t.tile_columns, lanes) + ceil_div(
        plane.width % t.tile_columns, lanes
    )
    vectors = planes * plane.height * row_vectors
    fraction = plane.width / (row_vectors * lanes)
    tiles = planes * t.row_tiles * t.column_tiles
    blocks = (
        len(plane.turned)
        * planes
        * plane.width
        * plane.height
        / (float(lanes) * min(lanes, plane.height))
        / fraction
    )

    counted = work(plane.view.program)
    useful = float(counted.flops + counted.arithmetic + counted.special)
    special = 20.0 * counted.special / elements
    operations = useful / elements + special
    streams = len(plane.view.loaded) + len(plane.view.outputs)
    read = sum(float(access.array.bytes) for access in plane.view.loaded)
    written = sum(float(output.array.bytes) for output in plane.view.outputs)
    turned = sum(float(access.array.bytes) for access in plane.turned)
    lines = np.maximum(1.0, LINE / t.tile_rows)  # times that a line of what turns is touched
    near = read + written + turned * (lines - 1)
    stored = written * np.where(values["stream"], 1.0, 2.0)
    resident = float(template.workload.least_bytes) <= USABLE * cpu.l3_bytes
    scratch = FLOAT * t.scratch_floats
    footprint = scratch + FLOAT * streams * np.minimum(t.tile_columns, plane.width)
    passing = 2.0 * elements * FLOAT * len(plane.turned)
    work_instructions = vectors * (streams + operations + 3 / values["unroll"])
    turning = blocks * lanes * (2 + np.log2(lanes) + 1.0 * values["ahead"])
    workers = values["workers"]
    quantities = {
        "flops": useful / fraction,
        "useful_flops": useful,
        "instructions": work_instructions + turning + 60 * tiles,
        "register_bytes": FLOAT * lanes * vectors * streams + passing,
        "near_bytes": near + np.where(scratch > USABLE * cpu.l1_bytes, passing, 0.0),
        "middle_bytes": near,
        "main_bytes": template.workload.least_bytes + (stored - written) * (not resident),
        "packing_bytes": passing,
        "epilogue_elements": 0.0,
        "registers": np.minimum(streams * values["unroll"] + lanes * bool(plane.turned), 1e9),
        "register_fraction": np.minimum(1.0, streams * values["unroll"] / cpu.vector_registers),
        "near_footprint": footprint,
        "near_fraction": footprint / cpu.l1_bytes,
        "middle_footprint": footprint,
        "middle_fraction": footprint / cpu.l2_bytes,
        "far_fraction": float(template.workload.least_bytes) / cpu.l3_bytes,
        "parallelism": workers,
        "worker_fraction": workers / cpu.threads,
        "imbalance": workers * t.share / np.stack(np.broadcast_arrays(*t.counts)).max(axis=0),
        "independent_chains": values["unroll"],
        "vector_fraction": fraction,
        "intensity": operations / len(plane.view.loaded) if plane.view.loaded else operations,
        "main_loop_trips": np.minimum(t.tile_columns, plane.width) / (lanes * values["unroll"]),
        "tile_visits": tiles,
        "synchronisations": workers > 1,
    }
    shape = values["tile_rows"].shape
    return {
        name: np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
        for name, value in quantities.items()
    }
