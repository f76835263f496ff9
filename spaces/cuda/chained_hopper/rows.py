"""The rows of a consumer thread: where they are, which keys they see, and their chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.cuda.chained_hopper.fetching.tiles import SLICE
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chains.access import leaves
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.ends import keys_of, rows_of
from tilewright.spaces.cuda.chains.lanes import ROWS
from tilewright.spaces.cuda.chains.tile_chain import Written
from tilewright.spaces.derivation.chained.text import key_bounds, split
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class GroupRows:
    """The rows of a warpgroup, two for each thread, in a kernel that follows ``plan``."""

    plan: ChainedPlan

    @cached_property
    def chain(self) -> FragmentChain:
        """The code of the chain of a thread's rows."""
        plan, chained = self.plan, self.plan.chained
        return FragmentChain(
            chained, plan.keys // 2, ROWS, "h", lambda e: f"scores[{e}]",
            *leaves(plan.row_access), plan.spans.ends(plan.keys), str(plan.values["rescale"]),
        )  # fmt: skip

    def lines(self) -> list[str]:
        """Print the declarations of a thread's rows, and of their place in shared memory."""
        plan = self.plan
        return [
            *self.places(),
            f"const u32 at = buffer * {plan.warpgroups} + group;",
            f"const u32 region = shared + at * {plan.region_bytes};",
            *plan.spans.whole_lines("group_row", SLICE, "whole_first", "whole_last"),
            *([] if self._bounds_again else self._ends()),
        ]

    def places(self) -> list[str]:
        """Print the declarations of a thread's rows, with states of no keys."""
        chained, integer = self.plan.chained, self.plan.access.integer
        local = {part.name: f"q{n}" for n, part in enumerate(chained.rows)}
        body = [
            f"const {integer} row = tw_least(own + r * 8, {rows_of(chained).last});",
            *split("row", chained.rows, local, integer),
            *(f"p{n}[r] = q{n};" for n in range(len(local))),
            *self.chain.of_rows(),
        ]
        return [
            f"const i32 group_row = row0 + group * {SLICE};",
            "const i32 own = group_row + warp * 16 + lane / 4;",
            *(f"{integer} p{n}[{ROWS}];" for n in range(len(local))),
            *self.chain.declared(),
            *each_row(body),
        ]

    @property
    def _bounds_again(self) -> bool:
        """True if the bounds of a row's keys are computed anew where they are needed.

        So they take no registers in between; bounds from tables are not read again.
        """
        return not any(index.compound for index in self.plan.chained.bounds)

    def bounds(self) -> list[str]:
        """Print the bounds of each row's keys where they are needed, if they are not known yet."""
        return self._ends() if self._bounds_again else []

    def _ends(self) -> list[str]:
        """Print the bounds of each row's keys, ``low`` and ``high``."""
        plan, chained, integer = self.plan, self.plan.chained, self.plan.access.integer
        names = {part.name: f"q{n}" for n, part in enumerate(chained.rows)}
        body = [
            f"const {integer} row = tw_least(tw::opaque(own) + r * 8, {rows_of(chained).last});",
            *split("row", chained.rows, names, integer),
            f"{integer} begin, end;",
            *key_bounds(
                chained,
                chained.bounds,
                "begin",
                "end",
                plan.access.knowing(names).text,
                keys_of(chained).count,
            ),
            "low[r] = (int)begin;",
            "high[r] = (int)tw_most(end, 0);",
        ]
        return [f"int low[{ROWS}], high[{ROWS}];", *each_row(body)]

    def weigh(self, between: Sequence[str] = ()) -> Written:
        """Return the chain over tile ``j``: its lines, and how sums are corrected afterwards.

        The lines ``between`` come between its loops.
        """
        plan, chain = self.plan, self.chain
        start = [f"const int tile = j * {plan.keys}, first = tile + lane % 4 * 2;"]
        bounds = self.bounds()
        within = plan.spans.within(plan.keys)
        if chain.masked_value is not None:
            found = chain.any_tile(within, bounds, between)
            return replace(found, lines=[*start, *found.lines])
        masked, unmasked = (chain.tile(m, between) for m in (True, False))
        branch = CUDA.block(*bounds, *_kept(masked))
        if within:
            *whole, end = CUDA.when(" && ".join(within), _kept(unmasked))
            branch = [*whole, f"{end} else", *branch]
        declared = [f"float factor[{ROWS}];", "bool is_moved = true;"]
        factors = ["factor" if name else None for name in masked.factors]
        moved = masked.moved and "is_moved"
        return Written([*start, *declared, *branch], factors, moved)

    def correct(self, weighed: Written) -> list[str]:
        """Print how sums are rescaled if the results they depend on moved."""
        (factor,) = weighed.factors
        if factor is None:
            return []
        scaled = f"sums[e] *= {factor}[e / 2 % 2];"
        lines = CUDA.loop("e", self.plan.sizes.width // 2, scaled, unroll=True)
        return lines if weighed.moved is None else CUDA.when(weighed.moved, lines)

    def caught_up(self) -> list[str]:
        """Print how sums of row ``r`` are rescaled from their base to the final results."""
        (factor,) = self.chain.last_factors
        scaled = f"if (e / 2 % 2 == r) sums[e] *= {factor};"
        return CUDA.loop("e", self.plan.sizes.width // 2, scaled) if factor else []


def each_row(body: Sequence[str]) -> list[str]:
    """Return a loop of the lines over the rows of a thread."""
    return CUDA.loop("r", ROWS, body, unroll=True)


def _kept(written: Written) -> list[str]:
    """Return the lines of one of two branches, which copy its factors to variables outside."""
    (factor,) = written.factors
    copied = CUDA.loop("h", ROWS, f"factor[h] = {factor}[h];") if factor else []
    return [*written.lines, *copied, *([f"is_moved = {written.moved};"] if written.moved else [])]
