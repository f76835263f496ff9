"""The CPU template of plain loops, for programs that no other template serves.

Decisions: the ``workers``, and the ``chunk`` of elements that each takes at a time.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import ABI_PRELUDE, Code
from tilewright.spaces.cpu.sharing import enough_threads
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.traffic import footprints, shares
from tilewright.spaces.loops.template import Loops
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule
from tilewright.spaces.workloads.workload import Workload

CHUNKS = (1, 8, 64, 512, 4096)
"""The numbers of elements that a worker may take at a time."""


class CpuLoops(Loops, CpuTemplate):
    """Loops over the elements of a stage, which workers share in chunks."""

    version: ClassVar[int] = 1

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.decisions = (
            Decision("workers", tuple(range(1, self.cpu.threads + 1))),
            Decision("chunk", CHUNKS),
        )
        self.rules = (
            enough_threads(self.cpu.threads, ("workers",)),
            Rule(
                "idle_workers",
                ("workers", "chunk"),
                lambda c: (
                    (c["workers"] == 1) | (c["workers"] * c["chunk"] < self.most + c["chunk"])
                ),
                lambda c: (
                    f"{c['workers']} workers with chunks of {c['chunk']}; "
                    f"the largest stage has {self.most} elements"
                ),
            ),
            Rule(
                "chunks_of_one_worker",
                ("workers", "chunk"),
                lambda c: (c["workers"] > 1) | (c["chunk"] == CHUNKS[-1]),
                lambda c: f"one worker takes all chunks; allowed: {CHUNKS[-1]}, not {c['chunk']}",
            ),
        )

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> None:
        """Serve all workloads."""

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute every quantity, one float64 array each."""
        c = widened(columns)
        workers, chunk = c["workers"], c["chunk"]
        chunks = ceil_div(self.most, chunk)
        longest = np.minimum(ceil_div(chunks, workers) * chunk, self.most)
        quantities = {
            **self.counted(),
            "registers": 8.0,
            "register_fraction": 8.0 / self.cpu.vector_registers,
            **footprints(self.cpu, 8.0 * self.longest, 8.0 * self.longest),
            "far_fraction": float(self.workload.least_bytes) / self.cpu.l3_bytes,
            "independent_chains": 1.0,
            "vector_fraction": 1.0 / self.cpu.lanes(8),
            "main_loop_trips": float(self.longest),
            "synchronisations": 1.0 * len(self.plan.nests) * (workers > 1),
            **shares(self.cpu, workers, np.maximum(1.0, workers * longest / self.most)),
        }
        return filled(quantities, chunk.shape)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.loops.code import LoopsCode

        workers, chunk = int(schedule["workers"]), int(schedule["chunk"])
        return LoopsCode(self.plan, self.workload.operands, entry, workers, chunk)

    def _prelude(self) -> str:
        return ABI_PRELUDE
