"""The CPU template for sums over short windows by Winograd's algorithm: convolutions of 2x2 to 5x5
with stride 1.

Source: Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.

Decisions: ``output_tile``, the side ``o`` of the squares of outputs that are computed together,
with (o + taps - 1)**2 products instead of o**2 * taps**2; the register tile, the workers of each
kind, bounds of blocks, and ``unroll``. Filters are transformed in each call. See
``spaces.cpu.winograd.code``.

Errors are relative to the magnitudes of all that a square reads, not of each window alone: an
element that is not finite, or far greater than others, affects the other outputs of its square. So
the template needs ``numerics="fast"``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import doubled
from tilewright.spaces.cpu.abi import FLOAT, Code
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.tiles.decisions import TILE_ROWS, TILE_VECTORS, unrolls
from tilewright.spaces.cpu.windows.served import prelude
from tilewright.spaces.cpu.winograd.rules import winograd_rules
from tilewright.spaces.cpu.winograd.served import why_no_winograd
from tilewright.spaces.cpu.winograd.traffic import winograd_quantities
from tilewright.spaces.cpu.winograd.view import LEAST_OUTPUTS, square_windows_of
from tilewright.spaces.derivation.products.short_windows import MOST_READS
from tilewright.spaces.derivation.products.view import placed_product_of
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

MOST_OUTPUTS = 4
LEAST_SQUARES = 8


class WinogradTemplate(CpuTemplate):
    """``output[p, q, n] = value(sum_{r,s,c} left[p + r, q + s, c] * right[r, s, c, n])``."""

    name: ClassVar[str] = "winograd"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = placed_product_of(workload)
        assert not isinstance(product, str)
        view = square_windows_of(product)
        assert not isinstance(view, str)
        self.view = view
        self.lanes = self.cpu.lanes(FLOAT)
        self.decisions = self._decisions()
        self.rules = winograd_rules(view, self.cpu, self.decisions)

    @classmethod
    def numerics_of(cls, workload: Workload) -> Numerics:
        """Return ``FAST``, for the reason that the module gives."""
        return Numerics.FAST

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no windows of a few neighbours along two axes, no adjacent
        channels, or errors that are not allowed."""
        return why_no_winograd(workload, cpu)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.winograd.traffic``."""
        return winograd_quantities(self.view, self.cpu, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.winograd.code import WinogradCode

        return WinogradCode(
            view=self.view,
            arrays=self.workload.operands,
            values=schedule.values,
            lanes=self.lanes,
            entry=entry,
        )

    def _prelude(self) -> str:
        return prelude(self.workload, self.cpu)

    def _decisions(self) -> tuple[Decision, ...]:
        cpu, view = self.cpu, self.view
        most = min(MOST_OUTPUTS, MOST_READS - view.taps + 1)
        return (
            Decision("output_tile", tuple(range(LEAST_OUTPUTS, most + 1))),
            Decision("tile_rows", TILE_ROWS),
            Decision("tile_vectors", TILE_VECTORS),
            Decision("row_workers", cpu.even_workers),
            Decision("column_workers", cpu.even_workers),
            Decision("block_tiles", doubled(LEAST_SQUARES, view.square_count(LEAST_OUTPUTS))),
            Decision("block_columns", doubled(self.lanes, view.column.extent)),
            Decision("unroll", unrolls(cpu)),
        )
