"""The steps: a product of square matrices on a CPU, and one on a GPU, with a schedule for each
idea.

Decisions were chosen by hand, to have one idea more than the step before; a search finds faster
schedules.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.scheduler.predictions import completed
from tilewright.spaces.registry import templates_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

PRODUCTS = {
    "cpu": "matmul m=576 n=576 k=576",
    "cuda": "matmul m=4096 n=4096 k=4096 dtype=bfloat16",
}
"""The product of a kind of target."""


@dataclass(frozen=True)
class Step:
    """An ``idea`` for a kind of target, and the decisions that show it, as the text of a schedule.
    What it leaves out is predicted for a target."""

    idea: str
    kind: str
    text: str

    def space(self, workload: Workload, target: Target) -> Space:
        """Return the space of this step's template alone, which may be one that no search takes as
        a better one serves the workload."""
        name = self.text.partition(":")[0]
        made = {each.name: each for each in templates_for(target)}[name]
        return Space(workload, target, [made(workload, target)])

    def schedule(self, space: Space) -> Schedule:
        """Return the schedule of a space with this step's decisions."""
        return completed(space, Schedule.from_text(self.text))


STEPS = (
    Step("plain loops", "cpu", "loops: workers=1"),
    Step(
        "tiles in registers",
        "cpu",
        "contraction: tile_rows=6 tile_vectors=2 pack_left=False pack_right=False unroll=1",
    ),
    Step(
        "packed operands",
        "cpu",
        "contraction: tile_rows=6 tile_vectors=2 pack_left=False pack_right=True unroll=1",
    ),
    Step(
        "shared memory",
        "cuda",
        "simt: lane_rows=4 thread_rows=8 thread_columns=8 warp_rows=4 warp_columns=2 depth=16 "
        "copy_spread=8 splits=1",
    ),
    Step(
        "tensor cores",
        "cuda",
        "mma: tile_rows=64 tile_columns=64 warp_rows=2 warp_columns=2 depth=32 stages=4 splits=1",
    ),
    Step(
        "bulk copies by a warp of their own",
        "cuda",
        "hopper: swap_ab=False block_m=128 block_n=256 schedule=cooperative consumers=2 "
        "producer_registers=40 cluster=2x1 depth=64 stages=4 splits=1",
    ),
)
