"""The CUDA template for chains over the columns of a deep product, by ``mma.sync``: a linear layer
with its cross-entropy, routing by wide rows, and what is like them.

Decisions are those of :mod:`spaces.cuda.chained.template`, and ``depth_step``, the terms of a score
that come to a stage at a time. Of ``queries``, rows that come again with each tile of keys, step by
step in its ``stages``, or all their terms that stay ``shared``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from spaces.cuda.chained.rules import why_no_room
from spaces.cuda.chained.served import why_not_chained
from spaces.cuda.chained.template import TENSOR_CORES, CudaChained
from spaces.cuda.chained_deep.block import DeepBlock
from spaces.cuda.chained_deep.code import DeepCode
from spaces.cuda.chained_deep.rules import deep_rules
from spaces.cuda.chained_deep.sizes import SHARED, STAGES, DeepSizes
from spaces.cuda.chained_deep.traffic import deep_quantities
from spaces.cuda.mma.fragments import FRAGMENT
from spaces.cuda.target import CudaTarget
from spaces.kernel import Kernel, arguments
from spaces.schedule import Schedule
from spaces.target import Target
from spaces.template import Columns, Decision
from spaces.workloads.workload import Workload

DEPTH_STEPS = (32, 64, 128, 256)
_WHOLE_ROWS = 3 * TENSOR_CORES * FRAGMENT
"""A slice of rows for each tensor core, and two stages of as many keys."""


class ChainedDeep(CudaChained):
    """One pass over the keys for every block of rows, one over the depth for every tile of keys."""

    name: ClassVar[str] = "chained_deep"
    version: ClassVar[int] = 1
    sizes: DeepSizes

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.sizes = DeepSizes(self.sizes.chained)
        self.rules = deep_rules(self.sizes, self.cuda, self.decisions)

    @classmethod
    def refuses(cls, workload: Workload, target: Target) -> str | None:
        """Why not: no product with such a chain, types that are not multiplied, or a depth that a
        block has room for as a whole."""
        if not isinstance(target, CudaTarget):
            return "needs a CUDA target"
        if reason := why_not_chained(workload, target):
            return reason
        template = cls(workload, target)
        return _why_whole(template) or why_no_room(template.sizes, target, template.decisions)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """See ``spaces.cuda.chained_deep.traffic``."""
        return deep_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """The kernel; its entry is named after the workload and the schedule."""
        code = DeepCode(DeepBlock(self.sizes, schedule.values), self.entry(schedule))
        given = arguments(self.workload.inputs, self.workload.outputs)
        return code.kernel(given, frozenset(self.workload.functions))

    def _decisions(self) -> tuple[Decision, ...]:
        own = {"queries": (STAGES, SHARED), "stages": (2, 3, 4, 5, 6)}
        found = [Decision(d.name, own.get(d.name, d.values)) for d in super()._decisions()]
        place = [d.name for d in found].index("stages")
        return (*found[:place], Decision("depth_step", DEPTH_STEPS), *found[place:])


def _why_whole(template: ChainedDeep) -> str | None:
    depth, most = template.sizes.chained.depth.extent, template.cuda.shared_per_block
    whole = _WHOLE_ROWS * template.sizes.depth * template.sizes.score_bytes
    if whole > most:
        return None
    return f"{depth} terms of a score need no steps: whole tiles take {whole} bytes of {most}"
