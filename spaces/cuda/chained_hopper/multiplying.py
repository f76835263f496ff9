"""The lines of a warpgroup that multiplies, tile of rows after tile: scores, the chain, sums, and
outputs at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.mapping_emit import indented
from spaces.cuda.chained_hopper.ending import Ending
from spaces.cuda.chained_hopper.plan import ChainedPlan
from spaces.cuda.chained_hopper.products import Products
from spaces.cuda.chained_hopper.rows import GroupRows
from spaces.cuda.chained_hopper.sizes import GROUP, TERMS
from spaces.cuda.chained_hopper.steps import Steps
from spaces.cuda.chained_hopper.walk import Walk


@dataclass(frozen=True)
class Multiplying:
    """Follows ``plan``."""

    plan: ChainedPlan

    @cached_property
    def rows(self) -> GroupRows:
        """The rows of a warpgroup."""
        return GroupRows(self.plan)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self.plan, self.rows)

    @cached_property
    def _ending(self) -> Ending:
        return Ending(self.plan, self.rows)

    def merging(self) -> list[str]:
        """All of the kernel that merges parts, of rows that know of no tiles."""
        return Ending(self.plan, GroupRows(self.plan)).merging_lines()

    def lines(self) -> list[str]:
        """All of it."""
        plan, sizes = self.plan, self.plan.sizes
        last, turns = plan.warpgroups - 1, bool(plan.values["ping_pong"])
        return [
            "const i32 thread = threadIdx.x % 128, lane = threadIdx.x % 32, warp = thread / 32;",
            "u32 stage = 0, phase = 0, buffer = 0, rows_phase = 0;",
            *["i32 stored = -1;"] * (plan.buffers > 1),
            *[f"if (group == {last}) tw::arrive_named(1, {2 * GROUP});"] * turns,
            f"float scores[{plan.keys // 2}], sums[{sizes.width // 2}];",
            f"u32 weights[{plan.keys // TERMS}][4];",
            *[f"u32 held[{sizes.depth // TERMS}][4];"] * plan.in_registers,
            *(self._ahead() if plan.values["ahead"] else Walk(plan).multiplying(self._tile())),
            *[f"if (group == 0) tw::sync_named(1, {2 * GROUP});"] * turns,
            *["if (thread == 0) tw::tma_wait<0>();"] * (plan.output_box is not None),
        ]

    def _tile(self) -> list[str]:
        """What is done with a tile of rows."""
        plan, steps = self.plan, self._steps
        first = steps.first_scores(self._ending.hand_back())
        loop = steps.overlapped() if plan.values["overlap"] else steps.in_turn()
        finish = self._ending.lines()  # all say what is known of rows before
        return [
            *plan.key_tiles(),
            *self.rows.lines(),
            "tw::mbarrier_wait(rows_full + 8 * at, rows_phase);",
            *Products(plan).hold_rows(),
            *self._all_keys([*first, *steps.loop(loop), *steps.last_sums()]),
            *finish,
            plan.next_buffer,
        ]

    def _all_keys(self, body: Sequence[str]) -> list[str]:
        """The work on all tiles of keys, where there are some."""
        steps = self._steps
        own = ["i32 more = 0;", *steps.first(), *body, *steps.pass_over("first_tile")]
        if self.plan.split == 1:
            return own
        count = self.plan.sizes.width // 2
        nothing = ["#pragma unroll", f"for (int e = 0; e < {count}; e++) sums[e] = 0.0f;"]
        nothing += self._ending.hand_back()
        return ["if (end_tile > first_tile) {", *indented(own), "} else {", *indented(nothing), "}"]

    # -- the next rows' first scores before the end of a tile --------------------------------------

    def _ahead(self) -> list[str]:
        """All tiles of rows, each of which begins before the one before has ended.

        The next rows' first scores are multiplied beside the last sums, and while outputs are
        stored.
        """
        walk, steps = Walk(self.plan), self._steps
        weights, loop = steps.first_weights(), steps.loop(steps.overlapped())
        finish = self._ending.lines()  # all say what is known of rows before
        alone = [*steps.last_sums(), *steps.pass_over("first_tile"), *finish, "break;"]
        body = [
            *self.plan.key_tiles(),
            *self.rows.lines(),
            "i32 more = 0;",
            *steps.find_first(),
            *weights,
            *self._ending.hand_back(),
            *loop,
            self.plan.next_buffer,
            *walk.follow(),
            f"if ({walk.beyond('following')}) {{",  # not between products: ptxas would part them
            *indented(alone),
            "}",
            *self._pass_to_following("j - first_tile + 1"),
            *steps.scores_beside_sums(),
            *finish,
        ]
        start = [*self._pass_to_following("0"), *steps.pass_over_some(), *steps.start_scores()]
        return walk.ahead(["{", *indented(start), "}"], body)

    def _pass_to_following(self, own: str) -> list[str]:
        """Declare ``passed``: the tiles of keys, ``own`` and those of the tile after, that are
        passed over before this warpgroup's rows of that see one."""
        if not self._steps.passes:
            return []
        place = [*Walk(self.plan).of_following(), *self.plan.key_tiles(), self.rows.first]
        first = [*self._steps.own_tiles(), "passed += end_tile - own_end;"]
        return [f"i32 passed = {own};", "{", *indented([*place, *first]), "}"]
