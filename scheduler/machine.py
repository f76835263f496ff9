"""Known speed limits of this machine, for estimates."""

from __future__ import annotations

from tilewright.costmodel.dataset import SpaceFor
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.costmodel.roofs.peaks import MeasuredPeaks
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target

GIGA = 1e9


def roofline(target: Target, space_for: SpaceFor = space_for) -> AnalyticModel:
    """Return the model that needs no data, by the peaks of ``target`` where these were measured
    before.

    Nothing is measured for it, so that an answer never takes seconds: ``tilewright tune`` and
    ``doctor`` do that.
    """
    return AnalyticModel(measured_peaks(target), space_for)


def measured_peaks(target: Target) -> MeasuredPeaks | None:
    """Return the peaks measured on this machine; None if ``target`` is another, or was not
    measured."""
    if not isinstance(target, CpuTarget):
        return None
    from tilewright.measure.cpu.peak import known_peaks

    peaks = known_peaks(target)
    if peaks is None:
        return None
    read = peaks.read_gbs
    return MeasuredPeaks(
        flops=GIGA * peaks.fma_gflops,
        register_bandwidth=GIGA * read["near"],
        near_bandwidth=GIGA * read["middle"],
        middle_bandwidth=GIGA * read["far"],
        main_bandwidth=GIGA * read["main"],
    )
