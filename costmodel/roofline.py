"""An analytic estimate of latency, for when nothing was measured yet.

A kernel can be no faster than its busiest resource allows (the roofline: Williams, Waterman and
Patterson, "Roofline", CACM 52(4), 2009), here with one roof for arithmetic, one for issue slots
and one for each level of memory. The resources overlap imperfectly, so their times are joined by
a p-norm, a smooth maximum; what runs before or after the main loop is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spaces.dtypes import dtype
from spaces.target import Target
from spaces.workload import Workload

OVERLAP = 3.0  # p of the p-norm: 1 adds the times up, infinity takes the longest
CPU_CLOCK = 3.0e9
GPU_CLOCK = 1.5e9
CPU_BANDWIDTH_PER_THREAD = 12.0e9
CPU_BANDWIDTH = 100.0e9
GPU_BANDWIDTH = 2.0e12
CPU_FMA_CHAINS = 8.0  # two pipes, four cycles of latency each
FUNCTION_CYCLES = 12.0  # a transcendental function of one vector, in an epilogue


@dataclass(frozen=True)
class Peaks:
    """What the whole target can do in a second, all workers together.

    ``flops`` counts a multiply and an add as two. Bandwidths are bytes per second into registers,
    near, middle and main memory. ``elements`` is vector operations on output elements.
    ``chains`` are the independent accumulations a worker needs to keep its pipes full.
    ``synchronisation`` and ``launch`` are seconds each.
    """

    flops: float
    instructions: float
    register_bandwidth: float
    near_bandwidth: float
    middle_bandwidth: float
    main_bandwidth: float
    elements: float
    chains: float
    synchronisation: float
    launch: float

    def measured(self, flops: float | None, main_bandwidth: float | None) -> Peaks:
        """These peaks corrected by measured ones (FLOP/s, bytes/s).

        What happens on the chip runs at the clock, and so scales as the FLOP rate does.
        """
        ratio = 1.0 if flops is None else flops / self.flops
        return replace(
            self,
            flops=self.flops * ratio,
            instructions=self.instructions * ratio,
            register_bandwidth=self.register_bandwidth * ratio,
            near_bandwidth=self.near_bandwidth * ratio,
            middle_bandwidth=self.middle_bandwidth * ratio,
            elements=self.elements * ratio,
            main_bandwidth=main_bandwidth or self.main_bandwidth,
        )


@dataclass(frozen=True)
class MeasuredPeaks:
    """What this machine was seen to reach with all its threads: float32 FLOP/s and bytes/s read
    from main memory. None where it was not measured."""

    flops: float | None = None
    main_bandwidth: float | None = None


def nominal_peaks(target: Target) -> Peaks:
    """Peaks for float32 from the description of ``target`` alone.

    Absolute values are typical of server parts; their ratios are what ranks schedules.
    """
    fields = target.to_json()
    if fields["kind"] == "cuda":
        return _gpu_peaks(fields)
    return _cpu_peaks(fields)


def _cpu_peaks(fields: Mapping[str, Any]) -> Peaks:
    threads = float(fields.get("threads", 1))
    vector = float(fields.get("vector_bytes", 16))
    cycles = CPU_CLOCK * threads
    return Peaks(
        flops=cycles * 2 * (vector / 4) * (2 if fields.get("fma", True) else 1),
        instructions=cycles * 4,
        register_bandwidth=cycles * 2 * vector,
        near_bandwidth=cycles * vector / 2,
        middle_bandwidth=cycles * vector / 4,
        main_bandwidth=min(threads * CPU_BANDWIDTH_PER_THREAD, CPU_BANDWIDTH),
        elements=cycles * vector / 4,
        chains=CPU_FMA_CHAINS,
        synchronisation=2e-6,
        launch=1e-7,
    )


def _gpu_peaks(fields: Mapping[str, Any]) -> Peaks:
    cycles = GPU_CLOCK * float(fields.get("sms", 100))
    bandwidth = float(fields.get("bandwidth", GPU_BANDWIDTH))
    return Peaks(
        flops=cycles * 256,
        instructions=cycles * 4,
        register_bandwidth=cycles * 128,
        near_bandwidth=cycles * 64,
        middle_bandwidth=cycles * 64,
        main_bandwidth=bandwidth,
        elements=cycles * 128,
        chains=1.0,
        synchronisation=1e-8,
        launch=3e-6,
    )


def peaks_for(workload: Workload, target: Target, measured: MeasuredPeaks | None = None) -> Peaks:
    """Peaks for the element types of ``workload``, corrected by what was measured."""
    peaks = nominal_peaks(target)
    if measured is not None:
        peaks = peaks.measured(measured.flops, measured.main_bandwidth)
    rate = _rate(workload, target.to_json())
    return replace(peaks, flops=peaks.flops * rate)


def _rate(workload: Workload, fields: Mapping[str, Any]) -> float:
    """FLOP rate of the workload's types over that of float32."""
    rate = 4 / dtype(workload.accumulator).bytes
    narrow = max((operand.element.bytes for operand in workload.inputs), default=4)
    if fields["kind"] == "cuda" and narrow <= 2:
        return 8.0 * 2 / narrow  # tensor cores
    if fields.get("bf16_dot") and all(o.dtype == "bfloat16" for o in workload.inputs):
        return 2.0 * rate
    return rate


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
    busy = np.clip(np.minimum(q["worker_fraction"], 1 / q["imbalance"]), 1e-6, 1.0)
    starved = np.maximum(1.0, peaks.chains / np.maximum(q["independent_chains"], 1.0))
    spilled = 1.0 + 4.0 * np.maximum(q["register_fraction"] - 1.0, 0.0)
    near = q["near_bytes"] + q["register_bytes"] * _missing(q["near_fraction"])
    middle = q["middle_bytes"] + q["near_bytes"] * _missing(q["middle_fraction"])
    main = q["main_bytes"] + q["middle_bytes"] * _missing(q["far_fraction"])
    on_chip = (
        q["flops"] * starved * spilled / peaks.flops,
        q["instructions"] / peaks.instructions,
        q["register_bytes"] * spilled / peaks.register_bandwidth,
        near / peaks.near_bandwidth,
        middle / peaks.middle_bandwidth,
    )
    loop = sum((time / busy) ** OVERLAP for time in on_chip)
    loop = (loop + (main / peaks.main_bandwidth) ** OVERLAP) ** (1 / OVERLAP)
    aside = q["packing_bytes"] / peaks.middle_bandwidth
    aside = aside + q["epilogue_elements"] * _epilogue_cycles(workload) / peaks.elements
    waits = q["synchronisations"] * peaks.synchronisation + peaks.launch
    seconds: np.ndarray = loop + aside / busy + waits
    return seconds


def _missing(fraction: np.ndarray) -> np.ndarray:
    """Share of accesses that miss a memory filled to ``fraction`` of its capacity."""
    return 1.0 - 1.0 / np.maximum(fraction, 1.0)


def _epilogue_cycles(workload: Workload) -> float:
    """Vector operations an output element costs: its operands, its functions, its store."""
    functions = len(workload.epilogue.functions) if workload.epilogue is not None else 0
    return 1.0 + len(workload.epilogue_inputs) + FUNCTION_CYCLES * functions
