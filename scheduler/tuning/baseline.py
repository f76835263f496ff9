"""Measure the baseline of a tuning run: the machine's peak, and NumPy's BLAS."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from tilewright.measure.records.measurement import NUMPY
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.cpu.peak import MachinePeaks

SHARE = 0.2  # largest share of a run that measuring the baseline may take
PEAK_SECONDS = 5.0  # duration of measuring the peaks of a machine for the first time


@dataclass(frozen=True)
class Baseline:
    """Speeds that kernels are compared with; each is None if it is not known.

    ``peak_gflops`` are the multiply-adds of the workload's element type that the machine was
    seen to do, in GFLOP/s; ``numpy_seconds`` is the latency of NumPy's product.
    """

    workload: Workload
    peak_gflops: float | None = None
    numpy_seconds: float | None = None

    @property
    def rivals(self) -> tuple[str, ...]:
        """Libraries that can be timed in turns with kernels."""
        return (NUMPY,) if self.numpy_seconds else ()

    @property
    def start(self) -> float:
        """Seconds until these can be timed."""
        if not self.rivals:
            return 0.0
        from tilewright.measure.baseline import expected_seconds

        return expected_seconds(self.workload, self.peak_gflops)

    def gflops(self, latency: float) -> float:
        """Return the GFLOP/s of a kernel of so many seconds, its epilogue's operations not
        counted."""
        return self.workload.flops / latency / 1e9

    def rate(self, latency: float) -> str:
        """Return the rate of a kernel with this latency in seconds, with its unit."""
        value, unit = self.workload.rate(latency)
        return f"{value:.1f} {unit}"

    def of_peak(self, latency: float) -> float | None:
        """Return the share of the machine's measured peak."""
        return self.gflops(latency) / self.peak_gflops if self.peak_gflops else None

    def over_numpy(self, latency: float) -> float | None:
        """Speed-up over NumPy's product."""
        return self.numpy_seconds / latency if self.numpy_seconds else None


def measure_baseline(workload: Workload, target: Target, seconds: float = inf) -> Baseline:
    """Measure this machine: a second or two, and some more the first time.

    What is expected to take longer than the ``seconds`` that there are is left out, since a
    product that has begun cannot be interrupted.
    """
    if not isinstance(target, CpuTarget):
        return Baseline(workload)
    from tilewright.measure.baseline import expected_seconds, numpy_seconds

    start = time.monotonic()
    peaks = _peaks(target, seconds)
    peak = peaks.gflops.get(workload.arithmetic[0]) if peaks and workload.intense else None
    left = seconds - (time.monotonic() - start)
    if expected_seconds(workload, peak) > left:
        return Baseline(workload, peak)
    return Baseline(workload, peak, numpy_seconds(workload, target.threads, left))


def _peaks(target: CpuTarget, seconds: float) -> MachinePeaks | None:
    """Return the peaks of this machine, measured now if they are not known and time allows."""
    from tilewright.measure.cpu.peak import known_peaks, measure_peaks

    return measure_peaks(target) if seconds >= PEAK_SECONDS else known_peaks(target)


def measure_baselines(
    workloads: Sequence[Workload], target: Target, seconds: float = inf
) -> list[Baseline]:
    """Measure a baseline of each workload (:func:`measure_baseline`), together in ``seconds``."""
    begun, baselines = time.monotonic(), []
    if isinstance(target, CpuTarget):
        _peaks(target, seconds)  # measured once, so that it takes none of the time of the first
    for place, workload in enumerate(workloads):
        left = seconds - (time.monotonic() - begun)
        baselines.append(measure_baseline(workload, target, left / (len(workloads) - place)))
    return baselines


def has_library(workload: Workload, target: Target) -> bool:
    """Return True if a library here computes ``workload``, so that kernels can be compared with
    it."""
    from tilewright.measure.baseline import serves

    return isinstance(target, CpuTarget) and serves(workload)
