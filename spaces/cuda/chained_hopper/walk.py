"""The tiles that a block works on: one, every n-th, or the next that is left.

Tiles are numbered so that heads of a section take turns, from the last rows to the first: if a
condition (a causal mask) lets later rows see more keys, long tiles come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chains.ends import products_of, rows_of
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.kernels.text import CUDA

WALKS = ("grid", "persistent", "tickets")


class Walk:
    """The loops over tiles of the producer thread and of consumer warpgroups.

    Each declares ``head`` and ``row0``, and the axes of the head.
    """

    def __init__(self, plan: ChainedPlan) -> None:
        self.plan = plan
        self.rows = int(plan.sizes.rows(plan.values))
        rows, heads = rows_of(plan.chained), products_of(plan.chained)
        self.tiles = rows.tiles(self.rows)
        self.total = str(int(plan.sizes.items(plan.values)))
        if rows.is_open or heads.is_open:
            self.total = f"({self.tiles} * {heads.count} * {plan.split})"
        self.kind = str(plan.values["tile_scheduler"])

    @property
    def last(self) -> str:
        """C text of the last tile."""
        return str(int(self.total) - 1) if self.total.isdigit() else f"{self.total} - 1"

    def loading(self, body: Sequence[str]) -> list[str]:
        """Print the producer's loop that runs ``body`` for each tile, and hands tickets on."""
        inside = [*self._place(), *body]
        if self.kind != "tickets":
            return self._plain(inside)
        ticket = [
            "const u32 ticket = tw::take_ticket((u32 *)workspace);",
            f"if (ticket == {self.last}) tw::store_global<u32>((u32 *)workspace, 0u);",
            "tile = (i32)ticket + (i32)gridDim.x;",
        ]
        return [
            "i32 tile = (i32)blockIdx.x, number = 0;",
            "#pragma unroll 1",
            f"for (; tile < {self.total}; number++) {{",
            *indented([*self._hand_on("tile"), *inside, *ticket]),
            "}",
            *self._hand_on(self.total),
        ]

    def multiplying(self, body: Sequence[str]) -> list[str]:
        """Print the consumers' loop that runs ``body`` for each tile."""
        inside = [*self._place(), *body]
        if self.kind != "tickets":
            return self._plain(inside)
        return [
            "#pragma unroll 1",
            "for (i32 number = 0;; number++) {",
            *indented([*self._take(), *inside]),
            "}",
        ]

    def _plain(self, inside: Sequence[str]) -> list[str]:
        if self.kind == "grid":
            return CUDA.block("const i32 tile = (i32)blockIdx.x;", *inside)
        first, step = "(i32)blockIdx.x", "(i32)gridDim.x"
        return CUDA.loop("tile", self.total, inside, first=first, step=step, unroll=1, kind="i32")

    def _hand_on(self, tile: str) -> list[str]:
        full, empty = (
            f"shared + {self.plan.barriers[f'ticket_{k}'][0]}" for k in ("full", "empty")
        )
        return [
            f"tw::mbarrier_wait({empty} + 8 * (number % 2), (number / 2 % 2) ^ 1);",
            f"tw::store_shared<i32>(shared + {self.plan.tickets_at} + 4 * (number % 2), {tile});",
            f"tw::mbarrier_arrive({full} + 8 * (number % 2));",
        ]

    def _take(self) -> list[str]:
        full, empty = (
            f"shared + {self.plan.barriers[f'ticket_{k}'][0]}" for k in ("full", "empty")
        )
        at = f"shared + {self.plan.tickets_at} + 4 * (number % 2)"
        return [
            f"tw::mbarrier_wait({full} + 8 * (number % 2), number / 2 % 2);",
            f"const i32 tile = tw::load_shared<i32>({at});",
            "tw::sync_warp();",
            f"if (lane == 0) tw::mbarrier_arrive({empty} + 8 * (number % 2));",
            f"if (tile >= {self.total}) break;",
        ]

    def _place(self) -> list[str]:
        plan = self.plan
        parts, number = [], "tile"
        if plan.split > 1:
            number = "tile_number"
            parts = [
                f"const i32 part = tile % {plan.split}, tile_number = tile / {plan.split};",
            ]
        return [*parts, *self.of_tile(number)]

    def of_tile(self, number: str) -> list[str]:
        """Print the declarations of the head and the rows of a tile, given its number."""
        plan, section = self.plan, self.plan.number("head_group")
        end = rows_of(plan.chained)
        every = f"({self.tiles} * {section})" if end.is_open else section * int(self.tiles)
        last = end.last_tile(self.rows)
        lines = [
            f"const i32 within = {number} % {every};",
            f"const i32 head = {number} / {every} * {section} + within % {section};",
            f"const i32 row0 = ({last} - within / {section}) * {self.rows};",
        ]
        return [*lines, *split("head", plan.chained.batch, plan.access.names, plan.access.integer)]
