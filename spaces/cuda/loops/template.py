"""The template of plain loops on a GPU: its decisions, rules and quantities."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.loops.code import MOST_BLOCKS, LoopsCode
from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.loops.plan import ELEMENT
from tilewright.spaces.loops.template import Loops
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule
from tilewright.spaces.workloads.workload import Workload

REGISTERS = 40
"""Registers of a thread, roughly."""


class CudaLoops(Loops, CudaTemplate):
    """The template of one launch for each stage, whose threads take its elements."""

    version: ClassVar[int] = 1

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.decisions = (
            Decision("threads", (64, 128, 256)),
            Decision("reduction_threads", (1, 8, 32, 128)),
        )
        self.rules = (
            Rule(
                "sharing_within_blocks",
                ("threads", "reduction_threads"),
                lambda c: c["reduction_threads"] <= c["threads"],
                lambda c: (
                    f"{c['reduction_threads']} threads share an element; a block has {c['threads']}"
                ),
            ),
            Rule(
                "idle_sharers",
                ("reduction_threads",),
                lambda c: c["reduction_threads"] <= max(1, self.longest),
                lambda c: (
                    f"{c['reduction_threads']} threads share an element; the longest reduction has "
                    f"{self.longest} terms"
                ),
            ),
        )

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> None:
        """Return None: plain loops serve every workload."""

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return every quantity of ``spaces.quantities``, one float64 array each."""
        c = widened(columns)
        threads, sharing = c["threads"], c["reduction_threads"]
        blocks = np.minimum(MOST_BLOCKS, ceil_div(self.most * sharing, threads))
        shared = 2 * ELEMENT * threads * (sharing > 1)
        occupancy = Occupancy(self.cuda, blocks, threads, REGISTERS, shared)
        counted = self.counted()
        quantities = {
            **counted,
            "instructions": counted["instructions"] * occupancy.starved / WARP,
            "far_fraction": float(self.workload.least_bytes) / self.cuda.l2_bytes,
            "vector_fraction": np.minimum(1.0, self.most * sharing / (blocks * threads)),
            "main_loop_trips": np.maximum(1.0, self.longest / sharing),
            "synchronisations": 1.0 * len(self.plan.nests) + np.log2(sharing),
            **occupancy.quantities(1.0),
            **occupancy.flight(ELEMENT),
        }
        return filled(quantities, threads.shape)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        decided = int(schedule["threads"]), int(schedule["reduction_threads"])
        return LoopsCode(self.plan, self.arguments, self.entry(schedule), *decided).kernel()
