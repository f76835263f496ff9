"""The CUDA C++ of a consumer warpgroup: for each of its tiles, sum up all steps and store."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import index
from tilewright.spaces.cuda.blocks.copies.tile_copy import position_type
from tilewright.spaces.cuda.blocks.finish import numbered_parts
from tilewright.spaces.cuda.blocks.segments import number_of
from tilewright.spaces.cuda.hopper.multiply import MainLoop
from tilewright.spaces.cuda.hopper.plan import HopperPlan
from tilewright.spaces.cuda.hopper.sizes import group_registers
from tilewright.spaces.cuda.hopper.tile import BLOCK
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class Consumer:
    """A consumer warpgroup of the kernel that follows ``plan``.

    ``table`` is the C name of the order of tiles, where that is a table.
    """

    plan: HopperPlan
    table: str

    def lines(self) -> list[str]:
        """Print the whole code of its threads; it reads ``group`` and the addresses of the
        barriers."""
        plan = self.plan
        given = plan.number("producer_registers")
        registers = group_registers(plan.consumers, given)
        staging = [
            f"const u32 staging = shared + {plan.staging_at} + group * {plan.staging_bytes};",
            "u32 turn = 0;",
        ]
        fetching = [
            f"const u32 fetched = shared + {plan.fetched_at} + 8 * group;",
            "u32 fetched_phase = 0;",
        ]
        return [
            *([f"tw::registers_up<{registers}>();"] if given else []),
            f"const int thread = (int)threadIdx.x % {GROUP}, lane = thread % 32;",
            *(staging if plan.store.is_staged else []),
            *(fetching if plan.store.fetched else []),
            "u32 stage = 0, phase = 0;",
            *(self._in_turns() if plan.takes_turns else plan.grid.emit(self.table, self._next)),
            *plan.store.last_lines(),
        ]

    def _next(self) -> list[str]:
        """Print the work on one tile, passed over where a list of segments has no such tile."""
        return [*(self.plan.segments.skip() if self.plan.segments else []), *self._tile()]

    def _in_turns(self) -> list[str]:
        """Print the loop over tiles of warpgroups that take turns (ping-pong).

        Tiles go round the warpgroups, and so does the right to multiply: a warpgroup that ran ahead
        would take an earlier phase of a ``full`` barrier for its own.
        """
        plan, last = self.plan, self.plan.consumers - 1

        def tile() -> list[str]:
            passed = [
                "stage += steps;",
                f"phase ^= stage / {plan.stages} & 1;",
                f"stage %= {plan.stages};",
            ]
            return [
                *(plan.segments.skip() if plan.segments else []),
                *CUDA.when("whose == group", self._tile(), passed),
                f"whose = whose == {last} ? 0 : whose + 1;",
            ]

        return [
            "int whose = 0;",
            f"if (group == {last}) tw::arrive_named({self._turn('0')});",
            *plan.grid.emit(self.table, tile),
            f"if (whose == group) tw::sync_named({self._turn('group')});",
        ]

    def _turn(self, group: str) -> str:
        """Return the arguments of the barrier at which ``group`` waits for the one before it."""
        return f"{1 + self.plan.consumers} + {group}, {2 * GROUP}"

    def _pass_over(self) -> list[str]:
        """Print how a warpgroup with no rows before the end of the segment only empties stages."""
        plan = self.plan
        if plan.segments is None or plan.takes_turns or plan.swapped or plan.consumers == 1:
            return []
        return CUDA.when("row0 >= end_row", [*MainLoop(plan).idle(), "continue;"])

    def _tile(self) -> list[str]:
        """Print how a consumer warpgroup computes and stores one tile."""
        plan = self.plan
        position, (m_axis, n_axis) = position_type(plan.product), plan.axes
        own, member = f" + group * {plan.row_blocks * BLOCK}", "group"
        turn, turn_over = list[str](), list[str]()
        own_slice = f" + part * {plan.slice_columns}" if plan.sharers[1] > 1 else ""
        if plan.takes_turns:
            following = f"(group + 1) % {plan.consumers}"
            own, member = "", "0"
            turn = [f"tw::sync_named({self._turn('group')});"]
            turn_over = [f"tw::arrive_named({self._turn(following)});"]
        rank = " + rank" if plan.cluster_tiles > 1 else ""
        place, number = "place", index("(i64)number", plan.product.batches)
        if plan.segments:
            number = number_of(plan.product, "i64")
        elif plan.product.batch:
            place = f"(number * {plan.grid.places} + place)"
        factors = (plan.product.left, plan.product.right)
        operands = [o for o in plan.product.numbered if o not in factors]
        return [
            *(plan.segments.find() if plan.segments else []),
            *(plan.trimmed.count() if plan.trimmed else []),
            f"const {position} {m_axis}0 = {corner(plan, 0, f'({position})')}{own};",
            f"const {position} {n_axis}0 = {corner(plan, 1, f'({position})')}{own_slice};",
            *numbered_parts(plan.product, operands, number),
            *plan.store.fetch_lines(),
            *turn,
            *self._pass_over(),
            *MainLoop(plan).lines(turn_over),
            *plan.slices.lines(f"shared + {plan.received_at}", f"shared + {plan.exchanged_at}"),
            *plan.split.lines(
                f"{place} * {plan.cluster_tiles}{rank}",
                member,
                f"shared + {plan.slots_at} + 4 * group",
                plan.store.lines(),
            ),
        ]


def corner(plan: HopperPlan, side: int, cast: str = "") -> str:
    """Return C text of where the block's tile begins along m (``side`` 0) or n (1)."""
    if plan.segments and plan.axes[side] == "row":
        return "first_row"
    return f"{cast}tile_{plan.axes[side]} * {plan.written[side]}"
