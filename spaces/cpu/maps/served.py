"""Which programs have kernels of maps on a CPU, and why others have none."""

from __future__ import annotations

from spaces.cpu.maps.prelude import prelude
from spaces.cpu.maps.registers import only_moved
from spaces.cpu.target import CpuTarget
from spaces.cpu.vectors.moves import TABLE_TYPES
from spaces.cpu.vectors.simd import FLOATS
from spaces.derivation.maps.plane import ANYWHERE, Plane
from spaces.derivation.maps.served import cached_plane, why_no_array
from spaces.derivation.products.forms import Form, span
from spaces.dtypes import DTYPES, EXACT
from spaces.errors import InputError
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload

MOST_OFFSET = 2**31
"""Elements that offsets of single lanes may reach."""


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
    return why_no_array(plane, values, TABLE_TYPES) or _why_too_far(plane)


def _why_too_far(plane: Plane) -> str | None:
    """Lanes count in 32 bits where they gather, and become floats where numbers are values."""
    view = plane.view
    for access in view.loaded:
        if plane.kind(access) == ANYWHERE:
            differing = access.offset.part([plane.columns.name])
            if _reach(plane, differing) >= MOST_OFFSET:
                return f"{access.array.name} is gathered from farther apart than 2**31 elements"
    for node, form in view.wholes.items():
        if _reach(plane, form) >= EXACT:
            return f"{node} goes beyond {EXACT}, which floats do not tell apart"
    return None


def _reach(plane: Plane, form: Form) -> int:
    known = span(form, plane.view.limits)
    return MOST_OFFSET if known is None else max(map(abs, known))
