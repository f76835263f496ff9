"""Work and memory traffic of reductions along kept axes on a GPU.

Names and units are those of ``spaces.quantities``.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.rules import LEAST_THREADS
from tilewright.spaces.cuda.kept.rules import held_elements, registers
from tilewright.spaces.cuda.kept.sizes import KeptSizes, width
from tilewright.spaces.cuda.occupancy import ANSWER, LINE, LINE_SLOTS, Occupancy
from tilewright.spaces.cuda.scalar_math import CALL_INSTRUCTIONS
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.derivation.kept.traffic import loads_by_turns
from tilewright.spaces.derivation.kept.view import KeptView
from tilewright.spaces.derivation.work import work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns
from tilewright.spaces.workloads.workload import Workload

JOIN = 6.0
"""Cost of adding one more number of another part, in barriers.

The thread that adds it waits for L2, for some numbers at a time. Calibrated on 26 schedules of sums
of columns on an H200.
"""
BOOKKEEPING = 40
"""Instructions of a thread to find its place."""


def kept_quantities(
    workload: Workload, view: KeptView, target: CudaTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Return every quantity of ``spaces.quantities``, one float64 array each.

    Threads have tasks of their own: many of them keep a multiprocessor busy, and the blocks that it
    has at a time begin and end together.
    """
    c = widened(columns)
    sizes = KeptSizes(view, c)
    kept = float(prod(loop.extent for loop in view.kept))
    taps = float(prod(loop.extent for loop in view.taps))
    padded = 1.0 * sizes.tasks * sizes.outputs
    counted = work(view.program)
    useful = float(max(1, counted.flops + counted.arithmetic + counted.special))
    operations = (useful + (CALL_INSTRUCTIONS - 1) * counted.special) / (kept * taps)
    loads, bytes, lines = _loads(view, c)
    threads, parts = c["threads"], sizes.parts
    used = np.minimum(registers(view, c), target.registers_per_thread)
    occupancy = Occupancy(target, sizes.blocks, threads, used, sizes.shared_bytes)
    merged = 2.0 * sizes.workspace_bytes + 8.0 * (c["reduction_threads"] > 1) * padded * parts
    main = float(workload.least_bytes)
    filled_by = occupancy.quantities(sizes.outputs)
    busy = sizes.blocks * threads / (LEAST_THREADS * target.multiprocessors)
    busy = np.minimum(busy, _in_flight(sizes, occupancy, bytes) / target.bandwidth / ANSWER)
    reads = padded * taps * bytes
    quantities: dict[str, Any] = {
        "flops": useful * padded / kept,
        "useful_flops": useful,
        "instructions": (
            padded * taps * (operations + loads + LINE_SLOTS * lines)
            + BOOKKEEPING * sizes.blocks * threads
        )
        / WARP,
        "register_bytes": reads,
        "near_bytes": np.minimum(reads, main * np.maximum(1.0, taps / c["coarsening"])),
        "middle_bytes": main + merged,
        "main_bytes": main,
        "packing_bytes": merged,
        "epilogue_elements": padded,
        "far_fraction": main / target.l2_bytes,
        "vector_fraction": kept / padded,
        "intensity": operations / np.maximum(loads, 1e-3),
        "main_loop_trips": taps / sizes.taps_written_out / parts,
        "tile_visits": sizes.blocks / occupancy.resident,
        "synchronisations": 1.0 * (c["reduction_threads"] > 1)
        + (c["splits"] > 1) * (1 + JOIN * _joined(sizes)),
        **filled_by,
        "worker_fraction": np.minimum(filled_by["worker_fraction"], busy),
        **occupancy.flight(4 * sizes.outputs),
    }
    return filled(quantities, c["vector"].shape)


def _joined(sizes: KeptSizes) -> Any:
    """Return the numbers of other blocks that a thread of the last one adds, one after the
    other."""
    return ceil_div(sizes.values["splits"], sizes.values["reduction_threads"]) * sizes.outputs


def _in_flight(sizes: KeptSizes, occupancy: Occupancy, bytes: Any) -> Any:
    """Return the bytes that all threads with a task ask for at a time.

    ``bytes`` are those of each accumulator and tap. Memory is fast only where many are in flight
    (Little's law).
    """
    asked = bytes * sizes.outputs * sizes.taps_written_out * sizes.values["prefetch"]
    at_once = np.minimum(1.0, occupancy.slots / sizes.blocks)
    return asked * sizes.tasks * sizes.parts * at_once


def _loads(view: KeptView, c: Any) -> tuple[Any, Any, Any]:
    """Return instructions and bytes of loads for each accumulator and tap, and lines of L1.

    Lanes whose vectors lie apart, as those of windows at every second place, touch more lines.
    """
    count: Any = 0.0
    bytes: Any = 0.0
    lines: Any = 0.0
    held = held_elements(view, c) > 0
    for read in view.element_reads:
        access = view.reads[read]
        own = loads_by_turns(view, access, c)
        step = access.step(view.lane.name)
        at_once = np.minimum(width(view, access, 16), c["vector"]) if step == 1 else 1.0
        at_once = np.where(held & (step != 1), c["coarsening"] * 2.0, at_once)
        instructions = own / (at_once if step else c["vector"])
        count = count + instructions
        bytes = bytes + own * access.array.element.bytes
        apart = LINE if step is None else c["vector"] * abs(step) * access.array.element.bytes
        lines = lines + instructions * np.clip(WARP * apart / LINE, 1, WARP)
    return count, bytes, lines
