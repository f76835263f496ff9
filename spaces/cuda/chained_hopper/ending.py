"""The end of a tile of rows: parts are merged, outputs stored, the rows' shared memory freed."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.chained_hopper.cluster import ClusterParts
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import row_place
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chained_hopper.products import Products
from tilewright.spaces.cuda.chained_hopper.raised import lowered_sums
from tilewright.spaces.cuda.chained_hopper.rows import GroupRows, each_row
from tilewright.spaces.cuda.chained_hopper.walk import Walk
from tilewright.spaces.cuda.chains.ends import rows_of
from tilewright.spaces.cuda.chains.finish import Finish
from tilewright.spaces.cuda.chains.recomputing import Recomputing
from tilewright.spaces.cuda.chains.splits.sending import READY
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.derivation.chained.view import ChainedOutput
from tilewright.spaces.derivation.rounding.reductions import RAISED
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class PackedFinish(Finish):
    """A finish that keeps pairs of the wide output in ``packed``, as ``stmatrix`` takes them.

    The plain finish stores them to memory instead.
    """

    def _store_pair(self, output: ChainedOutput, pair: str) -> list[str]:
        return [f"packed[j * 2 + r] = (u32){pair}[0].bits | (u32){pair}[1].bits << 16;"]


@dataclass(frozen=True)
class Ending:
    """The code of a warpgroup after its last tile of keys, in a kernel that follows ``plan``."""

    plan: ChainedPlan
    rows: GroupRows

    def lines(self) -> list[str]:
        """Print what a consumer thread does after its last tile of keys."""
        plan, merging = self.plan, self.plan.merging(self.rows.chain)
        outputs = merging.put(self._inside) if plan.merges_later else self._outputs()
        if plan.begins_early:  # not sooner: its blocks would crowd on the few multiprocessors left
            outputs = ["tw::allow_launch();", *outputs]
        if plan.is_cluster:
            outputs = self._shared_outputs()
        return [
            *READY * plan.is_cluster,
            *self.rows.bounds(),
            *(lowered_sums(plan.sizes.width // 2) if plan.sizes.has_bytes else []),
            *each_row(
                [*self.rows.chain.joined_rows(), *self.rows.caught_up(), *self._recomputed()]
            ),
            *outputs,
            f"tw::sync_named({1 + plan.warpgroups} + group, {GROUP});",
            *CUDA.when("thread == 0", self._leave()),
            *["stored = at;"] * (plan.buffers > 1),
            plan.next_buffer,
        ]

    def _recomputed(self) -> list[str]:
        """Print how sums of row ``r`` are recomputed that hidden keys of visited tiles have
        spoilt."""
        plan = self.plan
        keys = (f"first_tile * {plan.keys}", f"end_tile * {plan.keys}")
        scale = 1 / RAISED if plan.sizes.has_bytes else 1.0
        lines = Recomputing(
            self.rows.chain,
            plan.row_access,
            ["sums[j * 4 + r * 2 + e]"],
            plan.pairs,
            "lane % 4 * 2 + j * 8",
            *keys,
            scale,
        ).lines()
        return CUDA.when(self._inside, lines) if lines else []

    @property
    def _inside(self) -> str:
        """The C condition that row ``r`` of a lane is one of the product's."""
        return f"own + r * 8 < {rows_of(self.plan.chained).count}"

    def _outputs(self) -> list[str]:
        """Print the stores of the outputs; if keys are split, the last block to come stores."""
        plan, merging = self.plan, self.plan.merging(self.rows.chain)
        kind = Finish if plan.output_box is None else PackedFinish
        outputs = [
            *merging.collect(self._inside),
            "const int column0 = lane % 4 * 2;",
            *[f"u32 packed[{plan.sizes.width // 4}];"] * (plan.output_box is not None),
            *self._stored(kind, "sums", plan.pairs, "true", self._inside),
            *(self._staged() if plan.output_box else []),
        ]
        if plan.split > 1:
            outputs = CUDA.when("is_last", outputs)
        return [*merging.leave(self._inside), *outputs]

    def _shared_outputs(self) -> list[str]:
        """Print how the parts of a cluster are merged, and this block's columns stored."""
        parts = ClusterParts(self.plan, self.rows.chain)
        inside = parts.stores(self._inside)
        return parts.lines(
            self._inside,
            [
                f"const int column0 = sharer * {parts.pairs * 8} + lane % 4 * 2;",
                *self._stored(Finish, "share", parts.pairs, "sharer == 0", inside),
            ],
        )

    def _stored(
        self, kind: type[Finish], sums: str, pairs: int, first: str, inside: str
    ) -> list[str]:
        """Print the stores of ``pairs`` groups of eight columns of each row that is ``inside``.

        Where ``first`` holds, too, they include outputs with one value for each row.
        """
        plan = self.plan
        finish = kind(self.rows.chain, plan.row_access, [f"{sums}[j * 4 + r * 2 + e]"], pairs)
        stored = finish.lines()
        if kind is Finish:
            stored = CUDA.when(inside, stored)
        is_first = f"const bool is_first = lane % 4 == 0 && {first} && {inside};"
        return each_row([is_first, *stored])

    def merging_lines(self) -> list[str]:
        """Print the second kernel: a block merges eight columns of the rows of a warpgroup."""
        plan, walk = self.plan, Walk(self.plan)
        merging = plan.later_merging(self.rows.chain)
        stored = self._stored(Finish, "sums", 1, "eight == 0", self._inside)
        merged = merging.merge(self._inside)  # written first: both declare what rows need
        return [
            "const i32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32;",
            f"const i32 eight = (i32)blockIdx.x % {plan.pairs};",
            f"const i32 slice = (i32)blockIdx.x / {plan.pairs};",
            f"const i32 tile_number = slice / {plan.warpgroups};",
            f"const i32 group = slice % {plan.warpgroups};",
            *walk.of_tile("tile_number"),
            "const int column0 = eight * 8 + lane % 4 * 2;",
            "float sums[4];",
            *merging.parts(),
            *["tw::await_launches();"] * plan.begins_early,
            *self.rows.places(),
            *merged,
            *stored,
        ]

    def _staged(self) -> list[str]:
        return [*Products(self.plan).stage_output(), "tw::fence_async();"]

    def _leave(self) -> list[str]:
        """Print how the output is stored from the rows' place, which is then freed."""
        plan, lines = self.plan, []
        if plan.output_box:
            place = row_place(plan.chained, "group_row")
            lines = plan.output_box.store("output", "region", place, plan.access.names)
            lines.append("tw::tma_commit();")
            if plan.split > 1:
                lines = CUDA.when("is_last", lines)
        return lines if plan.buffers > 1 else [*lines, *self._returned("at")]

    def hand_back(self) -> list[str]:
        """Print how the place of the previous tile's rows is freed, once its output has left."""
        if self.plan.buffers == 1:
            return []
        return CUDA.when("stored >= 0 && thread == 0", self._returned("stored"))

    def _returned(self, at: str) -> list[str]:
        wait = ["tw::tma_wait_read<0>();"] * (self.plan.output_box is not None)
        return [*wait, f"tw::mbarrier_arrive(rows_empty + 8 * {at});"]
