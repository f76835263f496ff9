"""The end of a chained kernel: lanes and parts are merged, and outputs stored.

If keys are split, a second kernel may do that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chained.block import Block
from tilewright.spaces.cuda.chained.columns import Columns
from tilewright.spaces.cuda.chained.rows import BlockRows
from tilewright.spaces.cuda.chains.ends import rows_of
from tilewright.spaces.cuda.chains.finish import Finish
from tilewright.spaces.cuda.chains.lanes import ROWS
from tilewright.spaces.cuda.chains.recomputing import Recomputing
from tilewright.spaces.cuda.chains.splits.sending import ALL_READY, READY
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class Ending:
    """The code of a block once its last tile of keys has passed."""

    block: Block

    def lines(self) -> list[str]:
        """Print how lanes are joined; then a part is left, or the outputs of each row are
        stored."""
        block, merging = self.block, self.block.merging
        columns, first = Columns(block), "block_column == 0"
        if block.sharers > 1:
            columns = Columns(block, block.sharer, block.own_pairs)
            first = f"{first} && {block.sharer} == 0"
        lines = [
            *self._columns(columns, first),
            *(self._ready() if block.is_cluster else []),
            *self._each_row([*block.chain.joined_rows(), *self._catch_up(), *self._recomputed()]),
            *(self._join_cluster() if block.is_cluster else []),
            *(self._join_teams() if block.teams > 1 and not block.is_cluster else []),
        ]
        if block.merges_later:
            return [*lines, *merging.put(self._stored)]
        return [
            *lines,
            *merging.leave(self._stored),
            *["if (!is_last) return;"] * (merging.split > 1),
            *merging.collect(self._stored),
            *self._store(block.own_pairs, block.sum_name, self._stored, columns),
        ]

    @property
    def _stored(self) -> str:
        """The C condition that a team has something of row ``r`` to store."""
        block = self.block
        if block.is_cluster and not block.pairs:
            return f"{block.sharer} == 0 && {self._own}"
        if block.own_pairs * block.sharers <= block.pairs or not block.pairs:
            return self._own
        return f"{block.sharer} * {block.own_pairs} < {block.pairs} && {self._own}"

    def _join_teams(self) -> list[str]:
        """Print how teams merge their parts, in shared memory that no tile needs any more."""
        block = self.block
        body = [
            *block.team_parts.put(self._own),
            "tw::sync_block();",
            *block.team_merging.merge(self._stored),
        ]
        sums = block.declare_sums(block.own_pairs, block.sum_name)
        return [*sums, "tw::sync_block();", *CUDA.block(*body)]

    def _ready(self) -> list[str]:
        """Print how the barriers of a cluster's parts are initialised, in shared memory that is
        free."""
        block = self.block
        barrier = f"shared + {block.sent_bytes} + 8 * i"
        barriers = CUDA.loop("i", block.receiving_teams, f"tw::mbarrier_init({barrier}, 1);")
        return [
            "tw::cp_async_wait<0>();",
            "tw::sync_block();",
            *CUDA.when("threadIdx.x == 0", [*barriers, "tw::fence_barrier_init();"]),
            *READY,
        ]

    def _join_cluster(self) -> list[str]:
        """Print how the parts of the teams of all blocks of a cluster are merged."""
        block = self.block
        body = [*ALL_READY, *block.sent_parts(self._own).lines()]
        sums = block.declare_sums(block.own_pairs, block.sum_name)
        return [*sums, *CUDA.block(*body)]

    @property
    def groups(self) -> int:
        """Blocks of the second kernel for each tile of rows."""
        return max(1, self.block.pairs)

    def merging_lines(self) -> list[str]:
        """Print the second kernel: a block has the accumulators of one number in all slices."""
        block, rows = self.block, BlockRows(self.block)
        columns = Columns(block, "group")
        stored = self._store(min(1, block.pairs), "sums", self._own, columns)
        first = "block_column == 0 && group == 0"
        return [
            f"const int tile_number = (int)blockIdx.x / {self.groups};",
            f"const int group = (int)blockIdx.x % {self.groups};",
            *rows.place("tile_number"),
            *rows.begin(),
            *self._columns(columns, first),
            *block.declare_sums(min(1, block.pairs)),
            *block.later_merging.parts(),
            *block.later_merging.merge(self._own),
            *stored,
        ]

    @property
    def _own(self) -> str:
        """The C condition that row ``r`` of a lane is one of the product's."""
        return f"warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4 < {rows_of(self.block.chained).count}"

    def _columns(self, columns: Columns, condition: str) -> list[str]:
        return [
            f"const int column0 = {columns.origin};",
            f"const bool is_first = lane % 4 == 0 && {condition};",
        ]

    def _store(self, pairs: int, array: str, inside: str, columns: Columns) -> list[str]:
        weighings = len(self.block.chained.weighings)
        sums = [f"{array}{n}[r / 2][j][r % 2 * 2 + e]" for n in range(weighings)]
        finish = Finish(self.block.chain, self.block.row, sums, pairs, columns.of_pair)
        return self._each_row(CUDA.when(inside, finish.lines()))

    def _each_row(self, body: Sequence[str]) -> list[str]:
        return CUDA.loop("r", ROWS * self.block.slices, body, unroll=True)

    def _recomputed(self) -> list[str]:
        """Print how sums of row ``r`` are recomputed that hidden keys of visited tiles have
        spoilt."""
        block, columns = self.block, Columns(self.block)
        sums = [f"sums{n}[r / 2][j][r % 2 * 2 + e]" for n in range(len(block.chained.weighings))]
        place = (block.pairs, columns.of_pair, "begin_key", "(int)last_key")
        lines = Recomputing(block.chain, block.row, sums, *place).lines()
        if not lines:
            return []
        return CUDA.when(self._own, [f"const int column0 = {columns.origin};", *lines])

    def _catch_up(self) -> list[str]:
        """Print how sums of row ``r`` are rescaled from their base to the final results."""
        lines = []
        for n, last in enumerate(self.block.chain.last_factors):
            if last:
                places = ("r % 2 * 2", "r % 2 * 2 + 1")
                scaled = [f"sums{n}[r / 2][j][{place}] *= {last};" for place in places]
                lines += CUDA.loop("j", self.block.pairs, scaled, unroll=True)
        return lines
