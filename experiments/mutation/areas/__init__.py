"""All areas, first what decides whether a kernel is right. An unseen change costs most there."""

from __future__ import annotations

from experiments.mutation.areas import cpu_kernels, emulating, gpu_kernels, measuring, searching
from experiments.mutation.areas.area import Area

AREAS = (
    *measuring.AREAS,
    *searching.AREAS,
    *cpu_kernels.AREAS,
    *emulating.AREAS,
    *gpu_kernels.AREAS,
)

__all__ = ["AREAS", "Area"]
