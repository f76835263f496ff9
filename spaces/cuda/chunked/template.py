"""The template of recurrences by chunks of positions, by ``mma.sync``: linear attention, retention,
state-space models.

A block walks along the chunks of one product, or of a segment of it, and keeps the state of its
columns in registers, as float32 sums. Work and memory are linear in the number of positions.

Decisions:

- ``warps`` of a block, and ``fragments`` of sixteen columns of each.
- ``chunk``: positions of a chunk.
- ``stages`` of the ring of chunks in shared memory.
- ``blocks_per_sm``: blocks on a multiprocessor at a time, which limits registers.
- ``segments`` of all positions, each of which has blocks of its own: two launches if there are
  several.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.cuda.chunked.block import Block
from tilewright.spaces.cuda.chunked.code import ChunkedCode
from tilewright.spaces.cuda.chunked.rules import chunked_rules, why_no_room
from tilewright.spaces.cuda.chunked.served import kind_of, why_not_chunked
from tilewright.spaces.cuda.chunked.sizes import ChunkSizes
from tilewright.spaces.cuda.chunked.traffic import chunked_quantities
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.recurrent.chunks import Chunks, chunks_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class CudaChunked(CudaTemplate):
    """The template of a walk along chunks with a state."""

    name: ClassVar[str] = "chunked"
    version: ClassVar[int] = 2
    refuses_products: ClassVar[str] = "it is a product of matrices; states are of programs"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        view = chunks_of(self.workload.program)
        assert isinstance(view, Chunks)
        self.view = view
        self.sizes = ChunkSizes(view)
        self.decisions = (
            Decision("warps", (1, 2, 4, 8)),
            Decision("chunk", (16, 32, 64, 128)),
            Decision("fragments", (1, 2, 4)),
            Decision("stages", (2, 3, 4)),
            Decision("blocks_per_sm", (1, 2, 3, 4, 6, 8)),
            Decision("segments", (1, 2, 4, 8, 16, 32)),
        )
        self.rules = chunked_rules(self.sizes, self.cuda, self.decisions)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one."""
        return why_not_chunked(workload, cuda) or cls(workload, cuda)._why_unfit()

    def _why_unfit(self) -> str | None:
        return why_no_room(self.sizes, self.cuda, self.decisions)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.chunked.traffic``."""
        return chunked_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        kind = kind_of(self.view)
        assert kind is not None
        code = ChunkedCode(Block(self.view, schedule.values, kind), self.entry(schedule))
        return code.kernel(self.arguments, self.functions)
