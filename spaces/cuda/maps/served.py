"""Which programs have kernels of maps on a GPU, and why others have none."""

from __future__ import annotations

from functools import lru_cache

from spaces.cuda import scalar_math
from spaces.cuda.abi import C_TYPES
from spaces.cuda.target import CudaTarget
from spaces.derivation.maps.plane import Plane, plane_of
from spaces.derivation.maps.view import map_of
from spaces.derivation.products.forms import span
from spaces.errors import InputError
from spaces.language.program import Program
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload

FLOATS = ("float32", "float16", "bfloat16")
FLOATS8 = ("float8_e4m3fn", "float8_e5m2")
TABLES = ("int32", "int8")
EXACT = 2**24
"""Whole numbers up to which float32 has all."""


@lru_cache(maxsize=64)
def cached_plane(program: Program) -> Plane:
    """The plane of a program, derived once."""
    return plane_of(map_of(program))


def why_no_map(workload: Workload, target: CudaTarget) -> str | None:
    """The reason in words; None if there are kernels."""
    if not isinstance(workload, Computation):
        return "it is a product of matrices; a map reduces nothing"
    try:
        plane = cached_plane(workload.program)
        scalar_math.prelude(workload.functions)
    except InputError as reason:
        return str(reason)
    return _why_no_array(plane, target) or _why_no_number(plane)


def _why_no_array(plane: Plane, target: CudaTarget) -> str | None:
    program = plane.view.program
    floats = FLOATS + FLOATS8 * target.has("mma_fp8")
    if all(plane.view.moved(i) for i in range(len(plane.view.outputs))):
        floats = tuple(C_TYPES)
    for array in (*program.operands, *program.outputs):
        allowed = TABLES if plane.view.is_table(array.name) else floats
        if array.dtype not in allowed:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(allowed)}"
        if array.leading is not None:
            return f"{array.name} is a slice of a larger array; a map takes whole ones"
    return None


def _why_no_number(plane: Plane) -> str | None:
    for node, form in plane.view.wholes.items():
        reach = span(form, plane.view.limits)
        if reach is None or max(map(abs, reach)) >= EXACT:
            return f"{node} goes beyond {EXACT}, which floats do not tell apart"
    return None
