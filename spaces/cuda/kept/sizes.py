"""Extents and resources of kernels along kept axes: tasks of threads, parts of what is reduced.

Sizes are integers or, element by element, NumPy arrays of them, except those that name loops.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.blocks.last_to_come import TICKET, TICKETS
from tilewright.spaces.cuda.target import VECTOR_BYTES
from tilewright.spaces.decided import Decided
from tilewright.spaces.derivation.kept.cutting import Cutting
from tilewright.spaces.derivation.kept.held import same_in_tile, tap_index
from tilewright.spaces.derivation.kept.view import KeptView
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.language.tree import Read


@dataclass(frozen=True)
class KeptSizes(Cutting):
    """The tasks that decisions lead to, each done by one thread or by several."""

    lane_elements = Decided("vector")
    """Elements of a task side by side."""

    @cached_property
    def held(self) -> tuple[Read, ...]:
        """The reads of which a thread holds the elements of all taps, for its lanes, in
        registers."""
        if self.rolled:
            return ()
        return tuple(
            read
            for read in self.view.element_reads
            if tap_index(self.view, self.view.reads[read]) is not None
            and same_in_tile(self.view, self.view.reads[read], self.values)
        )

    threads = Decided()
    share = Decided("reduction_threads")
    """Threads of a block that share a task."""
    split = Decided("splits")
    """Blocks that share a task."""

    @property
    def tasks(self) -> Any:
        """Tasks in all."""
        return prod(self.counts)

    @property
    def outputs(self) -> Any:
        """Accumulators of a task."""
        return self.values["coarsening"] * self.values["vector"]

    @property
    def block_tasks(self) -> Any:
        """Tasks of a block."""
        return self.threads // self.share

    @property
    def task_blocks(self) -> Any:
        """Blocks that share the tasks."""
        return ceil_div(self.tasks, self.block_tasks)

    @property
    def blocks(self) -> Any:
        """Blocks of the grid."""
        return self.task_blocks * self.split

    @property
    def parts(self) -> Any:
        """Threads of all blocks that share what one task reduces over."""
        return self.share * self.split

    @property
    def shared_bytes(self) -> Any:
        """Bytes of shared memory of a block: the accumulators of all threads, then its ticket."""
        slots = self.threads * self.outputs * (self.share > 1)
        return 4 * slots + TICKET * (self.split > 1)

    @property
    def ticket_bytes(self) -> Any:
        """Bytes of the tickets at the start of the workspace, one for blocks that share tasks."""
        return round_up(4 * self.task_blocks, TICKETS) * (self.split > 1)

    @property
    def workspace_bytes(self) -> Any:
        """Bytes of the tickets, and of the accumulators of all blocks that share tasks."""
        sums = 4 * self.split * self.tasks * self.outputs * (self.split > 1)
        return self.ticket_bytes + sums


def width(view: KeptView, access: Access, most: int) -> int:
    """Return the most elements up to ``most``, a power of two, that are moved at once.

    Such accesses are aligned wherever a vector of lanes begins.
    """
    widest = min(most, VECTOR_BYTES // access.array.element.bytes)
    return gcd(widest, access.offset.without([view.lane.name]).divisor)
