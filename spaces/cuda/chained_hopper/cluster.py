"""The blocks of a cluster merge their parts of a tile's keys, and each stores a share of the
columns.

A part is left in the shared memory of tiles of keys that no block multiplies from any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spaces.cuda.chained_hopper.plan import ChainedPlan
from spaces.cuda.chains.chain import FragmentChain
from spaces.cuda.chains.merging import PartMerging
from spaces.cuda.chains.rooms import Crew, cluster_room
from spaces.cuda.chains.splitting import own_pairs
from spaces.cuda.warpgroups import GROUP

MET = ("tw::sync_warp();", "tw::sync_cluster();")
"""What all threads of all blocks do before parts are read: those that load nothing more, too."""
LEFT = ("tw::sync_warp();", "tw::cluster_arrive();", "tw::cluster_wait();")
"""What they do before a block ends, whose part others read."""


@dataclass(frozen=True)
class ClusterParts:
    """Those of a warpgroup, whose rows have ``chain``. Follows ``plan``."""

    plan: ChainedPlan
    chain: FragmentChain

    @property
    def pairs(self) -> int:
        """Groups of eight columns that a block stores."""
        return own_pairs(self.plan.pairs, self.plan.split)

    def stores(self, inside: str) -> str:
        """C condition under which a block has columns of row ``r`` to store."""
        if self.pairs * self.plan.split == self.plan.pairs:
            return inside
        return f"part * {self.pairs} < {self.plan.pairs} && {inside}"

    def lines(self, inside: str, stored: Sequence[str]) -> list[str]:
        """Leave this block's part, merge the own columns of all, in ``share``, and do ``stored``
        with them. Rows ``r`` for which ``inside`` does not hold have none."""
        plan, merging = self.plan, self._merging
        mine = replace(merging, sums=[lambda i: f"share[{i}]"], count=self.pairs * 4)
        left = replace(mine, left=merging.count, place=lambda i: f"sharer * {self.pairs * 4} + {i}")
        return [
            f"tw::sync_named({1 + 2 * plan.warpgroups}, {plan.warpgroups * GROUP});",
            *merging.put(inside),
            *MET,
            f"float share[{self.pairs * 4}];",
            "const i32 sharer = part;",
            *left.merge(self.stores(inside)),
            *LEFT[:2],
            *stored,
            LEFT[0],
            LEFT[2],
        ]

    @property
    def _merging(self) -> PartMerging:
        plan = self.plan
        room = f"(shared + {plan.keys_at} + group * {plan.sizes.part_bytes})"
        crew = Crew(part="0", thread="thread", room=room)
        sums = [lambda i: f"sums[{i}]"]
        count = plan.sizes.width // 2
        return PartMerging(
            self.chain, plan.split, 1, GROUP, sums, count, crew, room=cluster_room(1)
        )
