"""The template of chains over the columns of a product, such as attention, by ``mma.sync``.

For each row (query) a product gives scores, one for each column (key); a chain of reductions over
the keys makes weights of them, and may add up weighed rows of a matrix (values).

Decisions:

- ``warps`` that share a block's rows, and ``row_fragments`` of sixteen rows that each of them has.
- ``warp_splits``: groups of as many warps (teams), each with a part of the keys; they share no
  barrier until they merge their results.
- ``keys`` of a tile, and ``stages`` of the ring of tiles of a team.
- ``columns`` of sums that a block has, of all columns or a part.
- ``weight_dtype``: the dtype in which weights are multiplied, where they may be float8.
- ``query_storage``: rows of the left operand stay in ``registers``, or are read again from
  ``shared`` memory.
- ``rescale``: sums are corrected in every tile, where a row's results moved, or where they moved
  far.
- ``splits``: blocks that share the keys of a tile of rows; ``merge``: who merges their partial
  results, a second ``kernel``, one that begins ``early`` and waits for them, the ``last`` block, or
  all of them as a ``cluster``.
- ``order`` of the blocks; ``blocks_per_sm``: blocks on a multiprocessor at a time, which limits
  registers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.corrected import CorrectedTemplate
from tilewright.spaces.cuda.chained.block import Block
from tilewright.spaces.cuda.chained.code import ChainedCode
from tilewright.spaces.cuda.chained.rules import chained_rules, why_no_room
from tilewright.spaces.cuda.chained.served import why_not_chained
from tilewright.spaces.cuda.chained.sizes import ChainedSizes
from tilewright.spaces.cuda.chained.traffic import chained_quantities
from tilewright.spaces.cuda.chains.chain import RESCALES, can_be_late
from tilewright.spaces.cuda.chains.splits.splitting import CLUSTER, EARLY, MERGES
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.chained.open_axis import why_not_open
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule
from tilewright.spaces.workloads.workload import Workload

MOST_COLUMNS = 256
TENSOR_CORES = 4
"""Tensor cores of a multiprocessor: each multiplies for warps of its own."""
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)


class CudaChained(CorrectedTemplate, CudaTemplate):
    """The template of one pass over the keys for every block of rows."""

    name: ClassVar[str] = "chained"
    version: ClassVar[int] = 10
    refuses_products: ClassVar[str] = (
        "it is a product of matrices; needs a chain of reductions over its columns"
    )

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = chained_of(self.workload.program)
        assert isinstance(found, Chained)
        self.sizes = self._sizes(found)
        self.decisions = self._decisions()
        self.rules = self._rules()

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are no product with such a chain, dtypes that are not multiplied, or rows so long
        that no tile of them fits.
        """
        return why_not_chained(workload, cuda) or cls(workload, cuda).why_unfit()

    @classmethod
    def leaves_idle(cls, workload: Workload, target: CudaTarget) -> str | None:
        """Return why blocks of a workload that is served leave tensor cores idle; None if not.

        Rows are so long that a block has no room for as many warps as a multiprocessor has tensor
        cores, or as there are rows for: several kernels may then be faster.
        """
        template = cls(workload, target)
        filled = ceil_div(template.sizes.chained.row_count, FRAGMENT)
        warps = min(TENSOR_CORES, filled)
        return why_no_room(template.sizes, target, template.decisions, warps)

    def why_unfit(self) -> str | None:
        """Return why the workload's sizes do not suit the template, in words; None if they do."""
        return why_no_room(self.sizes, self.cuda, self.decisions)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.chained.traffic``."""
        return chained_quantities(self, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        return self._kernel(schedule, self.sizes, self.entry(schedule))

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Return why an axis cannot be open: only the outermost axis of products, of rows, and of
        keys can."""
        chained = self.sizes.chained
        return why_not_open(chained, axis, chained.batch, chained.rows)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel for any extent of an axis, up to the workload's."""
        sizes = replace(self.sizes, chained=replace(self.sizes.chained, open_axis=axis))
        return self._kernel(schedule, sizes, f"{self.entry(schedule)}_open")

    def _kernel(self, schedule: Schedule, sizes: ChainedSizes, entry: str) -> Kernel:
        code = self._code(schedule, sizes, entry)
        return code.kernel(self.arguments, frozenset(self.workload.functions))

    def _code(self, schedule: Schedule, sizes: ChainedSizes, entry: str) -> ChainedCode:
        return ChainedCode(Block(sizes, schedule.values), entry)

    def _sizes(self, chained: Chained) -> ChainedSizes:
        return ChainedSizes(chained)

    def _rules(self) -> tuple[Rule, ...]:
        return chained_rules(self.sizes, self.cuda, self.decisions)

    def _decisions(self) -> tuple[Decision, ...]:
        chained = self.sizes.chained
        orders = ("rows", "products")
        if chained.bounds:
            orders = (*orders, "rows down", "products down")  # type: ignore[assignment]
        kinds = self.sizes.kinds.weights
        return (
            Decision("query_storage", ("shared", "registers")),
            Decision("columns", self._columns()),
            *[Decision("weight_dtype", kinds)] * (len(kinds) > 1),
            Decision("row_fragments", (1, 2, 4)),
            Decision("keys", (16, 32, 48, 64, 80, 96, 128)),
            Decision("warps", (1, 2, 4, 8)),
            Decision("warp_splits", (1, 2, 4, 8)),
            Decision("stages", (2, 3, 4)),
            Decision("blocks_per_sm", (1, 2, 3, 4, 6, 8)),
            Decision("rescale", RESCALES if can_be_late(chained) else RESCALES[:2]),
            Decision("splits", SPLITS),
            Decision("merge", (*MERGES, *(CLUSTER, EARLY) * self.cuda.has("cluster"))),
            Decision("order", orders),
        )

    def _columns(self) -> tuple[int, ...]:
        """Return the numbers of columns of equal parts of the width."""
        width = self.sizes.width
        if not width:
            return (0,)
        parts = (round_up(ceil_div(width, n), FRAGMENT) for n in (1, 2, 4, 8, 16))
        found = sorted({columns for columns in parts if columns <= MOST_COLUMNS})
        least = found[-1] // 2
        return tuple(columns for columns in found if columns > least) or (found[-1],)
