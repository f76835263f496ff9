"""What all kernels of one map share: types, functions, moves and transpositions."""

from __future__ import annotations

from functools import lru_cache

from spaces.cpu.abi import ABI_PRELUDE, FLOAT
from spaces.cpu.maps.registers import registers_of
from spaces.cpu.target import CpuTarget
from spaces.cpu.vectors import moves, simd, turning, vector_math, words
from spaces.derivation.maps.served import cached_plane
from spaces.workloads.computation import Computation
from spaces.workloads.workload import Workload


@lru_cache(maxsize=64)
def prelude(workload: Workload, target: CpuTarget) -> str:
    """The C text in front of a map's kernels."""
    assert isinstance(workload, Computation)
    plane = cached_plane(workload.program)
    registers = registers_of(plane, target)
    lanes = registers.lanes
    if registers.bytes != FLOAT:
        moving = words.prelude(target.isa, target.vector_bytes, registers.bytes, registers.side)
        return ABI_PRELUDE + moving
    return "".join(
        [
            ABI_PRELUDE,
            simd.prelude(target.isa, lanes, target.bf16_dot),
            vector_math.prelude(workload.functions, lanes),
            moves.prelude(target.isa, lanes),
            turning.prelude(lanes),
        ]
    )
