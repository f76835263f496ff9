"""The CPU template for maps: programs that compute each element by itself.

A map moves each element once, so only memory counts once arrays outgrow the caches: tiles use whole
lines of what they read and write, stores need not fetch what they overwrite, and the next tile is
prefetched, or read, meanwhile. Decisions are the extents of a tile, the order of tiles, streaming
stores, prefetches, how blocks are transposed, ``unroll`` and the workers. See
``spaces.cpu.maps.code`` for the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import Code, c_kernel
from tilewright.spaces.cpu.maps.prelude import prelude
from tilewright.spaces.cpu.maps.registers import goes_straight, registers_of
from tilewright.spaces.cpu.maps.rules import SKEW, map_rules
from tilewright.spaces.cpu.maps.served import why_no_map
from tilewright.spaces.cpu.maps.straight import STRIPS
from tilewright.spaces.cpu.maps.tiling import ASK, NOTHING, TURN, Tiling
from tilewright.spaces.cpu.maps.traffic import map_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.derivation.maps.order import COLUMNS, ROWS
from tilewright.spaces.derivation.maps.outermost import turns_each, why_no_open_loop
from tilewright.spaces.derivation.maps.served import cached_plane
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class MapTemplate(CpuTemplate):
    """Programs without reductions: copies, transpositions, gathers."""

    name: ClassVar[str] = "map"
    version: ClassVar[int] = 8
    refuses_products: ClassVar[str] = "it is a product of matrices; a map reduces nothing"

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.plane = cached_plane(self.workload.program)
        self.registers = registers_of(self.plane, self.cpu)
        self.goes_straight = goes_straight(self.plane, self.registers)
        self.decisions = (
            Decision("tile_rows", tuple(2**i for i in range(9))),
            Decision("tile_columns", tuple(2**i for i in range(2, 17))),
            Decision("order", (ROWS, COLUMNS)),
            Decision("streaming_stores", (False, True)),
            Decision("prefetch", (NOTHING, ASK, TURN)),
            *(_straight_decisions() if self.goes_straight else ()),
            Decision("unroll", (1, 2, 4)),
            Decision("workers", tuple(range(1, self.cpu.threads + 1))),
        )
        self.rules = map_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: a reduction, outputs of different axes, a type or a function
        without code."""
        return why_no_map(workload, cpu)

    def tiling(self, values: Mapping[str, Any]) -> Tiling:
        """Return the tiles that decisions lead to, for one schedule or for columns of many."""
        return Tiling(self.plane, self.registers, values)

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.maps.traffic``."""
        return map_quantities(self, columns)

    def _prelude(self) -> str:
        return prelude(self.workload, self.cpu)

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why an axis cannot be open: only the outermost axis of all arrays can."""
        return why_no_open_loop(self.plane, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of points of the outermost axis, up to its extent."""
        entry = f"{self.entry(schedule)}_open"
        code = self._code(schedule, entry, turns_each(self.plane, axis))
        return c_kernel(self.workload, self._prelude(), code)

    def _code(self, schedule: Schedule, entry: str, turns_each: int | None = None) -> Code:
        from tilewright.spaces.cpu.maps.code import MapCode

        tiling, operands = self.tiling(schedule.values), self.workload.operands
        return MapCode(tiling, operands, schedule.values, entry, turns_each)


def _straight_decisions() -> tuple[Decision, ...]:
    return (
        Decision("register_transpose", (False, True)),
        Decision("strips", STRIPS),
        Decision("skew", (0, SKEW)),
    )
