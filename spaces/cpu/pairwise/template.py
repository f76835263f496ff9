"""The CPU template for sums over pairs of rows and keys, along both: gradients of attention.

It is a template of its own beside ``chained``, for its loops are nested the other way around: a
tile of keys stays while rows pass, sums of rows wait in memory, and no weight is ever corrected.
The code that copies rows, finds bounds and multiplies is shared.

Decisions:

- ``rows`` of a block, and ``keys`` of a tile that it meets.
- ``score_rows`` times ``score_vectors``: the register tile of the scores; ``sum_rows`` times
  ``sum_vectors``: that of all sums.
- ``workers``: threads that share the products; and, if there are several, ``splits``: the parts of
  a product's tiles of keys, of which every so many a part has each.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import FLOAT, Code
from tilewright.spaces.cpu.chained.blocks import multiples
from tilewright.spaces.cpu.chained.prelude import prelude
from tilewright.spaces.cpu.pairwise.blocks import Blocks
from tilewright.spaces.cpu.pairwise.rules import MOST_KEYS, pairwise_rules
from tilewright.spaces.cpu.pairwise.served import why_not_pairwise
from tilewright.spaces.cpu.pairwise.traffic import pairwise_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.tiles.decisions import TILE_VECTORS, WHOLE_TILE_ROWS
from tilewright.spaces.cpu.vectors import wide
from tilewright.spaces.derivation.chained.visited_tiles import VisitedTiles
from tilewright.spaces.derivation.pairwise.view import Pairwise, pairwise_of
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

MOST_ROWS = 384
"""The most rows of a block: enough to pay for the copies of a tile's keys."""
MOST_SPLITS = 2
"""The most parts of a product for each thread."""


class PairwiseTemplate(CpuTemplate):
    """Sums over pairs in float32, each pair of a row and a key visited once."""

    name: ClassVar[str] = "pairwise"
    version: ClassVar[int] = 2
    refuses_products: ClassVar[str] = (
        "it is a product of matrices; needs sums over pairs of rows and keys"
    )

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = pairwise_of(self.workload.program)
        assert isinstance(found, Pairwise)
        self.pairwise = found
        self.visited_tiles = VisitedTiles(found)
        self.lanes = self.cpu.lanes(FLOAT)
        self.decisions = self._decisions()
        self.rules = pairwise_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no sums over pairs of rows and keys, or an access that has no
        code."""
        return why_not_pairwise(workload)

    def blocks(self, values: Columns) -> Blocks:
        """Return the sizes of a schedule, or of columns of many."""
        return Blocks.of(self.pairwise, self.lanes, values)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.pairwise.traffic``."""
        return pairwise_quantities(self, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.pairwise.code import PairwiseCode

        values = schedule.values
        return PairwiseCode(
            pairwise=self.pairwise,
            operands=self.workload.operands,
            blocks=self.blocks(values),  # type: ignore[arg-type]
            workers=int(values["workers"]),
            splits=int(values.get("splits", 1)),
            entry=entry,
        )

    def _prelude(self) -> str:
        shared = prelude(self.functions, self.cpu)
        known = magnitudes(self.pairwise.program)
        return shared + wide.numbers(self.lanes, known, self.pairwise.expressions)

    def _decisions(self) -> tuple[Decision, ...]:
        found = self.pairwise
        widest = max(each.width.extent for each in found.sums)
        threads = self.cpu.threads
        splits = multiples(found.key.extent, (1, 3), MOST_SPLITS * threads)
        vectors = multiples(widest, (1, 3), 8 * self.lanes, self.lanes)
        return (
            Decision("rows", multiples(found.row_count, (1, 2, 3), MOST_ROWS)),
            Decision("keys", multiples(found.key.extent, (1, 3), MOST_KEYS, self.lanes)),
            Decision("score_rows", WHOLE_TILE_ROWS),
            Decision("score_vectors", TILE_VECTORS),
            Decision("sum_rows", WHOLE_TILE_ROWS),
            Decision("sum_vectors", tuple(n // self.lanes for n in vectors)),
            Decision("workers", self.cpu.even_workers),
            *([Decision("splits", splits)] if threads > 1 else []),
        )
