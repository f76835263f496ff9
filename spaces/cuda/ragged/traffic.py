"""Work and memory traffic over ranges on a GPU; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.occupancy import LINE, LINE_SLOTS, SECTOR, Occupancy
from tilewright.spaces.cuda.ragged.sizes import ELEMENT, RaggedSizes
from tilewright.spaces.cuda.scalar_math import CALL_INSTRUCTIONS
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.ragged.traffic import (
    gathered_elements,
    inner_points,
    left_elements,
    longest_row,
)
from tilewright.spaces.derivation.work import work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cuda.ragged.template import CudaRagged

BOOKKEEPING = 40
"""Instructions of a thread to find its row."""
SEARCH = 12.0
"""Instructions of a turn of the search for a team's rows."""
COPIED = 12.0
"""Instructions to copy an element into another order."""
ENTRY = 6.0
"""Instructions of an entry beside those of its elements: its index, and tests."""


def ragged_quantities(template: CudaRagged, columns: Columns) -> dict[str, np.ndarray]:
    """Return every quantity, one float64 array each."""
    c = widened(columns)
    view, target, sizes = template.view, template.cuda, template.sizes(c)
    counted = work(view.program)
    useful = float(max(1, counted.flops + counted.arithmetic + counted.special))
    points, lanes, turns, loads, lines = _steps(sizes, template.element_bytes)
    operations = (useful + (CALL_INSTRUCTIONS - 1) * counted.special) / points
    occupancy = Occupancy(target, sizes.blocks, sizes.threads, sizes.registers, 0)
    search = np.where(sizes.splits, SEARCH * np.log2(view.rows + 2.0), 0.0)
    fixed = sizes.blocks * sizes.threads * (BOOKKEEPING + search)
    joined = len(view.steps) * sizes.teams * sizes.team * 2.0 * np.log2(sizes.team)
    instructions = (lanes * operations + loads + ENTRY * turns + fixed + joined) / WARP
    instructions = instructions + LINE_SLOTS * lines
    gathered = gathered_elements(view) * template.element_bytes
    between = ELEMENT * left_elements(view) * view.entries
    parts = 2.0 * np.where(sizes.splits, sizes.workspace_bytes, 0)
    main = float(template.workload.least_bytes)
    copied = 2.0 * sum(array.bytes for array in template.turned)
    instructions = instructions + COPIED * sum(array.size for array in template.turned) / WARP
    return filled(
        {
            "flops": useful * lanes / points,
            "useful_flops": useful,
            "instructions": instructions * occupancy.starved + occupancy.waits(_rounds(sizes)),
            "register_bytes": template.element_bytes * lanes,
            "near_bytes": main + gathered + 2 * between + parts + copied,
            "middle_bytes": main + gathered + parts + copied,
            "main_bytes": main,
            "packing_bytes": parts + copied,
            "epilogue_elements": float(sum(o.output.size for o in view.outputs)),
            "far_fraction": min(main / target.l2_bytes, 1e6),
            "vector_fraction": points / lanes,
            "intensity": lanes * operations / loads,
            "main_loop_trips": _rounds(sizes),
            "tile_visits": 1.0 * sizes.teams * len(view.steps),
            "synchronisations": 1.0 * sizes.splits + sizes.finds_starts + len(template.turned),
            **occupancy.quantities(sizes.accumulators * sizes.unroll),
            **occupancy.flight(template.element_bytes * sizes.accumulators * sizes.unroll),
            "imbalance": _imbalance(sizes, occupancy),
        },
        c["vector"].shape,
    )


def _steps(sizes: RaggedSizes, bytes: int) -> tuple[float, Any, Any, Any, Any]:
    """Return the points of all steps, the lanes that these take with those that idle, the threads'
    turns of loops over entries, their loads, and the lines that L1 serves."""
    view, points = sizes.view, 0.0
    lanes, turns, loads, lines = (np.zeros_like(sizes.team, dtype=float) for _ in range(4))
    for step in view.steps:
        if step.counts is not None:
            continue
        own = float(view.entries) * inner_points(view, step)
        reads = list(dict.fromkeys(step.body.value_reads))
        points += own
        if step.lane == view.range.entry:
            extent = view.program.extent[step.kept[-1]] if step.kept else 1
            each = np.minimum(sizes.accumulators, extent)
            chosen = sum(bool(view.places[read].entries) for read in reads)
            further = (len(reads) - chosen + 1) / each
            whole, own_loads = own, own * (chosen + further)
            own_lines = own * (chosen * SECTOR + further * bytes) / LINE
        else:
            extent, each = view.program.extent[step.lane], sizes.accumulators
            whole = own / extent * ceil_div(extent, sizes.columns) * sizes.columns
            own_loads = max(1, len(reads)) * whole / sizes.vector
            own_lines = own_loads * np.maximum(1 / sizes.lanes, sizes.vector * bytes / LINE)
        lanes = lanes + whole
        turns = turns + whole / each
        loads, lines = loads + own_loads, lines + own_lines
    return max(1.0, points), np.maximum(1.0, lanes), turns, np.maximum(1.0, loads), lines


def _rounds(sizes: RaggedSizes) -> Any:
    """Return how often a team waits for what it has asked for."""
    view = sizes.view
    rows = np.where(sizes.splits, sizes.items * view.rows / sizes.shared_items, 1.0)
    entries = view.entries / view.rows if view.has_rows else 1.0 * sizes.items
    return np.maximum(1.0, rows) * np.maximum(1.0, entries / (sizes.groups * sizes.unroll))


def _imbalance(sizes: RaggedSizes, occupancy: Occupancy) -> Any:
    """Return the work of the busiest team over the mean of those that run at once: of the longest
    row, which one team has unless teams share rows."""
    own = occupancy.quantities(1)["imbalance"]
    if not sizes.view.has_rows:
        return own
    mean = sizes.view.entries / np.minimum(occupancy.slots * sizes.block_teams, sizes.teams)
    return np.where(sizes.splits, own, np.maximum(own, longest_row(sizes.view) / mean))
