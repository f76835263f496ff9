"""Work and memory traffic over ranges; names and units are those of ``spaces.quantities``.

Rows are taken to be of average length, but for the longest one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import LINE_BYTES
from tilewright.spaces.cpu.ragged.rules import ENTRIES
from tilewright.spaces.cpu.tiles.decisions import registers
from tilewright.spaces.cpu.traffic import CALL_INSTRUCTIONS, footprints, shares, stays_far
from tilewright.spaces.derivation.ragged.traffic import (
    gathered_elements,
    inner_points,
    left_elements,
)
from tilewright.spaces.derivation.ragged.view import RaggedView
from tilewright.spaces.derivation.work import work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.ragged.template import RaggedTemplate

ROW = 12.0
"""Instructions to find a row, and to begin and end a step."""
STREAMS = 2.0
"""Instructions to fetch values and indices of entries ahead of time."""
ENTRY = 4.0
"""Instructions of an entry beside its vectors: its index, and the loop."""


def ragged_quantities(template: RaggedTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    c = widened(columns)
    view, cpu, lanes = template.view, template.cpu, template.lanes
    element, workers = template.element.bytes, c["workers"]
    counted = work(view.program)
    useful = float(max(1, counted.flops + counted.arithmetic + counted.special))
    least = float(template.workload.least_bytes)
    loaded, turns, useful_lanes, all_lanes = _vectors(template, c)
    gathered = gathered_elements(view) * element
    left = left_elements(view) * element * view.entries
    finds = view.has_rows and not view.range.pointers
    starts = 8.0 * (view.rows + 1) * finds
    split = c["parallel_over"] == ENTRIES
    merged = 2.0 * workers * element * max(template.lane_extents, default=1) * split
    asked = turns * np.where(c["prefetch"] > 0, 1.0, 0.0) * ceil_div(element * lanes, LINE_BYTES)
    main = gathered * np.where(stays_far(cpu, least), 0.0, 1.0)
    longest = template.longest_row
    uneven = np.where(split, 1.0, np.maximum(1.0, workers * longest / view.entries))
    used = registers(c["unroll"], c["vectors"])
    quantities: dict[str, Any] = {
        "flops": useful * all_lanes / useful_lanes,
        "useful_flops": useful,
        "instructions": 2.0 * loaded
        + asked
        + np.where(c["stream_prefetch"] > 0, STREAMS * view.entries / c["unroll"], 0.0)
        + ENTRY * turns / c["unroll"]
        + ROW * view.rows * len(view.steps)
        + CALL_INSTRUCTIONS * counted.special / lanes,
        "register_bytes": element * lanes * loaded,
        "near_bytes": least + gathered + 2 * left + starts + merged,
        "middle_bytes": least + gathered + starts + merged,
        "main_bytes": least + main,
        "packing_bytes": 2 * starts,
        "epilogue_elements": float(sum(o.output.size for o in view.outputs)),
        "registers": used,
        "register_fraction": used / cpu.vector_registers,
        **footprints(cpu, _row_bytes(view) * element, _row_bytes(view) * element * longest),
        "far_fraction": least / cpu.l3_bytes,
        "independent_chains": c["vectors"] * c["unroll"] * 1.0,
        "vector_fraction": useful_lanes / all_lanes,
        "intensity": useful / lanes / np.maximum(1.0, loaded),
        "main_loop_trips": np.maximum(1.0, view.entries / view.rows / c["unroll"]),
        "tile_visits": float(view.rows * len(view.steps)),
        "synchronisations": (1.0 + finds) * (workers > 1) + split,
        **shares(cpu, workers, uneven),
    }
    return filled(quantities, c["vectors"].shape)


def _vectors(template: RaggedTemplate, c: Any) -> tuple[Any, Any, float, Any]:
    """Compute the loads of vectors, the turns of loops over entries, and the lanes of all steps:
    those that count, and all."""
    view, lanes = template.view, template.lanes
    loads: Any = 0.0
    turns: Any = 0.0
    counting, every = 0.0, 0.0
    for step in view.steps:
        if step.counts is not None:
            continue
        points = float(view.entries) * inner_points(view, step)
        if step.lane == view.range.entry:
            vectors: Any = points / lanes + view.rows / 2
            blocks: Any = 1.0 / lanes
        else:
            extent = view.program.extent[step.lane]
            vectors = points / extent * ceil_div(extent, lanes)
            whole = ceil_div(extent, c["vectors"] * lanes)
            blocks = whole * inner_points(view, step) / extent
        loads = loads + vectors * max(1, len(step.body.value_reads))
        turns = turns + view.entries * blocks
        counting += points
        every += float(np.max(vectors)) * lanes
    return np.maximum(1.0, loads), np.maximum(1.0, turns), max(1.0, counting), max(1.0, every)


def _row_bytes(view: RaggedView) -> float:
    """Return the number of elements that all steps of a row read for one entry."""
    return sum(float(inner_points(view, step)) for step in view.steps) + 1.0
