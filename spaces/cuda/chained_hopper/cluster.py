"""The exchange at the end where the blocks of a cluster split the keys of a tile of rows.

Each block merges and stores a share of the columns (reduce-scatter). Parts are sent to where tiles
of keys were, which no block multiplies from any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chained_hopper.fetching.tiles import SLICE
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.ends import rows_of
from tilewright.spaces.cuda.chains.splits.merging import PartMerging
from tilewright.spaces.cuda.chains.splits.rooms import SHARED, Crew
from tilewright.spaces.cuda.chains.splits.sending import ALL_READY, VECTOR, SentParts, rows_inside
from tilewright.spaces.cuda.chains.splits.splitting import own_pairs
from tilewright.spaces.cuda.warpgroups import GROUP


@dataclass(frozen=True)
class ClusterParts:
    """The exchange of a warpgroup, in a kernel that follows ``plan``; ``chain`` is that of its
    rows."""

    plan: ChainedPlan
    chain: FragmentChain

    @property
    def pairs(self) -> int:
        """Groups of eight columns that a block stores."""
        return own_pairs(self.plan.pairs, self.plan.split)

    def stores(self, inside: str) -> str:
        """Return the C condition under which a block has columns of row ``r`` to store."""
        if self.pairs * self.plan.split == self.plan.pairs:
            return inside
        return f"part * {self.pairs} < {self.plan.pairs} && {inside}"

    def lines(self, inside: str, stored: Sequence[str]) -> list[str]:
        """Print how this block's part is sent, and its own columns of all parts are merged.

        The merged columns are in ``share``; the lines ``stored`` come after. Rows ``r`` for which
        ``inside`` does not hold have none.
        """
        return [
            *ALL_READY,
            f"float share[{self.pairs * VECTOR}];",
            "const i32 sharer = part;",
            *self._sent(inside).lines(),
            *stored,
        ]

    def _sent(self, inside: str) -> SentParts:
        plan = self.plan
        room = f"shared + {plan.keys_at} + group * {int(plan.sizes.sent_bytes(plan.values))}"
        crew = Crew(thread="thread", room=f"({room})")
        sums, count = [lambda i: f"share[{i}]"], self.pairs * VECTOR
        merged = PartMerging(
            self.chain, plan.split, 1, GROUP, sums, count, crew, room=SHARED, together=VECTOR
        )
        rows = int(plan.sizes.rows(plan.values))
        return SentParts(
            merged,
            [lambda i: f"sums[{i}]"],
            self.pairs,
            plan.pairs,
            plan.split,
            room,
            "parts_full + 8 * group",
            "sharer",
            "sharer",
            rows_inside("group_row", rows_of(plan.chained), SLICE, rows),
            inside,
        )
