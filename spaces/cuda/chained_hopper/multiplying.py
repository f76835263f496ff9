"""The code of a consumer warpgroup: scores, the chain, weighed sums, and outputs at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.chained_hopper.ending import Ending
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import SLICE
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chained_hopper.products import VALUES_ARE_THERE, Products, zeros
from tilewright.spaces.cuda.chained_hopper.rows import GroupRows
from tilewright.spaces.cuda.chained_hopper.walk import Walk
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.kernels.text import CUDA

ALL, STATES = 1, 2
"""Values of the decision ``chain_overlap``: how much of a tile's chain runs beside the sums.

All of it, or only its first loop, which finds the states (maxima).
"""


@dataclass(frozen=True)
class Multiplying:
    """A consumer warpgroup of a kernel that follows ``plan``."""

    plan: ChainedPlan

    @cached_property
    def _products(self) -> Products:
        return Products(self.plan)

    @cached_property
    def rows(self) -> GroupRows:
        """The rows of a warpgroup."""
        return GroupRows(self.plan)

    @cached_property
    def _ending(self) -> Ending:
        return Ending(self.plan, self.rows)

    def merging(self) -> list[str]:
        """Print the body of the kernel that merges parts; its rows know of no tiles of keys."""
        return Ending(self.plan, GroupRows(self.plan)).merging_lines()

    # -- a block -----------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """Print the code of a warpgroup's threads, for all tiles of rows of the block."""
        plan, sizes = self.plan, self.plan.sizes
        last, turns = plan.warpgroups - 1, bool(plan.values["ping_pong"])
        return [
            "const i32 thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;",
            "u32 stage = 0, phase = 0, buffer = 0, rows_phase = 0;",
            *["i32 stored = -1;"] * (plan.buffers > 1),
            *[f"if (group == {last}) tw::arrive_named(1, {2 * GROUP});"] * turns,
            f"float scores[{plan.keys // 2}], sums[{sizes.width // 2}];",
            f"u32 weights[{plan.key_steps}][4];",
            *[f"u32 held[{plan.depth_steps}][4];"] * plan.in_registers,
            *[f"float added[{sizes.width // 2}];"] * sizes.has_bytes,
            *Walk(plan).multiplying(self._tile()),
            *[f"if (group == 0) tw::sync_named(1, {2 * GROUP});"] * turns,
            *["if (thread == 0) tw::tma_wait<0>();"] * (plan.output_box is not None),
        ]

    def _tile(self) -> list[str]:
        """Print the work on one tile of rows."""
        plan = self.plan
        overlap = bool(plan.values["overlap"])
        first = self._first_scores()
        loop = self._overlapped() if overlap else self._in_turn()
        finish = self._ending.lines()  # written first: all declare what rows need
        return [
            *plan.key_tiles(),
            *self.rows.lines(),
            "tw::mbarrier_wait(rows_full + 8 * at, rows_phase);",
            *self._products.hold_rows(),
            *self._all_keys(
                [
                    *first,
                    *self._products.without_last("j"),
                    *self._key_loop(loop),
                    *self._products.without_first("(j + 1)"),
                    *self._last_sums(),
                ]
            ),
            *finish,
        ]

    def _all_keys(self, body: Sequence[str]) -> list[str]:
        """Print the work on all tiles of keys, if there are some."""
        plan = self.plan
        own = [
            *([] if plan.sizes.has_bytes else ["i32 more = 0;"]),
            *(zeros(plan.sizes.width // 2) if plan.sizes.has_bytes else []),
            "i32 j = end_tile - 1;",
            *self._own_tiles(),
            *self._pass_over("own_end"),
            *body,
            *self._pass_over("first_tile"),
        ]
        if plan.split == 1:
            return own
        nothing = [*zeros(plan.sizes.width // 2), *self._ending.hand_back()]
        return CUDA.when("end_tile > first_tile", own, nothing)

    def _key_loop(self, body: Sequence[str]) -> list[str]:
        """Print the loop over all tiles of keys but the first."""
        last = "own_tile" if self._passes else "first_tile"
        return ["#pragma unroll 1", f"for (j--; j >= {last}; j--) {{", *indented(body), "}"]

    @property
    def _passes(self) -> bool:
        return bool(self.plan.values["skip_per_warpgroup"])

    def _own_tiles(self) -> list[str]:
        """Print the bounds of the tiles of keys that this warpgroup's rows see.

        They go from ``own_tile`` to before ``own_end`` and have at least one of the block's tiles.
        """
        if not self._passes:
            return []
        n = self.plan.keys
        first, end = f"(i32)own_key / {n}", f"((i32)own_end_key + {n - 1}) / {n}"
        return [
            *self.plan.spans.block_lines("group_row", SLICE, "own_key", "own_end_key"),
            f"const i32 own_tile = tw_least(tw_most({first}, first_tile), end_tile - 1);",
            f"const i32 own_end = tw_least(tw_most({end}, own_tile + 1), end_tile);",
        ]

    def _pass_over(self, last: str) -> list[str]:
        """Print a loop down to tile ``last`` over tiles that none of this warpgroup's rows sees.

        All lanes have waited before their warp releases a stage; the turn is passed on for each
        tile.
        """
        if not self._passes:
            return []
        return [
            "#pragma unroll 1",
            f"for (; j >= {last}; j--) {{",
            "  tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            "  tw::mbarrier_wait(values_full + 8 * stage, phase);",
            "  tw::sync_warp();",
            *indented([_release("keys", "stage"), _release("values", "stage")]),
            *indented([*self._turn(), *self._give(), self.plan.next_stage]),
            "}",
        ]

    # -- a tile of keys ----------------------------------------------------------------------------

    def _first_scores(self) -> list[str]:
        apart = not self.plan.values["overlap"]
        return [
            "tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            *self._turn(apart),
            *self._products.scores("stage"),
            *self._give(apart),
            *self._ending.hand_back(),
            "tw::wgmma_wait<0>();",
            "tw::settle(scores);",
            _release("keys", "stage"),
            *CUDA.block(*self.rows.weigh().lines),
            *self._products.pack(),
        ]

    def _overlapped(self) -> list[str]:
        """Print the work on a tile, with the next tile's scores and this one's sums in flight.

        The next tile's chain, or some of it, runs beside the sums. A second wait for the same
        barrier ends nothing but a block of instructions, past which the compiler moves none:
        without it, the compiler puts maxima and exponentials off until the sums have ended.
        """
        beside, end = self.plan.values["chain_overlap"], [VALUES_ARE_THERE]
        weighed = self.rows.weigh(end if beside == STATES else ())
        return [
            "u32 next = stage + 1, after = phase;",
            f"if (next == {self.plan.stages}) {{ next = 0; after ^= 1; }}",
            "tw::mbarrier_wait(keys_full + 8 * next, after);",
            *self._turn(),
            *self._products.scores("next"),
            *self._products.sums(),
            *self._give(),
            "tw::wgmma_wait<1>();",
            "tw::settle(scores);",
            _release("keys", "next"),
            *weighed.lines,
            *(["tw::settle(scores);", *end] if beside == ALL else []),
            "tw::wgmma_wait<0>();",
            *self._products.settle_sums(),
            _release("values", "stage"),
            *self._products.pack(),
            *self.rows.correct(weighed),
            *([] if self.plan.sizes.has_bytes else ["more = 1;"]),
            "stage = next;",
            "phase = after;",
        ]

    def _in_turn(self) -> list[str]:
        """Print the sums of this tile, then scores and chain of the next, nothing in parallel."""
        weighed = self.rows.weigh()
        return [
            *self._turn(),
            *self._products.sums(),
            "tw::wgmma_wait<0>();",
            *self._products.settle_sums(),
            _release("values", "stage"),
            self.plan.next_stage,
            "tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            *self._products.scores("stage"),
            *self._give(),
            "tw::wgmma_wait<0>();",
            "tw::settle(scores);",
            _release("keys", "stage"),
            *weighed.lines,
            *self._products.pack(),
            *self.rows.correct(weighed),
            *([] if self.plan.sizes.has_bytes else ["more = 1;"]),
        ]

    def _last_sums(self) -> list[str]:
        apart = not self.plan.values["overlap"]
        return [
            *self._turn(apart),
            *self._products.sums(),
            *self._give(apart),
            "tw::wgmma_wait<0>();",
            *self._products.settle_sums(),
            _release("values", "stage"),
            self.plan.next_stage,
        ]

    def _turn(self, wanted: bool = True) -> list[str]:
        """Print how this warpgroup waits for its turn to multiply."""
        taken = wanted and bool(self.plan.values["ping_pong"])
        return [f"tw::sync_named(1 + group, {2 * GROUP});"] * taken

    def _give(self, wanted: bool = True) -> list[str]:
        """Print how the turn is passed to the next warpgroup."""
        taken = wanted and bool(self.plan.values["ping_pong"])
        following = f"1 + (group + 1) % {self.plan.warpgroups}"
        return [f"tw::arrive_named({following}, {2 * GROUP});"] * taken


def _release(what: str, stage: str) -> str:
    """Return the statement by which a warp releases a stage.

    Each warp does, since waiting for wgmma tells a warp of its own part only.
    """
    return f"if (lane == 0) tw::mbarrier_arrive({what}_empty + 8 * {stage});"
