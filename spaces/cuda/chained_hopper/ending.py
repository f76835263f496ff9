"""The end of a tile of rows: parts are merged, outputs stored, and the rows' place handed back."""

from __future__ import annotations

from dataclasses import dataclass

from spaces.algebra.mapping_emit import indented
from spaces.cuda.chained_hopper.fetching.tiles import row_place
from spaces.cuda.chained_hopper.outputs import PackedFinish
from spaces.cuda.chained_hopper.plan import ChainedPlan
from spaces.cuda.chained_hopper.products import Products
from spaces.cuda.chained_hopper.rows import GroupRows, each_row
from spaces.cuda.chained_hopper.sizes import GROUP
from spaces.cuda.chains.finish import Finish


@dataclass(frozen=True)
class Ending:
    """Follows ``plan``, for the ``rows`` of a warpgroup."""

    plan: ChainedPlan
    rows: GroupRows

    def lines(self) -> list[str]:
        """All of it."""
        plan = self.plan
        kind = Finish if plan.output_box is None else PackedFinish
        finish = kind(
            self.rows.chain, plan.row_access, ["sums[j * 4 + r * 2 + e]"], plan.sizes.width // 8
        )
        inside = f"own + r * 8 < {plan.chained.row_count}"
        stored = finish.lines()
        if plan.output_box is None:
            stored = [f"if ({inside}) {{", *indented(stored), "}"]
        merging = plan.merging(self.rows.chain)
        outputs = [
            *merging.collect(inside),
            *each_row([f"const bool is_first = lane % 4 == 0 && {inside};", *stored]),
            *(self._staged() if plan.output_box else []),
        ]
        if plan.split > 1:
            outputs = ["if (is_last) {", *indented(outputs), "}"]
        return [
            *self.rows.bounds(),
            "const int column0 = lane % 4 * 2;",
            *[f"u32 packed[{plan.sizes.width // 4}];"] * (plan.output_box is not None),
            *each_row([*self.rows.chain.joined_rows(), *self.rows.caught_up()]),
            *merging.leave(inside),
            *outputs,
            f"tw::sync_named({1 + plan.warpgroups} + group, {GROUP});",
            "if (thread == 0) {",
            *indented(self._leave()),
            "}",
            *["stored = at;"] * (plan.buffers > 1),
            plan.next_buffer,
        ]

    def _staged(self) -> list[str]:
        return [*Products(self.plan).stage_output(), "tw::fence_async();"]

    def _leave(self) -> list[str]:
        """Store the output from where the rows were, and hand their place back."""
        plan, lines = self.plan, []
        if plan.output_box:
            place = row_place(plan.chained, "group_row")
            lines = plan.output_box.store("output", "region", place, plan.access.names)
            lines.append("tw::tma_commit();")
            if plan.split > 1:
                lines = ["if (is_last) {", *indented(lines), "}"]
        return lines if plan.buffers > 1 else [*lines, *self._returned("at")]

    def hand_back(self) -> list[str]:
        """The place of the rows of the tile before, which its output has left by now."""
        if self.plan.buffers == 1:
            return []
        return ["if (stored >= 0 && thread == 0) {", *indented(self._returned("stored")), "}"]

    def _returned(self, at: str) -> list[str]:
        wait = ["tw::tma_wait_read<0>();"] * (self.plan.output_box is not None)
        return [*wait, f"tw::mbarrier_arrive(rows_empty + 8 * {at});"]
