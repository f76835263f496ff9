"""Shared parts of the loop templates of all targets."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any, ClassVar

from tilewright.spaces.derivation.work import work
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import points_of
from tilewright.spaces.loops.plan import Plan
from tilewright.spaces.loops.ranges import range_of_terms
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload

CALL_INSTRUCTIONS = 20.0
"""Instructions of a function such as ``exp``, more or less."""
TERM = 12.0
"""Instructions to find the place of a term, and to add it up."""


class Loops(Template):
    """A loop nest for each stage, one number at a time: any program, slowly."""

    name: ClassVar[str] = "loops"
    last_resort: ClassVar[bool] = True
    note: ClassVar[str] = (
        "no fast template serves this program: it has a plain kernel of loops, right and slow"
    )

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.plan = plan_of(workload.program)
        self.most = max(self.plan.points(nest.stage.axes) for nest in self.plan.nests)

    def counted(self) -> dict[str, Any]:
        """Return the quantities that are the same for all schedules of a workload, on any
        target."""
        found, program = work(self.plan.program), self.plan.program
        points = sum(float(self._points(nest.stage)) for nest in self.plan.nests)
        useful = float(max(1, found.flops + found.arithmetic + found.special))
        passed = 2.0 * self.plan.workspace_bytes
        least = float(self.workload.least_bytes)
        outputs = float(sum(output.size for output in program.outputs))
        return {
            "flops": useful,
            "useful_flops": useful,
            "register_bytes": 8.0 * points,
            "near_bytes": least + passed,
            "middle_bytes": least + passed,
            "main_bytes": least + passed,
            "packing_bytes": passed,
            "epilogue_elements": outputs,
            "intensity": useful / points,
            "tile_visits": float(self.most),
            "instructions": TERM * points + useful + CALL_INSTRUCTIONS * found.special,
        }

    def _points(self, stage: Stage) -> int:
        """Return the terms of all elements of a stage, of a range those alone that are in it."""
        program = self.plan.program
        if range_of_terms(program, stage) is not None:
            return points_of(program, stage)
        return prod(program.shape((*stage.axes, *stage.over)))

    @property
    def longest(self) -> int:
        """Terms of the longest reduction; 1 where there is none."""
        return max(self.plan.points(nest.stage.over) for nest in self.plan.nests)


@lru_cache(maxsize=64)
def plan_of(program: Program) -> Plan:
    """Return the plan of a program, made once."""
    return Plan(program)
