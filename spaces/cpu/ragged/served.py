"""Programs that have kernels over ranges on a CPU, and reasons why others have none."""

from __future__ import annotations

from tilewright.spaces.cpu.ragged.prelude import STARTS, prelude
from tilewright.spaces.cpu.rows.served import ELEMENTS
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors import doubles
from tilewright.spaces.cpu.vectors.moves import TABLE_TYPES
from tilewright.spaces.derivation.ragged.view import RaggedView, RowOutput, cached_ragged
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.tree import AxisValue, Binary, Expression
from tilewright.spaces.workloads.workload import Workload


def why_not_ragged(workload: Workload, target: CpuTarget) -> str | None:
    """Say why a workload has no kernel over ranges; return None if it has one."""
    try:
        view = cached_ragged(workload.program)
        prelude(frozenset(workload.functions), target, workload.accumulator)
    except InputError as reason:
        return str(reason)
    missing = doubles.why_no_function(workload.accumulator, workload.functions)
    floats = ELEMENTS[workload.accumulator]
    return missing or _why_no_array(view, floats) or _why_no_lane(view)


def _why_no_array(view: RaggedView, floats: tuple[str, ...]) -> str | None:
    """Say why an array's type, or a value made of axes, is not served; None if all are."""
    program = view.program
    for name, allowed in (
        *((table, tuple(TABLE_TYPES)) for table in _tables(view)),
        *(((view.range.table, STARTS),) if view.range.pointers and view.has_rows else ()),
        *((read.name, floats) for read in view.places if read.name in program.operand),
        *((output.output.name, _written(view, output, floats)) for output in view.outputs),
    ):
        array = program.operand.get(name) or next(o for o in program.outputs if o.name == name)
        if array.dtype not in allowed:
            return f"{name} is {array.dtype}; allowed: {', '.join(allowed)}"
    for expression in (*(s.body for s in view.steps), *(o.value for o in view.outputs)):
        if found := _whole(expression):
            return f"{found} is a number made of axes; values of axes do not count"
    return None


def _written(view: RaggedView, output: RowOutput, floats: tuple[str, ...]) -> tuple[str, ...]:
    return STARTS if view.step[output.after].finds_places else floats


def _tables(view: RaggedView) -> list[str]:
    return [entry.table for place in view.places.values() for entry in place.entries]


def _whole(expression: Expression) -> Expression | None:
    """Return a part of an expression that is a whole number; None if there is none."""
    for node in expression.values():
        whole = isinstance(node, Binary) and node.operator in ("//", "%")
        if whole or isinstance(node, AxisValue):
            return node
    return None


def _why_no_lane(view: RaggedView) -> str | None:
    """Say why a read cannot be a vector: its elements along the lanes have no one step; None if all
    can."""
    entry = view.range.entry
    for step in view.steps:
        for read in step.body.value_reads:
            if step.lane != entry and view.places[read].step(step.lane) is None:
                return f"{read} is not equally far apart along {step.lane}"
    for output in view.outputs:
        for read in output.value.value_reads:
            if output.lane and not output.along and view.places[read].step(output.lane) is None:
                return f"{read} is not equally far apart along {output.lane}"
    return None
