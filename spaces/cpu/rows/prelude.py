"""What all kernels of rows of one workload share: types, functions, lanes."""

from __future__ import annotations

from collections.abc import Set
from functools import lru_cache

from spaces.cpu.abi import ABI_PRELUDE
from spaces.cpu.target import CpuTarget
from spaces.cpu.tiles import lanes as across
from spaces.cpu.tiles import moves, simd, vector_math

_ALWAYS = frozenset({"max", "min"})
"""Functions that joining lanes needs; they bring ``tw_select`` and the rest."""


@lru_cache(maxsize=64)
def prelude(functions: Set[str], target: CpuTarget) -> str:
    """The C text for kernels whose programs call ``functions``."""
    lanes = target.lanes(4)
    return "".join(
        [
            ABI_PRELUDE,
            simd.prelude(target.isa, lanes, target.bf16_dot),
            vector_math.prelude(functions | _ALWAYS, lanes),
            across.prelude(lanes),
            moves.prelude(target.isa, lanes),
        ]
    )
