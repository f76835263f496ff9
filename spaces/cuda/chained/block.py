"""The plan of one block of a chained kernel: extents, names in C, and the code of its chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.cuda.blocks.unrolled import THREAD
from tilewright.spaces.cuda.chained.kinds import FLOAT8
from tilewright.spaces.cuda.chained.sizes import ChainedSizes
from tilewright.spaces.cuda.chains.access import Access, leaves
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.ends import rows_of
from tilewright.spaces.cuda.chains.lanes import ROWS
from tilewright.spaces.cuda.chains.spans import Spans
from tilewright.spaces.cuda.chains.splits.merging import PartMerging
from tilewright.spaces.cuda.chains.splits.rooms import SHARED, Crew
from tilewright.spaces.cuda.chains.splits.sending import VECTOR, SentParts, rows_inside
from tilewright.spaces.cuda.chains.splits.splitting import SplitKeys, own_pairs
from tilewright.spaces.cuda.chains.splits.state_merging import StateMerging
from tilewright.spaces.cuda.plan import Number, Size
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.schedule import Value

WIDE = 8
"""Columns of an accumulator."""


@dataclass(frozen=True)
class Block(SplitKeys):
    """A block of a kernel under the decisions ``values``, with these ``sizes``."""

    sizes: ChainedSizes
    values: Mapping[str, Value]

    @property
    def weight_kind(self) -> str:
        """The dtype in which weights are multiplied."""
        return str(self.values.get("weight_dtype", self.sizes.kinds.weights[0]))

    @property
    def has_byte_weights(self) -> bool:
        """True if weights are multiplied in float8."""
        return self.weight_kind in FLOAT8

    @property
    def chained(self) -> Chained:
        """The program, with bare scores."""
        return self.sizes.chained.unscaled

    threads = Size()
    rows = Size()
    stage_bytes = Size()
    receiving_teams = Size()
    teams = Number("warp_splits")
    """Groups of warps that each have all rows of the block, and keys of their own."""

    @property
    def team_threads(self) -> int:
        """Threads of a team."""
        return self.threads // self.teams

    @property
    def thread(self) -> str:
        """C text of a thread's number in its team."""
        return THREAD if self.teams == 1 else "thread"

    slices = Number("row_fragments")
    """Slices of sixteen rows of a warp."""
    keys = Number()

    @property
    def columns(self) -> int:
        """Columns of a block's sums; 0 if there are no sums."""
        return self.number("columns") if self.chained.weighings else 0

    @property
    def holds_rows(self) -> bool:
        """True if rows of the left operand stay in registers."""
        return self.values["query_storage"] == "registers"

    @cached_property
    def batch(self) -> Access[Chained]:
        """Names of the axes that are known for a block's product."""
        return Access(self.chained, {p.name: f"b{i}" for i, p in enumerate(self.chained.batch)})

    @cached_property
    def row(self) -> Access[Chained]:
        """Names of the axes that are known for row ``r`` of a lane."""
        rows = enumerate(self.chained.rows)
        return self.batch.knowing({part.name: f"p{i}[r]" for i, part in rows})

    @property
    def integer(self) -> str:
        """The C type of whole numbers."""
        return self.batch.integer

    @cached_property
    def chain(self) -> FragmentChain:
        """The code of the chain of slice ``f`` of a warp, whose scores are ``s[f]``."""
        return FragmentChain(
            self.chained,
            self.keys // 2,
            ROWS * self.slices,
            f"{ROWS} * f + h",
            lambda e: f"s[f][{e} / 4][{e} % 4]",
            *leaves(self.row),
            self.spans.ends(self.keys),
            str(self.values["rescale"]),
        )

    @cached_property
    def spans(self) -> Spans:
        """The ranges of keys that rows see."""
        return Spans(self.batch)

    @property
    def ring_bytes(self) -> int:
        """Bytes of shared memory of all stages of a team."""
        return self.number("stages") * self.stage_bytes

    @property
    def rings_bytes(self) -> int:
        """Bytes of shared memory of all stages of all teams."""
        return self.teams * self.ring_bytes

    @property
    def pairs(self) -> int:
        """Accumulators of a slice along the columns."""
        return self.columns // WIDE

    def declare_sums(self, pairs: int, array: str = "sums") -> list[str]:
        """Print the declaration of zero sums in ``pairs`` accumulators of each slice."""
        sums = (f"{array}{i}" for i in range(len(self.chained.weighings)))
        return [f"float {name}[{self.slices}][{pairs}][4] = {{}};" for name in sums]

    @property
    def sharers(self) -> int:
        """Teams that merge their parts in shared memory."""
        return self.teams * (self.split if self.is_cluster else 1)

    @property
    def key_part(self) -> str:
        """C text of the number of a team's part of the keys, among all blocks'."""
        if self.teams == 1:
            return "part"
        return "team" if self.split == 1 else f"(part * {self.teams} + team)"

    @property
    def sharer(self) -> str:
        """C text of a team's number among the sharers."""
        return "sharer" if self.is_cluster else "team"

    @cached_property
    def merging(self) -> PartMerging:
        """The merge, through global memory, of the parts of blocks that share keys.

        Each team has its share of the sums.
        """
        merging = self._merging(self.sum_name, self.own_pairs, f"{self.sharer} * {self.own_pairs}")
        crew = replace(merging.crew, thread=self.thread)
        states = "team == 0" if self.teams > 1 else ""
        split = 1 if self.is_cluster else self.split
        return replace(merging, split=split, crew=crew, has_states=states)

    @cached_property
    def later_merging(self) -> PartMerging:
        """The merge of a block of the second kernel: only the accumulators ``group`` of all
        slices."""
        return self._merging("sums", min(1, self.pairs), "group")

    @cached_property
    def team_parts(self) -> PartMerging:
        """The parts that teams leave in shared memory, each of its own keys."""
        crew = Crew(part="team", thread=self.thread)
        own = self._merging("sums", self.pairs, "0")
        return replace(own, split=self.sharers, tiles=1, crew=crew, room=SHARED)

    @cached_property
    def team_merging(self) -> PartMerging:
        """The merge of those parts; each team merges a share of the sums."""
        own, parts = self.merging, self.team_parts
        return replace(parts, sums=own.sums, count=own.count, left=own.left, place=own.place)

    @property
    def sent_bytes(self) -> int:
        """Bytes of shared memory for the parts that teams of a cluster send to those of a block.

        Their barriers lie behind it.
        """
        return self.receiving_teams * int(self.sizes.sent_bytes(self.values))

    def sent_parts(self, inside: str) -> SentParts:
        """Return the exchange between the teams of a cluster, of rows ``r`` that are ``inside``."""
        room, size = "shared", int(self.sizes.sent_bytes(self.values))
        crew = Crew(
            thread=self.thread, room=f"({room} + team * {size})" if self.teams > 1 else room
        )
        own = self._merging(self.sum_name, self.own_pairs, "0")
        merged = replace(
            own,
            split=self.sharers,
            tiles=1,
            crew=crew,
            room=SHARED,
            left=None,
            place=str,
            together=VECTOR,
        )
        return SentParts(
            merged,
            self._merging("sums", self.pairs, "0").sums,
            self.own_pairs,
            self.pairs,
            self.split,
            room,
            f"shared + {self.sent_bytes}",
            self.sharer,
            self.key_part,
            rows_inside("first_row", rows_of(self.chained), self.rows, self.rows),
            inside,
        )

    @property
    def sum_name(self) -> str:
        """The prefix of the arrays of sums that are stored."""
        return "sums" if self.sharers == 1 else "own"

    @property
    def own_pairs(self) -> int:
        """Accumulators of a slice along the columns that a team stores, if it stores any."""
        return own_pairs(self.pairs, self.sharers)

    def _merging(self, name: str, pairs: int, first: str) -> PartMerging:
        """Return the merge of ``pairs`` accumulators of each slice, from the ``first`` on."""
        every = self.pairs
        kind = PartMerging if self.chained.weighings else StateMerging
        merging = kind(
            self.chain,
            self.split,
            int(self.sizes.blocks(self.values)) // self.split,
            self.team_threads,
            [_sum_of(f"{name}{n}", pairs) for n in range(len(self.chained.weighings))],
            self.slices * pairs * 4,
        )
        if pairs == every:
            return merging

        def place(i: str) -> str:
            return f"({i} / {4 * pairs} * {every} + {first} + {i} / 4 % {pairs}) * 4 + {i} % 4"

        return replace(merging, left=self.slices * every * 4, place=place)


def _sum_of(name: str, pairs: int) -> Callable[[str], str]:
    return lambda i: f"{name}[{i} / {4 * pairs}][{i} / 4 % {pairs}][{i} % 4]"
