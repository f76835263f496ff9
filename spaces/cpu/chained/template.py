"""The CPU template for chains over the columns of a product: attention, and what is like it.

Decisions:

- ``rows`` of a block, and ``keys`` of a tile that it meets.
- ``key_layout``: keys are packed in panels, all of a product or a tile in ``steps`` of its depth,
  or read in place; ``value_layout``: rows of matrices are copied, or read in place.
- ``score_rows`` times ``score_vectors``: the register tile of the scores; ``value_rows`` times
  ``value_vectors``: that of the sums.
- ``unroll``: vectors of keys in flight along a row.
- ``workers``: threads that share the blocks of rows; and, if there are several, ``splits``: the
  number of parts of the keys that blocks meet separately, to be merged in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import ClassVar

import numpy as np

from tilewright.spaces.corrected import CorrectedTemplate
from tilewright.spaces.cpu.abi import FLOAT, Code, c_kernel
from tilewright.spaces.cpu.chained.blocks import (
    COPIED,
    DEPTH_STEP,
    DOTS,
    IN_PLACE,
    PANELS,
    STEPS,
    Blocks,
    multiples,
)
from tilewright.spaces.cpu.chained.prelude import prelude
from tilewright.spaces.cpu.chained.rules import chained_rules
from tilewright.spaces.cpu.chained.served import why_not_chained
from tilewright.spaces.cpu.chained.traffic import chained_quantities
from tilewright.spaces.cpu.ragged.served import why_not_ragged
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.tiles.decisions import TILE_VECTORS, WHOLE_TILE_ROWS
from tilewright.spaces.cpu.vectors import wide
from tilewright.spaces.derivation.chained.open_axis import why_not_open
from tilewright.spaces.derivation.chained.scaling import with_scaled_scores
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.derivation.chained.visited_tiles import VisitedTiles
from tilewright.spaces.derivation.chains.chain_reduction import correcting_functions
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.ranges import ranges
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

MOST_ROWS = 384
"""The most rows of a block: enough to pay for keys, which come to the caches once a block."""
MOST_SPLITS = 4
"""The most parts of the keys for each thread."""
VALUE_VECTORS = (1, 2, 3, 4, 6, 8, 12, 16)


class ChainedTemplate(CorrectedTemplate, CpuTemplate):
    """One pass over the keys, tile by tile, for every block of rows, in float32."""

    name: ClassVar[str] = "chained"
    version: ClassVar[int] = 6
    refuses_products: ClassVar[str] = (
        "it is a product of matrices; needs a chain of reductions over its columns"
    )

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = chained_of(self.workload.program)
        assert isinstance(found, Chained)
        self.chained = with_scaled_scores(found)
        self.visited_tiles = VisitedTiles(self.chained)
        self.lanes = self.cpu.lanes(FLOAT)
        self.decisions = self._decisions()
        self.rules = chained_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no product with such a chain, or an access that has no
        code."""
        reason = why_not_chained(workload)
        if reason is None and _has_ranges(workload) and why_not_ragged(workload, cpu) is None:
            return "rows have ranges of entries, which other kernels walk alone"
        return reason

    def blocks(self, values: Columns) -> Blocks:
        """Return the sizes of a schedule, or of columns of many."""
        return Blocks.of(self.chained, self.lanes, values)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.chained.traffic``."""
        return chained_quantities(self, columns)

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why an axis cannot be open: only the outermost axis of a batch can, and the keys."""
        return why_not_open(self.chained, axis, self.chained.batch)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel for any number of points of the batch's outermost axis, or of keys, up
        to the workload's."""
        keys = axis == self.chained.key.axis
        each = None if keys else prod(part.extent for part in self.chained.batch[1:])
        code = self._code(schedule, f"{self.entry(schedule)}_open", each, keys)
        return c_kernel(self.workload, self._prelude(), code)

    def _code(
        self,
        schedule: Schedule,
        entry: str,
        products_each: int | None = None,
        keys_are_open: bool = False,
    ) -> Code:
        from tilewright.spaces.cpu.chained.code import ChainedCode

        values = schedule.values
        return ChainedCode(
            chained=self.chained,
            operands=self.workload.operands,
            blocks=self.blocks(values),  # type: ignore[arg-type]
            unroll=int(values["unroll"]),
            workers=int(values["workers"]),
            splits=int(values.get("splits", 1)),
            entry=entry,
            products_each=products_each,
            keys_are_open=keys_are_open,
        )

    def _prelude(self) -> str:
        program, expressions = self.chained.program, self.chained.expressions
        shared = prelude(self.functions, self.cpu)
        return shared + wide.numbers(self.lanes, magnitudes(program), expressions)

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the program calls, and those that corrections add."""
        added = correcting_functions(self.chained.reductions)
        found = super().functions | added
        return found | {"exp2"} if "exp" in found else found

    def _decisions(self) -> tuple[Decision, ...]:
        threads = self.cpu.threads
        splits = multiples(self.chained.key.extent, (1,), MOST_SPLITS * threads)
        return (
            Decision("rows", multiples(self.chained.row_count, (1, 2, 3), MOST_ROWS)),
            Decision("keys", multiples(self.chained.key.extent, (4, 6), 1024, self.lanes)),
            Decision("key_layout", tuple(self._forms_of_keys())),
            Decision("value_layout", tuple(self._forms_of_matrices())),
            Decision("score_rows", WHOLE_TILE_ROWS),
            Decision("score_vectors", TILE_VECTORS),
            Decision("value_rows", WHOLE_TILE_ROWS),
            Decision("value_vectors", VALUE_VECTORS),
            Decision("unroll", (1, 2, 4)),
            Decision("workers", self.cpu.even_workers),
            *([Decision("splits", splits)] if threads > 1 else []),
        )

    def _forms_of_keys(self) -> Iterator[str]:
        chained = self.chained
        read = chained.in_place(chained.right)
        yield PANELS
        if read and chained.step(read, chained.depth) == 1:
            yield DOTS
        if read and chained.depth.extent >= 2 * DEPTH_STEP:
            yield STEPS

    def _forms_of_matrices(self) -> Iterator[str]:
        chained = self.chained
        reads = [chained.in_place(weighing.matrix) for weighing in chained.weighings]
        if all(read and chained.step(read, chained.width) == 1 for read in reads):
            yield IN_PLACE
        if reads:
            yield COPIED


def _has_ranges(workload: Workload) -> bool:
    return bool(ranges(workload.program).reductions)
