"""What a block takes, and what rules it out because a multiprocessor has no more.

Templates differ in how decisions become sizes, not in what there is of each.
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
    """What blocks take, by decisions ``c`` of which ``blocks_per_sm`` asks for so many of them on a
    multiprocessor at a time."""

    @abstractmethod
    def threads(self, c: Any) -> Any:
        """Threads of a block."""

    @abstractmethod
    def shared_bytes(self, c: Any) -> Any:
        """Shared memory of a block."""

    @abstractmethod
    def registers(self, c: Any) -> Any:
        """The least 32-bit registers that a thread can do with."""

    def register_limit(self, target: CudaTarget, c: Any) -> Any:
        """Registers that a thread may have, so that as many blocks fit as were asked for."""
        share = target.registers_per_multiprocessor // (self.threads(c) * c["blocks_per_sm"])
        return np.minimum(share // 8 * 8, target.registers_per_thread)


def block_threads(
    sizes: BlockResources, target: CudaTarget, warps: tuple[str, str], most: int
) -> Rule:
    """No more threads of a block than ``most``, where the decisions ``warps`` count them."""
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
    """No more shared memory is ``taken``, in bytes, than a block has."""
    most = target.shared_per_block
    return Rule(
        "shared_memory",
        tuple(reads),
        lambda c: taken(c) <= most,
        lambda c: f"{taken(c)} bytes of shared memory; a block has {most}",
    )


def resident_threads(sizes: BlockResources, target: CudaTarget, reads: Sequence[str] = ()) -> Rule:
    """As many blocks as were asked for have no more threads than a multiprocessor."""
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
    """What as many blocks as were asked for may take of shared memory and registers; what they
    read is up to who judges them early."""
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
