"""The assignment of elements to the threads of a thin kernel, in one step of the depth.

Along columns as along the depth, warps come first, then a thread's own turns, then lanes. A thread
reads whole vectors of the large operand, as its memory runs; of the small operand it reads the same
terms, in runs of neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.cuda.plan import Plan, Size
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.cuda.thin.product import ThinProduct
from tilewright.spaces.cuda.thin.sizes import ThinSizes
from tilewright.spaces.schedule import Value

READS = ("lanes", "rows")
"""A lane reads the vectors that it multiplies, or such that rows lie side by side."""


@dataclass(frozen=True)
class ThinTile(Plan):
    """The tile of a block in one step, under the decisions ``values``."""

    sizes: ThinSizes
    values: Mapping[str, Value]

    @property
    def thin(self) -> ThinProduct:
        """The product along its thin side."""
        return self.sizes.thin

    # -- extents -------------------------------------------------------------------------------

    @property
    def warps(self) -> tuple[int, int]:
        """Warps of a block along columns and depth."""
        return self.number("warp_columns"), self.number("warp_depth")

    @property
    def lanes(self) -> tuple[int, int]:
        """Lanes of a warp along columns and depth."""
        columns = self.number("lane_columns")
        return columns, WARP // columns

    @property
    def own(self) -> tuple[int, int]:
        """Columns and terms of a thread."""
        return self.number("thread_columns"), self.number("thread_depth")

    @property
    def vector(self) -> tuple[int, int]:
        """Columns and terms of the large operand that are read at once; one of them is 1."""
        width = self.thin.large_vector
        return (1, width) if self.thin.large_runs_deep else (width, 1)

    @property
    def vectors(self) -> tuple[int, int]:
        """Vectors of a thread along columns and depth."""
        return self.own[0] // self.vector[0], self.own[1] // self.vector[1]

    @property
    def run(self) -> int:
        """Neighbouring terms of a thread: those of a vector, or all its terms."""
        return self.vector[1] if self.thin.large_runs_deep else self.own[1]

    @property
    def runs(self) -> int:
        """Runs of a thread."""
        return self.own[1] // self.run

    threads = Size()
    columns = Size()
    depth = Size()

    # -- positions -----------------------------------------------------------------------------

    @property
    def part(self) -> Index:
        """The number of a thread's warp along the depth."""
        return self._thread // WARP % self.warps[1]

    @property
    def lane(self) -> tuple[Index, Index]:
        """A thread's lane along columns and depth."""
        lane = self._thread % WARP
        return lane // self.lanes[1], lane % self.lanes[1]

    def column(self, vector: Index, lane: Index | None = None) -> Index:
        """Return the first column, within the block, of vector number ``vector`` of a thread.

        If ``lane`` is given, the thread is that of its warp with this number along columns.
        """
        warp = self._thread // (WARP * self.warps[1])
        lane = self.lane[0] if lane is None else lane
        return ((warp * self.vectors[0] + vector) * self.lanes[0] + lane) * self.vector[0]

    def start(self, run: Index) -> Index:
        """Return the first term, within the step, of a thread's run number ``run``."""
        return ((self.part * self.runs + run) * self.lanes[1] + self.lane[1]) * self.run

    def term(self, vector: Index) -> Index:
        """Return the first term, within the step, of a thread's vector number ``vector``."""
        terms = vector * self.vector[1]
        return self.start(terms // self.run) + terms % self.run

    def register(self, column: Index, term: Index) -> Index:
        """Return the place of a thread's element among its registers: vector after vector."""
        wide = self.vector[0]
        return (column // wide * self.own[1] + term) * wide + column % wide

    # -- reading by rows -----------------------------------------------------------------------

    @property
    def by_rows(self) -> bool:
        """True if lanes read whole rows side by side.

        They find their own vectors in a slab of shared memory that belongs to their warp.
        """
        return self.values["load_order"] == "rows"

    @property
    def slab_pitch(self) -> int:
        """Bytes between columns in a slab, such that lanes have no bank conflicts."""
        return int(self.sizes.slab_pitch(self.own[1]))

    @property
    def slab_bytes(self) -> int:
        """Bytes of a slab."""
        return self.own[0] * self.lanes[0] * self.slab_pitch if self.by_rows else 0

    @property
    def slab(self) -> Index:
        """Offset of a thread's slab from the first one."""
        return self._thread // WARP * self.slab_bytes

    @property
    def columns_at_once(self) -> int:
        """Columns whose terms in a step a warp reads at once."""
        return WARP // (self.vectors[1] * self.lanes[1])

    def row_read(self, number: Index) -> tuple[Index, Index]:
        """Return column and first term, within the warp's tile, of a lane's read ``number``."""
        across = WARP // self.columns_at_once
        lane = self._thread % WARP
        column = number * self.columns_at_once + lane // across
        return column, lane % across * self.vector[1]

    def corner(self) -> tuple[Index, Index]:
        """Return the column within the block, and the term within the step, of a warp's tile."""
        warp = self._thread // (WARP * self.warps[1])
        return warp * (self.own[0] * self.lanes[0]), self.part * (self.own[1] * self.lanes[1])

    @property
    def _thread(self) -> Index:
        return index("(int)threadIdx.x", self.threads)
