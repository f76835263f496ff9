"""The template of maps on a GPU: its decisions, rules and quantities.

``spaces.cuda.maps.code`` prints the kernel.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tilewright.spaces.cuda import scalar_math, wide
from tilewright.spaces.cuda.maps.code import MapCode
from tilewright.spaces.cuda.maps.context import MapContext
from tilewright.spaces.cuda.maps.rules import map_rules
from tilewright.spaces.cuda.maps.served import why_no_map
from tilewright.spaces.cuda.maps.sizes import LINE, TILE, has_lines, loops_inside
from tilewright.spaces.cuda.maps.traffic import map_quantities
from tilewright.spaces.cuda.rows.reducers import helpers
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.maps.order import COLUMNS, ROWS
from tilewright.spaces.derivation.maps.outermost import turns_each, why_no_open_loop
from tilewright.spaces.derivation.maps.served import cached_plane
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class CudaMap(CudaTemplate):
    """The template of programs without reductions: copies, transposes, gathers."""

    name: ClassVar[str] = "map"
    version: ClassVar[int] = 2
    refuses_products: ClassVar[str] = "it is a product of matrices; a map reduces nothing"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.plane = cached_plane(self.workload.program)
        self.decisions = (
            Decision("vector", (1, 2, 4, 8, 16)),
            Decision("tile_rows", tuple(2**i for i in range(9))),
            Decision("tile_columns", tuple(2**i for i in range(15))),
            Decision("threads", (64, 128, 256, 512, 1024)),
            Decision("order", (ROWS, COLUMNS)),
            Decision("stores", ("cached", "stream")),
            *((Decision("lanes", (TILE, LINE)),) if has_lines(self.plane) else ()),
        )
        self.rules = map_rules(self.plane, self.cuda)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Return why a workload has no such kernel, in words; None if it has one.

        Reasons are a reduction, outputs of different axes, a type or a function without code.
        """
        return why_no_map(workload, cuda)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return the quantities of a population; see ``spaces.cuda.maps.traffic``."""
        return map_quantities(self.workload, self.plane, self.cuda, columns)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        return self._kernel(schedule, self.entry(schedule))

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Return why an axis cannot be open: only the outermost axis of all arrays can."""
        reason = why_no_open_loop(self.plane, axis)
        if reason is None and self.plane.view.loops[0] in loops_inside(self.plane):
            return f"a block does all turns of {axis} by itself"
        return reason

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of points of the outermost axis, up to its extent."""
        return self._kernel(schedule, f"{self.entry(schedule)}_open", turns_each(self.plane, axis))

    def _kernel(self, schedule: Schedule, entry: str, turns: int | None = None) -> Kernel:
        context = MapContext(self.plane, self.arguments, schedule.values, turns)
        view = self.plane.view
        return MapCode(context, entry).kernel(
            scalar_math.prelude({*scalar_math.ALWAYS, *self.workload.functions})
            + helpers("float")
            + wide.helpers(magnitudes(view.program), view.values)
        )
