"""The programs that have kernels of maps on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.maps.prelude import prelude
from tilewright.spaces.cpu.maps.registers import only_moved
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.moves import SMALL, TABLE_TYPES
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.derivation.maps.plane import ANYWHERE, TRANSPOSED, Plane
from tilewright.spaces.derivation.maps.served import cached_plane, why_no_array
from tilewright.spaces.dtypes import DTYPES
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.workloads.workload import Workload


def why_no_map(workload: Workload, target: CpuTarget) -> str | None:
    """Say why a workload has no kernel of maps; return None if it has one."""
    try:
        plane = cached_plane(workload.program)
        prelude(workload, target)
    except InputError as reason:
        return str(reason)
    if only_moved(plane):
        return why_no_array(plane, DTYPES, TABLE_TYPES, slices=True)
    values = (*FLOATS, *SMALL) if _reads_small(plane) else FLOATS
    return why_no_array(plane, values, TABLE_TYPES, slices=True)


def _reads_small(plane: Plane) -> bool:
    """Tell whether kernels can read all whole numbers of one byte as floats.

    They can if these lie along rows, if floats hold whatever is made of them exactly, and if none
    is written.
    """
    view = plane.view
    small = [access for access in view.loaded if access.array.dtype in SMALL]
    written = any(access.array.dtype in SMALL for access in view.outputs)
    straight = all(plane.kind(access) not in (TRANSPOSED, ANYWHERE) for access in small)
    return straight and not written and not magnitudes(view.program).need_integers(view.values)
