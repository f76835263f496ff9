"""What a warpgroup does with tiles of keys: multiplies, computes the chain, or passes over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.mapping_emit import indented
from spaces.cuda.chained_hopper.fetching.tiles import SLICE
from spaces.cuda.chained_hopper.plan import ChainedPlan
from spaces.cuda.chained_hopper.products import Products
from spaces.cuda.chained_hopper.rows import GroupRows
from spaces.cuda.chained_hopper.sizes import GROUP
from spaces.cuda.chains.tile_chain import NOTHING, Between

ALL, STATES, HALF = 1, 2, 3
"""What must run ``beside`` sums, of a tile's chain: all, its first loop, which finds states, or
that and the weights of half of the rows."""
_VALUES_ARE_THERE = "tw::mbarrier_wait(values_full + 8 * stage, phase);"


@dataclass(frozen=True)
class Steps:
    """Those of a warpgroup, whose ``rows`` are known. Follows ``plan``."""

    plan: ChainedPlan
    rows: GroupRows

    @cached_property
    def _products(self) -> Products:
        return Products(self.plan)

    @property
    def passes(self) -> bool:
        """Whether it passes over tiles that none of its rows sees."""
        return bool(self.plan.values["own_keys"])

    # -- which tiles -------------------------------------------------------------------------------

    def first(self) -> list[str]:
        """Go to the first tile, ``j``, over those that are passed over."""
        return ["i32 j = end_tile - 1;", *self.own_tiles(), *self.pass_over("own_end")]

    def find_first(self) -> list[str]:
        """Declare the first tile ``j``, of which the scores have been started before."""
        last = "own_end" if self.passes else "end_tile"
        return [*self.own_tiles(), f"i32 j = {last} - 1;"]

    def loop(self, body: Sequence[str]) -> list[str]:
        """The loop over all tiles but the first."""
        last = "own_tile" if self.passes else "first_tile"
        return ["#pragma unroll 1", f"for (j--; j >= {last}; j--) {{", *indented(body), "}"]

    def own_tiles(self) -> list[str]:
        """The tiles of keys that some row of this warpgroup sees, from ``own_tile`` to before
        ``own_end``, one at least of the block's."""
        if not self.passes:
            return []
        n = self.plan.keys
        first, end = f"(i32)own_key / {n}", f"((i32)own_end_key + {n - 1}) / {n}"
        return [
            *self.plan.spans.block_lines("group_row", SLICE, "own_key", "own_end_key"),
            f"const i32 own_tile = tw_least(tw_most({first}, first_tile), end_tile - 1);",
            f"const i32 own_end = tw_least(tw_most({end}, own_tile + 1), end_tile);",
        ]

    def pass_over(self, last: str) -> list[str]:
        """Let tiles go down to ``last`` that none of this warpgroup's rows sees. All lanes have
        waited before their warp reports; a turn is passed on for each."""
        if not self.passes:
            return []
        return self._passing(f"for (; j >= {last}; j--) {{")

    def pass_over_some(self) -> list[str]:
        """Let ``passed`` tiles go."""
        return self._passing("for (; passed > 0; passed--) {") if self.passes else []

    def _passing(self, head: str) -> list[str]:
        return [
            "#pragma unroll 1",
            head,
            "  tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            "  tw::mbarrier_wait(values_full + 8 * stage, phase);",
            "  tw::sync_warp();",
            *indented([_release("keys", "stage"), _release("values", "stage")]),
            *indented([*self._turn(), *self._give(), self.plan.next_stage]),
            "}",
        ]

    # -- products and the chain --------------------------------------------------------------------

    def first_scores(self, beside: Sequence[str]) -> list[str]:
        """Scores of the first tile, with what is done ``beside``, and its chain."""
        apart = not self.plan.values["overlap"]
        return [
            "tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            *self._turn(apart),
            *self._products.scores("stage"),
            *self._give(apart),
            *beside,
            *self.first_weights(),
        ]

    def first_weights(self) -> list[str]:
        """The chain of the first tile, where its scores end."""
        return [
            "tw::wgmma_wait<0>();",
            "tw::settle(scores);",
            _release("keys", "stage"),
            "{",
            *indented(self.rows.weigh().lines),
            "}",
            *self._products.pack(),
        ]

    def overlapped(self) -> list[str]:
        """Scores of the next tile and sums of this one are multiplied at a time; the next tile's
        chain, or some of it, runs beside the sums.

        A second wait for the same barrier ends nothing but a block of instructions, past which the
        compiler moves none: without, it puts off maxima and exponentials until the sums have ended.
        """
        beside, end = self.plan.values["beside"], [_VALUES_ARE_THERE]
        between = Between(end, beside == HALF) if beside in (STATES, HALF) else NOTHING
        weighed = self.rows.weigh(between)
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
            *self._end_sums(),
            *self._products.pack(),
            *self.rows.correct(weighed),
            "more = 1;",
            "stage = next;",
            "phase = after;",
        ]

    def in_turn(self) -> list[str]:
        """Sums of this tile, then scores and chain of the next."""
        weighed = self.rows.weigh()
        return [
            *self._turn(),
            *self._products.sums(),
            *self._end_sums(),
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
            "more = 1;",
        ]

    def last_sums(self) -> list[str]:
        """Those of the last tile."""
        apart = not self.plan.values["overlap"]
        started = [*self._turn(apart), *self._products.sums(), *self._give(apart)]
        return [*started, *self._end_sums(), self.plan.next_stage]

    def _end_sums(self, stage: str = "stage", left: int = 0) -> list[str]:
        """Wait until sums have ended, but for so many products that have been started since."""
        return [
            f"tw::wgmma_wait<{left}>();",
            "tw::settle(sums);",
            _release("values", stage),
        ]

    # -- rows that come after ----------------------------------------------------------------------

    def start_scores(self) -> list[str]:
        """Start the first scores of the rows that come next."""
        lines = [
            *self.rows.room(),
            "tw::mbarrier_wait(rows_full + 8 * at, rows_phase);",
            *self._products.hold_rows(),
            "tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            *self._products.scores("stage"),
        ]
        return ["{", *indented(lines), "}"]

    def scores_beside_sums(self) -> list[str]:
        """Start those in turn while the last sums are multiplied, and wait for the sums: not where
        so many tiles are passed over in between that their values have no stage but that of these.
        """
        sums, scores = self._products.sums(), self.start_scores()
        next_stage = ["const u32 last = stage;", self.plan.next_stage]
        end = self._end_sums("last", left=1)
        if not self.passes:
            return [*self._turn(), *sums, *next_stage, *scores, *self._give(), *end]
        beside = [*sums, *self._give(), *next_stage, *self.pass_over_some(), *scores, *end]
        alone = [*self.last_sums(), *self._give(), *self.pass_over_some(), *scores]
        return [
            *self._turn(),
            f"if (passed < {self.plan.stages}) {{",
            *indented(beside),
            "} else {",
            *indented(alone),
            "}",
        ]

    def _turn(self, wanted: bool = True) -> list[str]:
        """Wait for this warpgroup's turn to multiply."""
        taken = wanted and bool(self.plan.values["ping_pong"])
        return [f"tw::sync_named(1 + group, {2 * GROUP});"] * taken

    def _give(self, wanted: bool = True) -> list[str]:
        """Give the turn on."""
        taken = wanted and bool(self.plan.values["ping_pong"])
        following = f"1 + (group + 1) % {self.plan.warpgroups}"
        return [f"tw::arrive_named({following}, {2 * GROUP});"] * taken


def _release(what: str, stage: str) -> str:
    """Each warp reports a stage: waiting for wgmma tells it of its own part only."""
    return f"if (lane == 0) tw::mbarrier_arrive({what}_empty + 8 * {stage});"
