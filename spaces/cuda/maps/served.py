"""The programs that have kernels of maps on a GPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.abi import C_TYPES, FLOATS
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.maps.plane import Plane
from tilewright.spaces.derivation.maps.served import cached_plane, why_no_array
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.workload import Workload

FLOATS8 = ("float8_e4m3fn", "float8_e5m2")
TABLES = ("int32", "int8", "int64", "uint8", "uint16", "bool")


def why_no_map(workload: Workload, target: CudaTarget) -> str | None:
    """Return why a workload has no such kernels, in words; None if it has."""
    try:
        plane = cached_plane(workload.program)
        scalar_math.prelude(workload.functions)
    except InputError as reason:
        return str(reason)
    return why_no_array(plane, _values(plane, target), TABLES)


def _values(plane: Plane, target: CudaTarget) -> tuple[str, ...]:
    """Return the dtypes that elements may have: all if elements are only moved."""
    if all(plane.view.moved(i) for i in range(len(plane.view.outputs))):
        return tuple(C_TYPES)
    return FLOATS + FLOATS8 * target.has("mma_fp8")
