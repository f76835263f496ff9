"""Registers and shared memory that Hopper's warpgroups take, whatever they multiply."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.residency import BLOCK_SHARED
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.numerics.adding import IN_ONE_OF_FLOAT8

WARPS = 4
GROUP = WARPS * WARP
"""Threads of a warpgroup."""
INSTRUCTION_REGISTERS = 26
"""Registers that ptxas needs beside the sums that one wgmma writes (its message C7602).

They are counted against the registers a thread has at launch, before setmaxnreg.
"""


def launch_registers(threads: int, residency: int = 1) -> int:
    """Return the most registers that each of ``threads`` threads of a block may have.

    ``residency`` blocks share a multiprocessor. Registers lie in four banks, those of a warp in
    one, so that a lone warp costs as much as four.
    """
    return int(min(65536 // residency // int(round_up(threads, GROUP)) // 8 * 8, 255))


def most_shared(target: CudaTarget, residency: Any) -> Any:
    """Return the bytes of shared memory that each of ``residency`` blocks on a multiprocessor may
    have."""
    share = target.shared_per_multiprocessor // residency - BLOCK_SHARED
    return np.minimum(share, target.shared_per_block)


def too_many_of_float8(terms: str) -> str:
    """Say that wgmma would add more products of float8 to one sum than its 14 bits allow."""
    return (
        f"wgmma would add {terms} to one sum, which keeps 14 bits; "
        f"at most {IN_ONE_OF_FLOAT8} are exact enough"
    )
