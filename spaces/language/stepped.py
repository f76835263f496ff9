"""Evaluate the stages of a cycle exactly, step by step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.spaces.language.cycles import Cycle
from tilewright.spaces.language.evaluation import piece_of
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.reading.inference import whole_stages


def step_by_step(program: Program, cycle: Cycle, values: dict[str, np.ndarray]) -> None:
    """Add the stages of a cycle to the ``values`` that are known."""
    stages = [program.stage[name] for name in cycle.stages]
    for stage in stages:
        values[stage.name] = np.zeros(program.shape(stage.axes), kind_of(program, stage.name))
    for step in cycle.steps(program.extent[cycle.axis]):
        part = slice(step, step + 1)
        for stage in stages:
            found = piece_of(program, stage, values, {cycle.axis: part})
            values[stage.name][along(stage.axes, cycle.axis, part)] = found


def kind_of(program: Program, name: str) -> type[np.generic]:
    """Return the type in which a stage is evaluated."""
    whole = {operand.name for operand in program.operands if operand.element.is_integer}
    return np.int64 if name in whole_stages(program.stages, whole) else np.float64


def along(axes: Sequence[str], axis: str, part: slice) -> tuple[slice, ...]:
    """Return the places of an array with some ``axes`` that are in a part of one of them."""
    return tuple(part if other == axis else slice(None) for other in axes)
