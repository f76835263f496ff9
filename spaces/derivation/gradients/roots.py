"""Roots of sums as stages of their own, so that a gradient may read them.

``rsqrt(y_sum[r] / 128 + 1e-06)`` within a larger expression becomes the stage ``y_sum_rsqrt[r]``:
the one number a row that a norm's gradient needs, as ``rstd`` is where a program says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tilewright.spaces.derivation.gradients.partial import folded
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Call, Expression, Read

ROOTS = ("rsqrt", "sqrt")


def roots(program: Program) -> Mapping[str, Stage]:
    """Return the roots of what stages alone give, as maps by their names; those that are stages
    already are left out."""
    bodies = {stage.body for stage in program.stages if stage.reducer is None}
    taken = {*program.stage, *program.operand, *program.extent}
    found: dict[str, Stage] = {}
    for stage in program.stages:
        for node in stage.body.values():
            if isinstance(node, Call) and node.function in ROOTS and node not in bodies:
                own = _map(program, node)
                if own is not None and own.name not in taken:
                    found.setdefault(own.name, own)
    return found


def _map(program: Program, node: Call) -> Stage | None:
    """Return the map that is a call; None if it reads operands, or elements of other places."""
    reads = node.value_reads
    plain = (Read(s.name, tuple(map(AxisValue, s.axes))) for s in program.stages)
    if not {*reads} <= {*plain}:
        return None
    first = next((read for read in reads if read.indices), None)
    if first is None or node.axes != first.axes:
        return None
    return Stage(f"{first.name}_{node.function}", program.stage[first.name].axes, None, (), node)


def with_roots(program: Program, saved: Collection[str]) -> Program:
    """Return the program with stages for the roots that are to be saved."""
    wanted = [stage for name, stage in roots(program).items() if name in saved]
    for own in wanted:
        read: Expression = Read(own.name, tuple(map(AxisValue, own.axes)))
        stages: list[Stage] = []
        for stage in program.stages:
            body = folded(stage.body, {own.body: read})
            if body != stage.body and own not in stages:
                stages.append(own)
            stages.append(replace(stage, body=body))
        program = replace(program, stages=tuple(stages))
    return program
