"""The CPU template of sums over prefixes whose terms separate: a state is carried along positions.

Decisions:

- ``vectors``: vectors of a state at each point of its inner axes.
- ``positions``: positions that a state passes through each time it is loaded.
- ``workers``: threads that share rows and groups of lanes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.cpu.abi import Code
from tilewright.spaces.cpu.recurrent.rules import recurrent_rules
from tilewright.spaces.cpu.recurrent.served import cached_recurrence, why_no_recurrence
from tilewright.spaces.cpu.recurrent.traffic import recurrent_quantities
from tilewright.spaces.cpu.states.template import StateTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.derivation.recurrent.view import Recurrence
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class RecurrentTemplate(StateTemplate):
    """Linear attention, retention, state-space models and the like, in float32 or float64."""

    name: ClassVar[str] = "recurrent"
    version: ClassVar[int] = 3
    refuses_products: ClassVar[str] = "it is a product of matrices; no sum in it is over a prefix"

    view: Recurrence

    def __init__(self, workload: Workload, target: Target) -> None:
        view = cached_recurrence(workload.program)
        super().__init__(workload, target, view, Decision("positions", (1, 2, 4, 8)))
        self.rules = recurrent_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: nothing is summed over prefixes, or terms do not separate."""
        return why_no_recurrence(workload)

    @property
    def points(self) -> float:
        """The number of elements that pass through a state, over all positions."""
        view = self.view
        return float(view.extent(*view.rows, view.position, *view.inner, view.lane))

    def registers(self, columns: Columns) -> Any:
        """Compute the vector registers in use: sums and terms of all positions, a vector of the
        state, and factors."""
        return 2 * columns["vectors"] * columns["positions"] + 3

    def state_bytes(self, columns: Columns) -> Any:
        """Compute the bytes of a state."""
        return self.view.extent(*self.view.inner) * columns["vectors"] * self.cpu.vector_bytes

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.recurrent.traffic``."""
        return recurrent_quantities(self, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.recurrent.code import RecurrentCode

        values = schedule.values
        return RecurrentCode(
            view=self.view,
            operands=self.workload.operands,
            vectors=int(values["vectors"]),
            positions=int(values["positions"]),
            workers=int(values["workers"]),
            lanes=self.lanes,
            element=self.element.name,
            entry=entry,
        )
