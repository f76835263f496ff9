"""The C text that all kernels of one map share: types, functions, moves and transpositions."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cpu.abi import ABI_PRELUDE, FLOAT
from tilewright.spaces.cpu.maps.registers import Registers, registers_of
from tilewright.spaces.cpu.maps.values import has_wide_forms
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import moves, simd, transposing, vector_math, wide, words
from tilewright.spaces.derivation.maps.plane import Plane
from tilewright.spaces.derivation.maps.served import cached_plane
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.workloads.workload import Workload


@lru_cache(maxsize=64)
def prelude(workload: Workload, target: CpuTarget) -> str:
    """Return the C text in front of a map's kernels."""
    plane = cached_plane(workload.program)
    registers = registers_of(plane, target)
    lanes = registers.lanes
    if registers.bytes != FLOAT:
        moving = words.prelude(target.isa, target.vector_bytes, registers.bytes, registers.side)
        return ABI_PRELUDE + moving + wide_indices(plane, registers)
    return "".join(
        [
            ABI_PRELUDE,
            simd.prelude(target.isa, lanes, target.bf16_dot),
            vector_math.prelude(workload.functions, lanes),
            moves.prelude(target.isa, lanes),
            moves.small(lanes),
            transposing.prelude(lanes),
            wide_indices(plane, registers),
        ]
    )


def wide_indices(plane: Plane, registers: Registers) -> str:
    """Return the C text of whole numbers that need 64 bits; the empty string if there are none."""
    known = magnitudes(plane.view.program)
    if not has_wide_forms(plane) and not known.need_integers(plane.view.values):
        return ""
    dtypes = dict.fromkeys(access.array.dtype for access in plane.view.loaded)
    types = {registers.dtype(dtype): registers.c_type(dtype) for dtype in dtypes}
    text = wide.indices(registers.lanes, registers.vector, types)
    return text + (wide.values(registers.lanes) if registers.bytes == FLOAT else "")
