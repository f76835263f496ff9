"""Peak rates of a target: the roofs of ``costmodel.roofs.roofline``.

Nominal peaks come from the target's description alone, so they are the same in every process. If a
description lacks a value (a CPU's clock and memory), a typical server part stands in. The ratios
rank schedules, and a measured peak sets them right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

from tilewright.spaces.backends import backend, kinds
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

CPU_CLOCK = 3.0e9
CPU_BANDWIDTH = 100.0e9
CPU_BANDWIDTH_PER_THREAD = 12.0e9
CPU_VISIT_CYCLES = 40.0  # cycles to enter and leave the main loop of a tile
GPU_VISIT_CYCLES = 1000.0


@dataclass(frozen=True)
class Peaks:
    """Rates of all workers together.

    ``flops`` counts a multiply and an add as two. Bandwidths are bytes a second into registers,
    near, middle and main memory. ``visits`` are output tiles entered and left, ``elements``
    vector operations on output elements, each a second. ``chains`` are the independent
    accumulations a worker needs to keep its pipes full. ``synchronisation`` and ``launch`` are
    seconds each.
    """

    flops: float
    instructions: float
    register_bandwidth: float
    near_bandwidth: float
    middle_bandwidth: float
    main_bandwidth: float
    visits: float
    elements: float
    chains: float
    synchronisation: float
    launch: float


@dataclass(frozen=True)
class MeasuredPeaks:
    """Peak rates measured on a machine with all its threads, None where not measured.

    They are float32 FLOP/s, and bytes/s as in :class:`Peaks` (read from L1, L2, L3 and memory on a
    CPU).
    """

    flops: float | None = None
    register_bandwidth: float | None = None
    near_bandwidth: float | None = None
    middle_bandwidth: float | None = None
    main_bandwidth: float | None = None


@lru_cache
def peaks_for(workload: Workload, target: Target, measured: MeasuredPeaks | None = None) -> Peaks:
    """Return the peaks for the element types of ``workload``, corrected by what was measured."""
    fields = target.to_json()
    kind = target.kind if target.kind in kinds() else "cpu"  # a typical CPU for recorded devices
    float32, peaks = backend(kind).part("rates")(workload, fields)
    known = {k: v for k, v in asdict(measured or MeasuredPeaks()).items() if v is not None}
    known["flops"] = peaks.flops * known.get("flops", float32) / float32
    return replace(peaks, **known)


def cpu_rates(workload: Workload, fields: Mapping[str, Any]) -> tuple[float, Peaks]:
    """Nominal FLOP/s of float32, and all peaks for the workload's types."""
    threads = float(fields.get("threads", 1))
    vector = float(fields.get("vector_bytes", 16))
    cycles = CPU_CLOCK * threads
    float32 = cycles * 2 * (vector / 4) * (2 if fields.get("fma", True) else 1)
    rate = 4 / dtype(workload.accumulator).bytes
    if fields.get("bf16_dot") and set(workload.arithmetic) == {"bfloat16"}:
        rate *= 2
    return float32, Peaks(
        flops=float32 * rate,
        instructions=cycles * 4,
        register_bandwidth=cycles * 2 * vector,
        near_bandwidth=cycles * vector / 2,
        middle_bandwidth=cycles * vector / 4,
        main_bandwidth=min(threads * CPU_BANDWIDTH_PER_THREAD, CPU_BANDWIDTH),
        visits=cycles / CPU_VISIT_CYCLES,
        elements=cycles * vector / 4,
        chains=8.0,  # two pipes, four cycles of latency
        synchronisation=2e-6,
        launch=1e-7,
    )


def gpu_rates(workload: Workload, fields: Mapping[str, Any]) -> tuple[float, Peaks]:
    """Nominal FLOP/s of float32, and all peaks for the workload's types."""
    cycles = float(fields["clock"]) * fields["multiprocessors"]
    widest = max((dtype(name).bytes for name in workload.arithmetic), default=4)
    if widest <= 2:
        flops = fields["tensor_flops"] * 2 / widest
    else:
        flops = fields["float64_flops"] if widest == 8 else fields["float32_flops"]
    return cycles * fields["float32_flops"], Peaks(
        flops=cycles * flops,
        instructions=cycles * 4,
        register_bandwidth=cycles * 128,
        near_bandwidth=cycles * 64,
        middle_bandwidth=cycles * 64,
        main_bandwidth=float(fields["bandwidth"]),
        visits=cycles / GPU_VISIT_CYCLES,
        elements=cycles * 128,
        chains=1.0,  # other warps fill the pipes
        synchronisation=1e-8,
        launch=3e-6,
    )
