"""The end of a Hopper tile whose sums are scores: the chain over its columns, row by row.

The states of a tile's rows are a part: that of its columns. Parts lie in the workspace until a
second kernel merges them by the derived corrections; a tile that has all columns writes the
outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.chains.access import Access, leaves
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.finish import Finish
from tilewright.spaces.cuda.chains.lanes import ROWS
from tilewright.spaces.cuda.chains.splits.leaving import SHARERS
from tilewright.spaces.cuda.chains.splits.merging import PartMerging
from tilewright.spaces.cuda.chains.splits.rooms import Crew
from tilewright.spaces.cuda.hopper.storing.store import TileStore
from tilewright.spaces.cuda.hopper.tile import BLOCK
from tilewright.spaces.cuda.hopper_reduced.merging import RowMerging
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class SliceRows:
    """64 rows and ``keys`` columns of a product, a ``chunk`` of columns at a time.

    The threads of a warpgroup have two rows each. ``score`` is the C text of an array of a thread's
    scores. Lines read ``own``, the number of a thread's first row; :meth:`begun` must be written
    last, for it declares what other lines have asked for. Threads that merge have ``count`` rows,
    one.
    """

    chained: Chained
    keys: int
    chunk: int
    score: str = ""
    count: int = ROWS

    @property
    def parts(self) -> int:
        """Parts of the columns."""
        return int(ceil_div(self.chained.key.extent, self.keys))

    @property
    def slices(self) -> int:
        """Slices of 64 rows."""
        return int(ceil_div(self.chained.row_count, BLOCK))

    @cached_property
    def access(self) -> Access[Chained]:
        """Names of the axes that are known for row ``r`` of a thread."""
        rows = enumerate(self.chained.rows)
        return Access(self.chained, {part.name: f"p{n}[r]" for n, part in rows})

    @cached_property
    def chain(self) -> FragmentChain:
        """The code of the chain of a thread's rows over a tile."""
        chained = self.chained
        return FragmentChain(
            chained, self.chunk // 2, self.count, "h", lambda e: f"{self.score}[chunk + {e}]",
            *leaves(self.access), (False, self._has_tail),
        )  # fmt: skip

    def merging(self, slice_number: str) -> PartMerging:
        """Return how the parts of a slice are left and merged."""
        crew = Crew(tile=slice_number, thread="thread")
        return PartMerging(self.chain, self.parts, self.slices, GROUP, [], 0, crew)

    @cached_property
    def merging_rows(self) -> RowMerging:
        """The merge by the threads of the second kernel."""
        crew = Crew(tile=f"own / {BLOCK}")
        return RowMerging(self.chain, self.parts, self.slices, GROUP, [], 0, crew)

    def reduced(self) -> list[str]:
        """Print how the tile at ``column0`` is reduced to its rows' states."""
        chunk, joined = self._of_chunk(), self._each_row(self.chain.joined_rows())
        tile = "const int tile = (int)column0 + chunk * 2, first = tile + lane % 4 * 2;"
        end, step = self.keys // 2, self.chunk // 2
        loop = CUDA.loop("chunk", end, [tile, *chunk], step=step, unroll=True)
        return [*self.begun(), *loop, *joined]

    def begun(self) -> list[str]:
        """Print the declarations of a thread's rows, with the states of no columns.

        They include all that the lines written before have asked for.
        """
        chained, integer = self.chained, self.access.integer
        names = {part.name: f"q{n}" for n, part in enumerate(chained.rows)}
        body = [
            f"const {integer} row = tw_least(own + r * 8, {chained.row_count - 1});",
            *split("row", chained.rows, names, integer),
            *(f"p{n}[r] = q{n};" for n in range(len(names))),
            f"low[r] = 0, high[r] = {chained.key.extent};",
            *self.chain.of_rows(),
        ]
        return [
            *(f"{integer} p{n}[{self.count}];" for n in range(len(names))),
            f"int low[{self.count}], high[{self.count}];",
            *self.chain.declared(),
            *self._each_row(body),
        ]

    def outputs(self) -> list[str]:
        """Print the stores of the outputs, from the rows' states."""
        finish = Finish(self.chain, self.access, [], 0)
        leads = "lane == 0" if self.count == 1 else f"lane % {SHARERS} == 0"
        is_first = f"const bool is_first = {leads} && {self.inside};"
        return self._each_row([is_first, *finish.lines()])

    def _each_row(self, body: Sequence[str]) -> list[str]:
        """Return a loop of the lines over the rows of a thread."""
        return CUDA.loop("r", self.count, body, unroll=True)

    @property
    def inside(self) -> str:
        """The C condition that row ``r`` is one of the product's."""
        return f"own + r * 8 < {self.chained.row_count}"

    @property
    def _has_tail(self) -> bool:
        return self.chained.key.extent % self.keys > 0

    def _of_chunk(self) -> list[str]:
        """Print the chain over a chunk; the last tile has columns that do not count."""
        chain = self.chain
        whole = f"tile + {self.chunk} <= {self.chained.key.extent}"
        if chain.masked_value is not None:
            return chain.any_tile(["true", whole] if self._has_tail else []).lines
        unmasked = chain.tile(masked=False).lines
        if not self._has_tail:
            return unmasked
        masked = chain.tile(masked=True).lines
        return CUDA.when(whole, unmasked, masked)


@dataclass(frozen=True)
class ReducedStore(TileStore):
    """The end of a tile that reduces the scores of ``rows``, in ``row_blocks`` blocks."""

    rows: SliceRows | None = None

    def lines(self) -> list[str]:
        """Print the reduction of each block that is within the output; those of a cluster may not
        be."""
        assert self.rows
        rows = replace(self.rows, score="sums[b]")
        merging = rows.merging(f"((int)row0 / {BLOCK} + b)")
        left = rows.outputs() if rows.parts == 1 else merging.put(rows.inside)
        body = [
            f"constexpr int TW_KEYS = {rows.chunk};",
            # opaque: rows are not worth registers before their turn
            f"const int thread = tw::opaque((int)threadIdx.x % {GROUP}), lane = thread % 32;",
            f"const int part = (int)column0 / {rows.keys};",
            f"const int own = (int)row0 + b * {BLOCK} + thread / 32 * 16 + lane / 4;",
            *rows.reduced(),
            *left,
        ]
        there = f"row0 + b * {BLOCK} < {rows.chained.row_count}"
        there += f" && column0 < {rows.chained.key.extent}"
        blocks = CUDA.when(there, body)
        return CUDA.loop("b", self.row_blocks, blocks, unroll=True, brief=True)
