"""Work and memory traffic along kept axes; names and units are those of ``spaces.quantities``.

A read is loaded once for all outputs of a tile that take the same element. What the next tile reads
again comes from the nearest cache that keeps what all tiles in between have read.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.abi import FLOAT, LINE
from tilewright.spaces.cpu.kept.held import has_room
from tilewright.spaces.cpu.kept.rules import registers, terms
from tilewright.spaces.cpu.kept.tiling import INNER, MIDDLE, REDUCED, Tiling
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.traffic import CALL_INSTRUCTIONS, USABLE, even_shares, footprints
from tilewright.spaces.derivation.kept.held import same_in_tile, tap_index
from tilewright.spaces.derivation.kept.traffic import loads_by_turns
from tilewright.spaces.derivation.kept.view import Bounded, KeptView
from tilewright.spaces.derivation.work import work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.kept.template import KeptTemplate

TRANSPOSE_SLOTS = 2.5
"""Issue slots that it takes to transpose one element of a block."""


def kept_quantities(template: KeptTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    values = widened(columns)
    view, cpu, lanes = template.view, template.cpu, template.lanes
    element, tiling = template.element.bytes, template.tiling(values)
    workers = values["workers"]
    kept = float(prod(loop.extent for loop in view.kept))
    taps = float(prod(loop.extent for loop in view.taps))
    lane_vectors = ceil_div(view.lane.extent, lanes)
    outputs = kept / view.lane.extent * lane_vectors
    tiles = np.prod(np.stack(np.broadcast_arrays(*tiling.counts)).astype(float), axis=0)
    counted = work(view.program)
    useful = float(max(1, counted.flops + counted.arithmetic + counted.special))
    operations = useful / (kept * taps) + CALL_INSTRUCTIONS * counted.special / (kept * taps)
    accesses = [view.reads[read] for read in view.element_reads]
    loads = sum(_loads(view, access, values) for access in accesses)
    shares = [_lines_a_load(view, access, cpu) for access in accesses]
    lines = sum(
        share * _loads(view, access, values) for share, access in zip(shares, accesses, strict=True)
    )
    trips = taps / tiling.taps_written_out
    instructions = outputs * taps * (operations + loads) + 6.0 * tiles * (trips + 2)
    instructions += TRANSPOSE_SLOTS * _transposed(view, tiling, values)
    least, written = float(template.workload.least_bytes), _written(view)
    again = _again(template, values)
    split = values["parallel_over"] == REDUCED
    merged = 2.0 * element * kept * workers * split
    stored = written * np.where(values["streaming_stores"], 0.0, 1.0) * (least > cpu.l3_bytes)
    busy = np.where(split, workers, tiling.sharers)
    count = np.where(split, view.taps[0].extent if view.taps else 1, tiling.longest)
    used = registers(values)
    quantities: dict[str, Any] = {
        "flops": useful * outputs * lanes / kept,
        "useful_flops": useful,
        "instructions": instructions + merged / (element * lanes),
        "register_bytes": element * lanes * outputs * taps * lines,
        "near_bytes": least + again["near"] + written + merged,
        "middle_bytes": least + again["middle"] + written + merged,
        "main_bytes": least + stored,
        "packing_bytes": 0.0,
        "epilogue_elements": outputs * lanes,
        "registers": used,
        "register_fraction": used / cpu.vector_registers,
        "far_fraction": least / cpu.l3_bytes,
        "independent_chains": values["coarsening"] * values["vectors"],
        "vector_fraction": kept / (outputs * lanes),
        "intensity": operations / np.maximum(loads, 1e-3),
        "main_loop_trips": trips,
        "tile_visits": tiles + terms(template, values),
        "synchronisations": 1.0 * (workers > 1) + split,
        **footprints(cpu, again["row"], again["plane"]),
        **even_shares(cpu, busy, count),
    }
    return filled(quantities, values["coarsening"].shape)


def _written(view: KeptView) -> float:
    return float(sum(output.array.bytes for output in view.outputs))


def _loads(view: KeptView, access: Bounded, c: Any) -> Any:
    """Compute the loads of a read for each vector of outputs and each tap; lanes that lie apart
    take more."""
    shared = loads_by_turns(view, access, c)
    far = abs(access.step(view.lane.name) or 0)
    if far == 0:
        return shared / c["vectors"]
    if far == 2:
        return shared * 3.0
    return shared * np.where((far > 2) & np.logical_not(_is_transposed(view, access, c)), 10.0, 1.0)


def _lines_a_load(view: KeptView, access: Bounded, cpu: CpuTarget) -> float:
    """Compute the lines of a cache that a load of a vector reads in the mean: more than one where
    vectors of neighbouring taps overlap, for then they begin anywhere in a line."""
    steps = (abs(access.step(loop.name) or 0) for loop in view.taps)
    vector = cpu.lanes(FLOAT)
    overlap = access.step(view.lane.name) == 1 and any(0 < step < vector for step in steps)
    return 1 + (vector - 1) / LINE if overlap else 1.0


def _transposed(view: KeptView, tiling: Tiling, c: Any) -> Any:
    """Compute the number of elements that are transposed: those of a block of lanes at all taps,
    for each turn of the loop over such blocks."""
    *others, blocks = tiling.counts
    outside = np.where(c["order"] == INNER, prod(others), prod(others[:-1]))
    entries = blocks * np.where(np.isin(c["order"], (INNER, MIDDLE)), outside, 1)
    taps = prod(loop.extent for loop in view.taps)
    rows = round_up(max(taps, tiling.lanes), tiling.lanes)
    reads = sum(_is_transposed(view, view.reads[read], c) for read in view.element_reads)
    return 1.0 * reads * entries * rows * c["vectors"] * tiling.lanes


def _is_transposed(view: KeptView, access: Bounded, c: Any) -> Any:
    """Tell whether a read is transposed: its lanes lie far apart, and it may be."""
    far = abs(access.step(view.lane.name) or 0)
    turns = has_room(view) and far > 2 and tap_index(view, access) is not None
    return turns * same_in_tile(view, access, c)


def _again(template: KeptTemplate, c: Any) -> dict[str, Any]:
    """Compute the bytes that are read again from beyond a cache, and the bytes that caches would
    have to keep: the windows of a row of tiles, and of a plane of them."""
    view = template.view
    read = float(sum(view.reads[r].array.bytes for r in view.element_reads))
    total = prod(loop.extent for loop in view.kept)
    lane = view.lane.extent
    block = np.where(c["order"] == INNER, lane, np.minimum(c["vectors"] * template.lanes, lane))
    rows = [1, *(loop.extent for loop in view.kept[:-1])]
    windows = max([1, *(loop.extent for loop in view.taps)])
    inner = np.where(np.isin(c["order"], (INNER, MIDDLE)), rows[-1], prod(rows))
    row = read / total * block * inner * windows
    plane = read / total * lane * rows[-1] * windows
    repeated = read * (windows - 1)
    return {
        "row": row,
        "plane": np.broadcast_to(plane, row.shape),
        "near": repeated * (row > USABLE * template.cpu.l1_bytes),
        "middle": repeated * (row > USABLE * template.cpu.l2_bytes),
    }
