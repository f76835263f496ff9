"""An analytic estimate of latency, for when nothing was measured yet.

A kernel can be no faster than its busiest resource allows (the roofline: Williams, Waterman and
Patterson, "Roofline", CACM 52(4), 2009), here with one roof for arithmetic, one for issue slots
and one for each level of memory. The resources overlap imperfectly, so their times are joined by
a p-norm, a smooth maximum; what runs before or after the main loop is added.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.costmodel.roofs.peaks import Peaks
from tilewright.spaces.workloads.workload import Workload

OVERLAP = 3.0  # p of the p-norm: 1 adds the times up, infinity takes the longest
SPILL_COST = 4.0  # slowdown for each file of registers more than there is
FUNCTION_CYCLES = 12.0  # vector operations of a transcendental function in an epilogue


def ideal_seconds(workload: Workload, peaks: Peaks) -> float:
    """The roofline of the workload itself: no schedule is expected to beat it."""
    return max(
        workload.flops / peaks.flops, workload.least_bytes / peaks.main_bandwidth, peaks.launch
    )


def roofline_seconds(
    workload: Workload, quantities: Mapping[str, np.ndarray], peaks: Peaks
) -> np.ndarray:
    """Estimated latency (seconds) of each schedule, from its quantities (``spaces.quantities``).

    Shape: that of the quantities. NaN where the template did not report what is needed.
    """
    q = quantities
    busy = np.clip(q["worker_fraction"] / np.maximum(q["imbalance"], 1.0), 1e-6, 1.0)
    starved = np.maximum(1.0, peaks.chains / np.maximum(q["independent_chains"], 1.0))
    spilled = 1.0 + SPILL_COST * np.maximum(q["register_fraction"] - 1.0, 0.0)
    on_chip = (
        spilled * (q["flops"] * starved / peaks.flops + q["tile_visits"] / peaks.visits),
        q["instructions"] / peaks.instructions,
        q["register_bytes"] / peaks.register_bandwidth,
        q["near_bytes"] / peaks.near_bandwidth,
        q["middle_bytes"] / peaks.middle_bandwidth,
    )
    main = q["main_bytes"] / peaks.main_bandwidth
    loop = sum((time / busy) ** OVERLAP for time in on_chip) + main**OVERLAP
    packing = q["packing_bytes"] / peaks.middle_bandwidth
    epilogue = q["epilogue_elements"] * _epilogue_operations(workload) / peaks.elements
    waits = q["synchronisations"] * peaks.synchronisation + peaks.launch
    seconds: np.ndarray = loop ** (1 / OVERLAP) + (packing + epilogue) / busy + waits
    return seconds


def _epilogue_operations(workload: Workload) -> float:
    """Vector operations that an output element costs: its operands, functions and store."""
    beside = workload.matmul.epilogue_inputs if workload.matmul else workload.inputs
    return 1.0 + len(beside) + FUNCTION_CYCLES * len(workload.functions)
