"""The C text that all kernels of one matrix product share, whatever template they come from.

A builder puts many kernels into one translation unit and writes a prelude once: two kernels of a
workload must not have different ones.
"""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cpu.abi import ABI_PRELUDE, FLOAT
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import simd, vector_math
from tilewright.spaces.workloads.matmul import Matmul


@lru_cache(maxsize=64)
def prelude(matmul: Matmul, target: CpuTarget) -> str:
    """Return the declarations of the calling convention, the vector types and the epilogue's
    functions."""
    lanes = target.lanes(FLOAT)
    text = ABI_PRELUDE + simd.prelude(target.isa, lanes, target.bf16_dot)
    if matmul.epilogue is not None:
        selecting = {"select"} if matmul.epilogue.selects else set()
        text += vector_math.prelude(matmul.epilogue.functions | selecting, lanes)
    return text
