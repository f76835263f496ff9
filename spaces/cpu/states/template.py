"""The base of CPU templates whose kernels keep a state while they walk along an axis."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tilewright.spaces.cpu.rows.prelude import prelude
from tilewright.spaces.cpu.states.view import StateView
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.vectors import wide
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload


class StateTemplate(CpuTemplate):
    """Kernels whose ``vectors`` of lanes walk together, and whose ``workers`` share rows and groups
    of lanes; computed in float32 or float64."""

    def __init__(
        self, workload: Workload, target: Target, view: StateView, decision: Decision
    ) -> None:
        super().__init__(workload, target)
        self.view = view
        self.element = dtype(workload.accumulator)
        self.lanes = self.cpu.lanes(self.element.bytes)
        self.decisions = (
            Decision("vectors", (1, 2, 4, 8)),
            decision,
            Decision("workers", self.cpu.even_workers),
        )

    @property
    @abstractmethod
    def points(self) -> float:
        """The number of elements that are computed on all of the walk."""

    @abstractmethod
    def state_bytes(self, columns: Columns) -> Any:
        """Compute the bytes of a state."""

    def _prelude(self) -> str:
        shared = prelude(self.functions, self.cpu, self.element.name)
        known = magnitudes(self.view.program)
        return shared + wide.numbers(self.lanes, known, self.view.expressions)
