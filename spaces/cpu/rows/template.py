"""The CPU template for reductions along rows: softmax, normalisations, losses and what is like
them.

Decisions:

- ``lanes``: columns of one row, or the same column of several rows.
- ``passes``: one with corrections, or one for each reduction that needs results of another.
- ``unroll``: vectors in flight.
- ``intermediates``: a special function of an element is computed ``again`` for the outputs, or kept
  in a ``scratch`` row or in the ``output``.
- ``stores``: through the caches or past them.
- ``prefetch``: the next row is prefetched, in the walk along this row that computes most.
- ``workers``: threads that share the rows.
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import Code, c_kernel
from tilewright.spaces.cpu.rows.held import (
    Held,
    output_to_hold_in,
    outputs_by_element,
    worth_holding,
)
from tilewright.spaces.cpu.rows.prelude import prelude
from tilewright.spaces.cpu.rows.rules import row_rules
from tilewright.spaces.cpu.rows.served import row_expressions, why_no_rows
from tilewright.spaces.cpu.rows.traffic import row_quantities
from tilewright.spaces.cpu.rows.work import busiest
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.vectors import wide
from tilewright.spaces.derivation.chains.chain_reduction import correcting_functions
from tilewright.spaces.derivation.rows.column_sums import summed_rows_of
from tilewright.spaces.derivation.rows.passes import Pass, expressions
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Call
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.open_axis import why_not_outermost
from tilewright.spaces.workloads.workload import Workload

ONLINE, PLAIN = "online", "plain"
AGAIN, SCRATCH, OUTPUT = "again", "scratch", "output"
COLUMNS, ROWS = "columns", "rows"
CACHED, STREAMING = "cached", "streaming"


class RowsTemplate(CpuTemplate):
    """Rows with at least one reduction, in float32 or float64."""

    name: ClassVar[str] = "rows"
    version: ClassVar[int] = 5
    refuses_products: ClassVar[str] = "it is a product of matrices, which tiles serve better"
    recomputes: ClassVar[bool] = True

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.rows = summed_rows_of(self.workload.program)
        self.element = dtype(self.workload.accumulator)
        self.lanes = self.cpu.lanes(self.element.bytes)
        self.held = worth_holding(self.rows)
        self.decisions = self._decisions()
        self.rules = row_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no rows, nothing to reduce, or elements that are no
        floats."""
        return why_no_rows(workload)

    @property
    def lane_axes(self) -> tuple[str, ...]:
        """The values of ``lanes``: several rows are allowed if there are any, none of them is
        chosen by a table, and none is added to others."""
        rows = self.rows
        across = rows.rows[-1].extent > 1 and not rows.gathers and not rows.sums
        return (COLUMNS, ROWS) if across else (COLUMNS,)

    def passes(self, form: str) -> tuple[Pass, ...]:
        """Return the passes of a value of the decision ``passes``."""
        return self.rows.online if form == ONLINE else self.rows.plain

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.rows.traffic``."""
        return row_quantities(self, columns)

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why an axis cannot be open: only the outermost axis of rows can, if lanes are no
        rows."""
        first, *_ = self.rows.rows
        if axis not in first.names[:1] or self.rows.sums:
            return f"{axis} is not the outermost axis of rows that nothing is summed over"
        if schedule.values["lanes"] == ROWS:
            return "lanes are rows"
        return why_not_outermost(self.rows.program, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of rows, up to the program's."""
        (_, *inner), extent = self.rows.rows[0].names, self.rows.program.extent
        each = prod(extent[name] for name in inner) * prod(s.extent for s in self.rows.rows[1:])
        code = self._code(schedule, f"{self.entry(schedule)}_open", each)
        return c_kernel(self.workload, self._prelude(), code)

    def _code(self, schedule: Schedule, entry: str, rows_each: int | None = None) -> Code:
        from tilewright.spaces.cpu.rows.code import RowsCode

        values = schedule.values
        passes, held = self.passes(str(values["passes"])), self._held(str(values["intermediates"]))
        return RowsCode(
            rows=self.rows,
            operands=self.workload.operands,
            passes=passes,
            held=held,
            unroll=int(values["unroll"]),
            streaming=values["stores"] == STREAMING,
            fetching=busiest(self.rows, passes, held) if values["prefetch"] else None,
            workers=int(values["workers"]),
            lanes=self.lanes,
            element=self.element.name,
            lanes_are_rows=values["lanes"] == ROWS,
            entry=entry,
            rows_each=rows_each,
        )

    def _prelude(self) -> str:
        shared = prelude(self.functions, self.cpu, self.element.name)
        shared += wide.numbers(
            self.lanes, magnitudes(self.rows.program), row_expressions(self.rows)
        )
        return shared

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the program calls, and those that passes and corrections add."""
        corrections = correcting_functions(r for p in self.rows.online for r in p)
        passes = (*self.rows.online, *self.rows.plain)
        nodes = (node for p in passes for e in expressions(p) for node in e.walk())
        return super().functions | corrections | {n.function for n in nodes if isinstance(n, Call)}

    def _held(self, where: str) -> Held | None:
        if self.held is None or where == AGAIN:
            return None
        output = output_to_hold_in(self.rows, self.element.name) if where == OUTPUT else None
        return Held(self.held, output.place if output else None)

    def _decisions(self) -> tuple[Decision, ...]:
        rows = self.rows
        fused = len(rows.online) < len(rows.plain) and len(rows.columns) == 1
        held = [AGAIN] if self.held is None else [AGAIN, SCRATCH]
        held += [OUTPUT] * (
            self.held is not None and output_to_hold_in(rows, self.element.name) is not None
        )
        streams = outputs_by_element(rows) and self.element.name == "float32"
        return (
            Decision("lanes", self.lane_axes),
            Decision("passes", (ONLINE, PLAIN) if fused else (PLAIN,)),
            Decision("unroll", (1, 2, 4, 8, 16)),
            Decision("intermediates", tuple(held)),
            Decision("stores", (CACHED, STREAMING) if streams else (CACHED,)),
            Decision("prefetch", (False, True) if rows.row_count > 1 else (False,)),
            Decision("workers", self.cpu.even_workers),
        )
