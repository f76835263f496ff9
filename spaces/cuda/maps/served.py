"""Which programs have kernels of maps on a GPU, and why others have none."""

from __future__ import annotations

from spaces.cuda import scalar_math
from spaces.cuda.abi import C_TYPES
from spaces.cuda.target import CudaTarget
from spaces.derivation.maps.plane import Plane
from spaces.derivation.maps.served import cached_plane, why_no_array
from spaces.errors import InputError
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload

FLOATS = ("float32", "float16", "bfloat16")
FLOATS8 = ("float8_e4m3fn", "float8_e5m2")
TABLES = ("int32", "int8")


def why_no_map(workload: Workload, target: CudaTarget) -> str | None:
    """The reason in words; None if there are kernels."""
    if not isinstance(workload, Computation):
        return "it is a product of matrices; a map reduces nothing"
    try:
        plane = cached_plane(workload.program)
        scalar_math.prelude(workload.functions)
    except InputError as reason:
        return str(reason)
    return why_no_array(plane, _values(plane, target), TABLES)


def _values(plane: Plane, target: CudaTarget) -> tuple[str, ...]:
    """The dtypes that elements may have: any where they are but moved."""
    if all(plane.view.moved(i) for i in range(len(plane.view.outputs))):
        return tuple(C_TYPES)
    return FLOATS + FLOATS8 * target.has("mma_fp8")
