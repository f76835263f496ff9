"""The CPU template of products of placed operands: convolutions, correlations and what is like
them.

An operand is placed if the element that it gives for a row (or a column) and a term lies at a sum
of multiples of axes, such as a pixel at its window's place plus its place within the window.

Decisions: the register tile, the workers for rows, columns and batch, the order of tiles within a
block, ``pack_right`` (the operand along columns is packed into panels, or read in place), upper
bounds of the blocks, and ``unroll``. An operand with borders is copied once with them; with
``padding`` set to ``patched``, the left operand is read in place, and only tiles that cross a
border read copies. The code is written by ``spaces.cpu.windows.code``.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import doubled
from tilewright.spaces.cpu.abi import FLOAT, Code
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.tiles.decisions import TILE_ROWS, TILE_VECTORS, unrolls
from tilewright.spaces.cpu.windows.copies.patches import in_place
from tilewright.spaces.cpu.windows.rules import window_rules
from tilewright.spaces.cpu.windows.served import cached_windows, prelude, why_no_windows
from tilewright.spaces.cpu.windows.traffic import window_quantities
from tilewright.spaces.derivation.products.view import written_product_of
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

LEAST_DEPTH = 128
"""The least bound of a block of the depth, in terms: smaller blocks load and store sums too often.
"""


class WindowsTemplate(CpuTemplate):
    """``output[m, n] = value(sum_k left[m, k] * right[k, n])`` of operands read at places."""

    name: ClassVar[str] = "windows"
    version: ClassVar[int] = 5
    writes_apart: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = written_product_of(workload)
        assert not isinstance(product, str)
        self.view = cached_windows(product)
        self.in_place = in_place(self.view)
        self.lanes = self.cpu.lanes(FLOAT)
        self.decisions = self._decisions()
        self.rules = window_rules(self.view, self.in_place, self.cpu, self.decisions)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why a workload has no kernel: it is no sum of products of two operands, its places
        are no sums of multiples of axes, or a type or a function has no code. Return None if it has
        one."""
        return why_no_windows(workload, cpu)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.windows.traffic``."""
        return window_quantities(self.view, self.in_place, self.cpu, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.windows.code import WindowsCode
        from tilewright.spaces.cpu.windows.segments import SegmentedCode

        kind = SegmentedCode if self.view.product.segments else WindowsCode
        patched = schedule.values.get("padding") == "patched"
        return kind(
            view=self.in_place if patched and self.in_place else self.view,
            arrays=self.workload.operands,
            values=schedule.values,
            lanes=self.lanes,
            registers=self.cpu.vector_registers,
            entry=entry,
        )

    def _prelude(self) -> str:
        return prelude(self.workload, self.cpu)

    def _decisions(self) -> tuple[Decision, ...]:
        cpu, nest = self.cpu, self.view.nest(True)
        products = self.view.nest(not self.view.has_vectors).product_count
        workers, segments = cpu.even_workers, self.view.product.segments
        return (
            *([Decision("padding", ("copied", "patched"))] if self.in_place else []),
            Decision("pack_right", (False, True)),
            Decision("tile_rows", TILE_ROWS),
            Decision("tile_vectors", TILE_VECTORS),
            Decision("row_workers", workers),
            Decision("column_workers", workers),
            Decision("batch_workers", workers if products > 1 and not segments else (1,)),
            Decision("order", ("columns_outer", "rows_outer")),
            Decision("block_depth", doubled(LEAST_DEPTH, nest.terms)),
            Decision("block_columns", doubled(self.lanes, nest.column.extent)),
            Decision("unroll", unrolls(cpu)),
        )
