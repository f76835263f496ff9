"""What all kernels of one map share: types, functions, moves and transpositions."""

from __future__ import annotations

from functools import lru_cache

from spaces.cpu.abi import ABI_PRELUDE
from spaces.cpu.target import CpuTarget
from spaces.cpu.tiles import moves, simd, turning, vector_math
from spaces.workloads.workload import Workload


@lru_cache(maxsize=64)
def prelude(workload: Workload, target: CpuTarget) -> str:
    """The C text in front of a map's kernels."""
    lanes = target.lanes(4)
    return "".join(
        [
            ABI_PRELUDE,
            simd.prelude(target.isa, lanes, target.bf16_dot),
            vector_math.prelude(workload.functions, lanes),
            moves.prelude(target.isa, lanes),
            turning.prelude(lanes),
        ]
    )
