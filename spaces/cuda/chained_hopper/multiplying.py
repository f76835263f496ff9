"""The lines of a warpgroup that multiplies: scores, the chain, sums, and outputs at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from spaces.algebra.mapping_emit import indented
from spaces.cuda.chained.chain import ROWS, FragmentChain, Written
from spaces.cuda.chained.finish import Finish
from spaces.cuda.chained_hopper.outputs import PackedFinish
from spaces.cuda.chained_hopper.plan import ChainedPlan
from spaces.cuda.chained_hopper.products import Products
from spaces.cuda.chained_hopper.sizes import GROUP, TERMS
from spaces.cuda.chained_hopper.tiles import SLICE, row_place
from spaces.cuda.chained_hopper.walk import Walk
from spaces.derivation.chained.text import split
from spaces.language.tree import AxisValue, Expression


@dataclass(frozen=True)
class Multiplying:
    """Follows ``plan``."""

    plan: ChainedPlan

    @cached_property
    def _products(self) -> Products:
        return Products(self.plan)

    @cached_property
    def chain(self) -> FragmentChain:
        """What writes the chain of a thread's rows."""
        plan, chained = self.plan, self.plan.chained
        own = plan.row_access.knowing({chained.key.name: "key"})

        def row_leaf(node: Expression) -> str | None:
            return None if chained.reads_key(node) else plan.row_access.leaf(node)

        def key_leaf(node: Expression) -> str | None:
            if node == AxisValue(chained.key.axis):
                return "(float)first + (float)at"  # a conversion for the tile, not for each key
            reads = chained.key.name in chained.indexing.reads(node)
            return own.leaf(node) if reads else None

        return FragmentChain(
            chained, plan.keys // 2, ROWS, "h", lambda e: f"scores[{e}]",
            row_leaf, key_leaf, plan.spans.ends(plan.keys), str(plan.values["rescale"]),
        )  # fmt: skip

    # -- a block -----------------------------------------------------------------------------------

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
            *Walk(plan).multiplying(self._tile()),
            *[f"if (group == 0) tw::sync_named(1, {2 * GROUP});"] * turns,
            *["if (thread == 0) tw::tma_wait<0>();"] * (plan.output_box is not None),
        ]

    def _tile(self) -> list[str]:
        """What is done with a tile of rows."""
        plan = self.plan
        overlap = bool(plan.values["overlap"])
        first = self._first_scores()
        loop = self._overlapped() if overlap else self._in_turn()
        finish = self._finish()  # all say what is known of rows before
        return [
            *plan.key_tiles(),
            *self._rows(),
            "tw::mbarrier_wait(rows_full + 8 * at, rows_phase);",
            *self._products.hold_rows(),
            *self._all_keys([*first, *self._key_loop(loop), *self._last_sums()]),
            *finish,
        ]

    def _all_keys(self, body: Sequence[str]) -> list[str]:
        """The work on all tiles of keys, where there are some."""
        own = [
            "i32 more = 0;",
            "i32 j = end_tile - 1;",
            *self._own_tiles(),
            *self._pass_over("own_end"),
            *body,
            *self._pass_over("first_tile"),
        ]
        if self.plan.split == 1:
            return own
        count = self.plan.sizes.width // 2
        nothing = ["#pragma unroll", f"for (int e = 0; e < {count}; e++) sums[e] = 0.0f;"]
        return ["if (end_tile > first_tile) {", *indented(own), "} else {", *indented(nothing), "}"]

    def _key_loop(self, body: Sequence[str]) -> list[str]:
        """The loop over all tiles but the first."""
        last = "own_tile" if self._passes else "first_tile"
        return ["#pragma unroll 1", f"for (j--; j >= {last}; j--) {{", *indented(body), "}"]

    @property
    def _passes(self) -> bool:
        return bool(self.plan.values["own_keys"])

    def _own_tiles(self) -> list[str]:
        """The tiles of keys that some row of this warpgroup sees, from ``own_tile`` to before
        ``own_end``, one at least of the block's."""
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
        """Let tiles go down to ``last`` that none of this warpgroup's rows sees. All lanes have
        waited before their warp reports; a turn is passed on for each."""
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

    def _rows(self) -> list[str]:
        """What a thread knows of its rows."""
        plan, chained, integer = self.plan, self.plan.chained, self.plan.access.integer
        local = {part.name: f"q{n}" for n, part in enumerate(chained.rows)}
        body = [
            f"const {integer} row = tw_least(own + r * 8, {chained.row_count - 1});",
            *split("row", chained.rows, local, integer),
            *(f"p{n}[r] = q{n};" for n in range(len(local))),
            *self.chain.of_rows(),
        ]
        return [
            f"const i32 group_row = row0 + group * {SLICE};",
            "const i32 own = group_row + warp * 16 + lane / 4;",
            f"const u32 at = buffer * {plan.warpgroups} + group;",
            f"const u32 region = shared + at * {plan.region_bytes};",
            *plan.spans.whole_lines("group_row", SLICE, "whole_first", "whole_last"),
            *(f"{integer} p{n}[{ROWS}];" for n in range(len(local))),
            *([] if self._bounds_again else self._bounds()),
            *self.chain.declared(),
            "#pragma unroll",
            f"for (int r = 0; r < {ROWS}; r++) {{",
            *indented(body),
            "}",
        ]

    @property
    def _bounds_again(self) -> bool:
        """Whether the ends of a row's keys are found anew where they are wanted, which takes no
        registers in between: not if they come from tables."""
        atoms = (atom for form in self.plan.chained.bounds for atom, _ in form.terms)
        return all(isinstance(atom, str) for atom in atoms)

    def _bounds(self) -> list[str]:
        """The ends of the keys of each row."""
        plan, chained, integer = self.plan, self.plan.chained, self.plan.access.integer
        names = {part.name: f"q{n}" for n, part in enumerate(chained.rows)}
        forms = plan.access.knowing(names).forms
        body = [
            f"const {integer} row = tw_least(tw::opaque(own) + r * 8, {chained.row_count - 1});",
            *split("row", chained.rows, names, integer),
            f"{integer} begin, end;",
            *forms.bounds(chained.bounds, chained.key, "begin", "end"),
            "low[r] = (int)begin;",
            "high[r] = (int)tw_most(end, 0);",
        ]
        loop = [f"for (int r = 0; r < {ROWS}; r++) {{", *indented(body), "}"]
        return [f"int low[{ROWS}], high[{ROWS}];", "#pragma unroll", *loop]

    # -- a tile of keys ----------------------------------------------------------------------------

    def _first_scores(self) -> list[str]:
        apart = not self.plan.values["overlap"]
        return [
            "tw::mbarrier_wait(keys_full + 8 * stage, phase);",
            *self._turn(apart),
            *self._products.scores("stage"),
            *self._give(apart),
            *self._hand_back(),
            "tw::wgmma_wait<0>();",
            "tw::settle(scores);",
            _release("keys", "stage"),
            "{",
            *indented(self._weigh().lines),
            "}",
            *self._products.pack(),
        ]

    def _overlapped(self) -> list[str]:
        """Scores of the next tile and sums of this one are multiplied at a time; the next tile's
        chain runs beside the sums.

        A second wait for the same barrier ends nothing but a block of instructions, past which the
        compiler moves none: it would put off exponentials until the sums have ended.
        """
        weighed = self._weigh()
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
            "tw::settle(scores);",
            "tw::mbarrier_wait(values_full + 8 * stage, phase);",
            "tw::wgmma_wait<0>();",
            "tw::settle(sums);",
            _release("values", "stage"),
            *self._products.pack(),
            *self._correct(weighed),
            "more = 1;",
            "stage = next;",
            "phase = after;",
        ]

    def _in_turn(self) -> list[str]:
        """Sums of this tile, then scores and chain of the next."""
        weighed = self._weigh()
        return [
            *self._turn(),
            *self._products.sums(),
            "tw::wgmma_wait<0>();",
            "tw::settle(sums);",
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
            *self._correct(weighed),
            "more = 1;",
        ]

    def _last_sums(self) -> list[str]:
        apart = not self.plan.values["overlap"]
        return [
            *self._turn(apart),
            *self._products.sums(),
            *self._give(apart),
            "tw::wgmma_wait<0>();",
            "tw::settle(sums);",
            _release("values", "stage"),
            self.plan.next_stage,
        ]

    def _weigh(self) -> Written:
        """The chain over tile ``j``: lines, and how sums are then to be corrected."""
        plan, chain = self.plan, self.chain
        start = [f"const int tile = j * {plan.keys}, first = tile + lane % 4 * 2;"]
        bounds = self._bounds() if self._bounds_again else []
        whole = f"tile >= whole_first && tile + {plan.keys} <= whole_last"
        if chain.hidden is not None:
            first, hide, after = chain.hiding_tile()
            head = f"if (!({whole})) {{" if plan.spans.can_be_whole else "{"
            lines = [*start, *first, head, *indented([*bounds, *hide]), "}", *after.lines]
            return replace(after, lines=lines)
        masked, unmasked = chain.tile(masked=True), chain.tile(masked=False)
        branch = ["{", *indented([*bounds, *_kept(masked)]), "}"]
        if plan.spans.can_be_whole:
            branch = [f"if ({whole}) {{", *indented(_kept(unmasked)), "} else", *branch]
        declared = [f"float factor[{ROWS}];", "bool is_moved = true;"]
        factors = ["factor" if name else None for name in masked.factors]
        moved = masked.moved and "is_moved"
        return Written([*start, *declared, *branch], factors, moved)

    def _correct(self, weighed: Written) -> list[str]:
        """Sums of results that moved."""
        (factor,) = weighed.factors
        if factor is None:
            return []
        scale = f"for (int e = 0; e < {self.plan.sizes.width // 2}; e++)"
        lines = ["#pragma unroll", f"{scale} sums[e] *= {factor}[e / 2 % 2];"]
        if weighed.moved is None:
            return lines
        return [f"if ({weighed.moved}) {{", *indented(lines), "}"]

    def _turn(self, wanted: bool = True) -> list[str]:
        """Wait for this warpgroup's turn to multiply."""
        taken = wanted and bool(self.plan.values["ping_pong"])
        return [f"tw::sync_named(1 + group, {2 * GROUP});"] * taken

    def _give(self, wanted: bool = True) -> list[str]:
        """Give the turn on."""
        taken = wanted and bool(self.plan.values["ping_pong"])
        following = f"1 + (group + 1) % {self.plan.warpgroups}"
        return [f"tw::arrive_named({following}, {2 * GROUP});"] * taken

    # -- the end of a tile of rows -----------------------------------------------------------------

    def _finish(self) -> list[str]:
        plan = self.plan
        kind = Finish if plan.output_box is None else PackedFinish
        finish = kind(
            self.chain, plan.row_access, ["sums[j * 4 + r * 2 + e]"], plan.sizes.width // 8
        )
        inside = f"own + r * 8 < {plan.chained.row_count}"
        stored = finish.lines()
        if plan.output_box is None:
            stored = [f"if ({inside}) {{", *indented(stored), "}"]
        merging = plan.merging(self.chain)
        outputs = [
            *merging.collect(inside),
            *_each_row([f"const bool is_first = lane % 4 == 0 && {inside};", *stored]),
            *(self._staged() if plan.output_box else []),
        ]
        if plan.split > 1:
            outputs = ["if (is_last) {", *indented(outputs), "}"]
        return [
            *(self._bounds() if self._bounds_again else []),
            "const int column0 = lane % 4 * 2;",
            *[f"u32 packed[{plan.sizes.width // 4}];"] * (plan.output_box is not None),
            *_each_row([*self.chain.joined_rows(), *self._caught_up()]),
            *merging.leave(inside),
            *outputs,
            f"tw::sync_named({1 + plan.warpgroups} + group, {GROUP});",
            "if (thread == 0) {",
            *indented(self._leave()),
            "}",
            *["stored = at;"] * (plan.buffers > 1),
            plan.next_buffer,
        ]

    def _caught_up(self) -> list[str]:
        """Sums of row ``r`` from the base that they had to the results."""
        (factor,) = self.chain.last_factors
        scale = f"for (int e = 0; e < {self.plan.sizes.width // 2}; e++)"
        return [f"{scale} if (e / 2 % 2 == r) sums[e] *= {factor};"] if factor else []

    def _staged(self) -> list[str]:
        return [*self._products.stage_output(), "tw::fence_async();"]

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

    def _hand_back(self) -> list[str]:
        """The place of the rows of the tile before, which its output has left by now."""
        if self.plan.buffers == 1:
            return []
        return ["if (stored >= 0 && thread == 0) {", *indented(self._returned("stored")), "}"]

    def _returned(self, at: str) -> list[str]:
        wait = ["tw::tma_wait_read<0>();"] * (self.plan.output_box is not None)
        return [*wait, f"tw::mbarrier_arrive(rows_empty + 8 * {at});"]


def _release(what: str, stage: str) -> str:
    """Each warp reports a stage: waiting for wgmma tells it of its own part only."""
    return f"if (lane == 0) tw::mbarrier_arrive({what}_empty + 8 * {stage});"


def _kept(written: Written) -> list[str]:
    """The lines of one of two branches, with what is told of them outside."""
    (factor,) = written.factors
    copied = [f"for (int h = 0; h < {ROWS}; h++) factor[h] = {factor}[h];"] if factor else []
    return [*written.lines, *copied, *([f"is_moved = {written.moved};"] if written.moved else [])]


def _each_row(body: Sequence[str]) -> list[str]:
    """A loop over the rows of a thread."""
    return ["#pragma unroll", f"for (int r = 0; r < {ROWS}; r++) {{", *indented(body), "}"]
