"""Resources of blocks, and rules by which a multiprocessor has enough of them.

Templates differ in how decisions become sizes, not in the resources there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.template import Rule

BLOCK_SHARED = 1024
"""Bytes of shared memory that the system takes for itself in each block."""


class BlockResources(ABC):
    """Resources that blocks take, from decisions ``c``.

    The decision ``blocks_per_sm`` is the number of blocks that a multiprocessor must hold at a
    time.
    """

    @abstractmethod
    def threads(self, c: Any) -> Any:
        """Return the threads of a block."""

    @abstractmethod
    def shared_bytes(self, c: Any) -> Any:
        """Return the bytes of shared memory of a block."""

    @abstractmethod
    def registers(self, c: Any) -> Any:
        """Return the fewest 32-bit registers that a thread can do with."""

    def register_limit(self, target: CudaTarget, c: Any) -> Any:
        """Return the registers that a thread may have if ``blocks_per_sm`` blocks are to fit."""
        share = target.registers_per_multiprocessor // (self.threads(c) * c["blocks_per_sm"])
        return np.minimum(share // 8 * 8, target.registers_per_thread)


def block_threads(
    sizes: BlockResources, target: CudaTarget, warps: tuple[str, str], most: int
) -> Rule:
    """Return the rule by which a block has at most ``most`` threads.

    The two decisions ``warps`` count them.
    """
    allowed, (first, second) = min(target.threads_per_block, most), warps
    return Rule(
        "threads",
        warps,
        lambda c: sizes.threads(c) <= allowed,
        lambda c: (
            f"{c[first]} times {c[second]} warps are {sizes.threads(c)} threads; allowed: {allowed}"
        ),
    )


def shared_memory(reads: Sequence[str], taken: Callable[[Any], Any], target: CudaTarget) -> Rule:
    """Return the rule by which no more bytes of shared memory are ``taken`` than a block has."""
    most = target.shared_per_block
    return Rule(
        "shared_memory",
        tuple(reads),
        lambda c: taken(c) <= most,
        lambda c: f"{taken(c)} bytes of shared memory; a block has {most}",
    )


def resident_threads(sizes: BlockResources, target: CudaTarget, reads: Sequence[str] = ()) -> Rule:
    """Return the rule by which ``blocks_per_sm`` blocks have no more threads than fit."""
    return Rule(
        "resident_threads",
        tuple(reads),
        lambda c: sizes.threads(c) * c["blocks_per_sm"] <= target.threads_per_multiprocessor,
        lambda c: (
            f"{c['blocks_per_sm']} blocks of {sizes.threads(c)} threads are more than the "
            f"{target.threads_per_multiprocessor} a multiprocessor holds"
        ),
    )


def storage_rules(sizes: BlockResources, target: CudaTarget) -> list[Rule]:
    """Return rules on the shared memory and the registers of ``blocks_per_sm`` blocks.

    They name no decisions that they read: the caller, who judges them early, adds these.
    """
    return [
        Rule(
            "shared_memory",
            (),
            lambda c: sizes.shared_bytes(c) <= target.shared_per_block,
            lambda c: (
                f"the tiles of a block take {sizes.shared_bytes(c)} bytes of shared memory; "
                f"it may have {target.shared_per_block}"
            ),
        ),
        Rule(
            "resident_shared_memory",
            (),
            lambda c: (
                (sizes.shared_bytes(c) + BLOCK_SHARED) * c["blocks_per_sm"]
                <= target.shared_per_multiprocessor
            ),
            lambda c: (
                f"{c['blocks_per_sm']} blocks of {sizes.shared_bytes(c)} bytes of shared memory do "
                f"not fit the {target.shared_per_multiprocessor} of a multiprocessor"
            ),
        ),
        Rule(
            "registers",
            (),
            lambda c: sizes.registers(c) <= sizes.register_limit(target, c),
            lambda c: (
                f"a thread needs about {sizes.registers(c)} registers; {c['blocks_per_sm']} blocks "
                f"of {sizes.threads(c)} threads leave it {sizes.register_limit(target, c)}"
            ),
        ),
    ]
