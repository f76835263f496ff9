"""Which programs have kernels of maps on a CPU, and why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.maps.prelude import prelude
from tilewright.spaces.cpu.maps.registers import only_moved
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.derivation.maps.served import cached_plane, why_no_array
from tilewright.spaces.dtypes import DTYPES
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload


def why_no_map(workload: Workload, target: CpuTarget) -> str | None:
    """The reason in words; None if there are kernels."""
    if not isinstance(workload, Computation):
        return "it is a product of matrices; a map reduces nothing"
    try:
        plane = cached_plane(workload.program)
        prelude(workload, target)
    except InputError as reason:
        return str(reason)
    values = DTYPES if only_moved(plane) else FLOATS
    return why_no_array(plane, values, TABLE_TYPES, slices=True)
