"""The program that a workload computes, whatever kind it is."""

from __future__ import annotations

from tilewright.spaces.epilogue.expression import SUM
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Number, Read
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.contraction import Contraction
from tilewright.spaces.workloads.contraction import Operand as Factor
from tilewright.spaces.workloads.packing import PANEL, TERMS
from tilewright.spaces.workloads.workload import Workload


def program_of(workload: Workload) -> Program:
    """Return the workload's program; its arrays are those of the workload."""
    if isinstance(workload, Computation):
        return workload.program
    assert isinstance(workload, Contraction)
    return _of_contraction(workload)


def _of_contraction(workload: Contraction) -> Program:
    factors = [_read(operand) for operand in workload.factors]
    over = tuple(axis.name for axis in workload.axes if axis.reduction)
    kept = workload.output.axes
    products: Expression = factors[0]
    for factor in factors[1:]:
        products = Binary("*", products, factor)
    name = workload.output.name
    stages = [Stage(name, kept, "sum", over, products)]
    if workload.epilogue is not None:
        taken = {operand.name for operand in workload.operands}
        own = next(n for n in (f"{name}_sum", f"{name}_sums", f"{name}__sum") if n not in taken)
        summed = Read(own, tuple(map(AxisValue, kept)))
        value = _replaced(workload.epilogue.value, summed)
        stages = [
            Stage(summed.name, kept, "sum", over, products),
            Stage(name, kept, None, (), value),
        ]
    return Program(
        extents=tuple(workload.extents.items()),
        operands=tuple(Operand(*_described(operand)) for operand in workload.inputs),
        stages=tuple(stages),
        conditions=(),
        outputs=(Output(*_described(workload.output)),),
        accumulator="float16" if workload.accumulator == "float16" else "",
    )


def _read(operand: Factor) -> Read:
    """Return an element of a factor; of a packed one, where its stored array has it."""
    axes: list[Expression] = [AxisValue(axis) for axis in operand.axes]
    if operand.packed:
        column, term = axes
        panel, terms = Number(PANEL), TERMS[operand.dtype]
        axes = [Binary("//", column, panel), term, Binary("%", column, panel)]
        if terms > 1:
            axes[1] = Binary("//", term, Number(terms))
            axes.append(Binary("%", term, Number(terms)))
    return Read(operand.name, tuple(axes))


def _described(
    array: Array,
) -> tuple[str, str, tuple[int, ...], tuple[int, ...], int | None]:
    return array.name, array.dtype, array.shape, array.order, array.leading


def _replaced(node: Expression, summed: Read) -> Expression:
    """Return an epilogue's expression that reads the ``summed`` stage for the sum."""
    if isinstance(node, Read):
        return summed if node.name == SUM else node
    return node.with_children(tuple(_replaced(child, summed) for child in node.children))
