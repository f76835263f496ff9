"""The template of chains over the columns of a product, such as attention, by TMA and wgmma.

:mod:`spaces.cuda.chained.template` says what such a chain is.

Decisions:

- ``warpgroups`` that multiply, 64 rows each; ``blocks_per_sm``: blocks on a multiprocessor.
- ``splits``: parts of the keys of a tile of rows, each with a block; ``merge``: who merges their
  partial results, a second ``kernel``, one that begins ``early`` and waits, the ``last`` block to
  come, or all of them as a ``cluster``.
- ``keys`` of a tile; ``stages`` of keys and of the matrix; ``query_buffers``: tiles of rows that
  are loaded ahead; ``query_storage``: rows are multiplied from ``shared`` memory or ``registers``.
- ``overlap``: scores of the next tile are multiplied beside the sums of this one;
  ``chain_overlap``: how much of its chain runs before the sums have ended: what the compiler
  chooses (0), all (1), or the first loop (2), which finds maxima.
- ``ping_pong``: warpgroups take turns to multiply.
- ``rescale``: sums are corrected ``always``, where a maximum ``moved``, or ``late``, where it rose
  by more than eight powers of two.
- ``tile_scheduler``: how blocks find their tiles; ``head_group``: heads that take turns in the
  order of tiles.
- ``skip_per_warpgroup``: each warpgroup passes over tiles of keys that only others' rows see.

wgmma takes operands of 8 bits only if terms of a sum are neighbours in memory: a first kernel
transposes the matrix, and weights are rounded to its dtype.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from tilewright.spaces.corrected import CorrectedTemplate
from tilewright.spaces.cuda.chained_hopper.code import ChainedHopperCode
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import tiled
from tilewright.spaces.cuda.chained_hopper.multiplying import ALL, STATES
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chained_hopper.rules import chained_rules
from tilewright.spaces.cuda.chained_hopper.served import why_not_chained
from tilewright.spaces.cuda.chained_hopper.sizes import ChainedSizes
from tilewright.spaces.cuda.chained_hopper.traffic import chained_quantities
from tilewright.spaces.cuda.chained_hopper.walk import WALKS
from tilewright.spaces.cuda.chains.chain import RESCALES, can_be_late
from tilewright.spaces.cuda.chains.ends import products_of
from tilewright.spaces.cuda.chains.splits.splitting import CLUSTER, EARLY, MERGES
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import WarpgroupTemplate
from tilewright.spaces.derivation.chained.levels import Levels
from tilewright.spaces.derivation.chained.open_axis import why_not_open
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

MOST_SECTION = 64
SPLITS = (1, 2, 4, 8, 16, 32, 64)


class ChainedHopper(CorrectedTemplate, WarpgroupTemplate):
    """The template of one pass over the keys, with 64 rows for each consumer warpgroup.

    The chain is computed in float32, the products before and behind it take factors of 16 or 8
    bits.
    """

    name: ClassVar[str] = "chained_hopper"
    version: ClassVar[int] = 10
    refuses_products: ClassVar[str] = (
        "it is a product of matrices; needs a chain of reductions over its columns"
    )

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = chained_of(self.workload.program)
        assert isinstance(found, Chained)
        self.sizes = ChainedSizes(tiled(found))
        self.decisions = _decisions(self.sizes)
        self.rules = chained_rules(self.sizes, self.cuda, self.decisions)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are no such chain, or arrays that TMA cannot load.
        """
        return why_not_chained(workload, cuda)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.chained_hopper.traffic``."""
        return chained_quantities(self.workload, self.sizes, self.cuda, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        return self._kernel(schedule, self.sizes, self.entry(schedule))

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Return why an axis cannot be open: only the outermost axis of heads, of rows, and of keys
        can."""
        chained = self.sizes.chained
        if reason := why_not_open(chained, axis, chained.batch, chained.rows):
            return reason
        if self.sizes.has_bytes:
            return "the transposed copy of a matrix of 8 bits has fixed extents"
        section, heads = int(schedule.values["head_group"]), products_of(chained)
        if chained.batch and axis == chained.batch[0].axis and heads.each % section:
            return f"{section} heads take turns, and a point of {axis} has {heads.each}"
        return None

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel for any extent of an axis, up to the workload's."""
        sizes = replace(self.sizes, chained=replace(self.sizes.chained, open_axis=axis))
        return self._kernel(schedule, sizes, f"{self.entry(schedule)}_open")

    def _kernel(self, schedule: Schedule, sizes: ChainedSizes, entry: str) -> Kernel:
        plan = ChainedPlan(sizes, self.cuda, schedule.values)
        code = ChainedHopperCode(plan, entry)
        return code.kernel(self.arguments, frozenset(self.workload.functions))


def _decisions(sizes: ChainedSizes) -> tuple[Decision, ...]:
    heads = sizes.chained.batches
    sections = tuple(n for n in range(1, min(heads, MOST_SECTION) + 1) if heads % n == 0)
    return (
        Decision("warpgroups", (1, 2, 3, 4)),
        Decision("blocks_per_sm", (1, 2)),
        Decision("splits", SPLITS),
        Decision("merge", (CLUSTER, EARLY, *MERGES)),
        Decision("keys", tuple(range(sizes.terms, 257, sizes.terms))),
        Decision("overlap", (0, 1)),
        Decision("chain_overlap", _beside(sizes)),
        Decision("query_storage", ("shared", "registers")),
        Decision("tile_scheduler", WALKS),
        Decision("query_buffers", (1, 2)),
        Decision("stages", (2, 3, 4)),
        Decision("ping_pong", (0, 1)),
        Decision("rescale", _rescales(sizes)),
        Decision("head_group", sections),
        Decision("skip_per_warpgroup", (0, 1) if sizes.chained.bounds else (0,)),
    )


def _rescales(sizes: ChainedSizes) -> tuple[str, ...]:
    """Return when sums may be corrected; late, weights could leave the range of float8."""
    can_wait = can_be_late(sizes.chained) and not sizes.has_bytes
    return RESCALES if can_wait else RESCALES[:2]


def _beside(sizes: ChainedSizes) -> tuple[int, ...]:
    """Return how much of the chain may run beside the sums: it has one loop or several."""
    return (0, ALL, STATES) if Levels(sizes.chained).last else (0, ALL)
