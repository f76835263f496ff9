"""The CPU template of stages that read themselves one step before or after: steps one by one.

Decisions:

- ``vectors``: vectors of lanes that go through a step together: all, where lanes are reduced.
- ``unroll``: points of inner axes that the innermost loops take at once.
- ``workers``: threads that share rows and groups of lanes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import Code
from tilewright.spaces.cpu.states.template import StateTemplate
from tilewright.spaces.cpu.stepped.rules import stepped_rules
from tilewright.spaces.cpu.stepped.served import cached_view, lanes_of, why_not_stepped
from tilewright.spaces.cpu.stepped.traffic import stepped_quantities
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.derivation.stepped.view import SteppedView
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class SteppedTemplate(StateTemplate):
    """Recurrent networks, selective scans and delta rules, in float32 or float64."""

    name: ClassVar[str] = "stepped"
    version: ClassVar[int] = 3
    walks_steps: ClassVar[bool] = True
    refuses_products: ClassVar[str] = "it is a product of matrices; no stage in it reads itself"

    view: SteppedView

    def __init__(self, workload: Workload, target: Target) -> None:
        assert isinstance(target, CpuTarget)
        lanes = lanes_of(workload, target)
        view = cached_view(workload.program, lanes)
        super().__init__(workload, target, view, Decision("unroll", (1, 2, 4)))
        if view.across:
            every = Decision("vectors", (ceil_div(view.extent(view.lane), lanes),))
            self.decisions = (every, *self.decisions[1:])
        self.rules = stepped_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no stage reads itself, or one is read elsewhere."""
        return why_not_stepped(workload, cpu)

    @property
    def points(self) -> float:
        """The number of elements that are computed, terms of reductions included."""
        view = self.view
        every = (view.extent(*stage.axes, *stage.over) for stage in view.stages)
        return float(sum(every))

    @property
    def innermost(self) -> int:
        """The points of the longest loop over an inner axis."""
        return max((self.view.extent(axis) for axis in self.view.inner), default=1)

    def state_bytes(self, columns: Columns) -> Any:
        """Compute the bytes of a state."""
        view = self.view
        stages = [s for s in view.stages if view.inner_of(s.axes) or s.name in view.first]
        points = sum(view.extent(*view.inner_of(stage.axes)) for stage in stages)
        points += sum(view.extent(*(set(view.inner) & read.axes)) for read in view.held)
        return points * columns["vectors"] * self.cpu.vector_bytes

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.stepped.traffic``."""
        return stepped_quantities(self, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.stepped.code import SteppedCode

        values = schedule.values
        return SteppedCode(
            view=self.view,
            operands=self.workload.operands,
            vectors=int(values["vectors"]),
            unroll=int(values["unroll"]),
            workers=int(values["workers"]),
            lanes=self.lanes,
            element=self.element.name,
            entry=entry,
        )
