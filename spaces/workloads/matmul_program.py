"""Write a product of matrices as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.spaces.epilogue.expression import SUM
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Read
from tilewright.spaces.workloads.array import Array

if TYPE_CHECKING:
    from tilewright.spaces.workloads.matmul import Matmul
    from tilewright.spaces.workloads.matmul import Operand as Factor


def matmul_program(matmul: Matmul) -> Program:
    """Return the program of a sum of products and its epilogue; a packed factor is a matrix."""
    products = Binary("*", *map(_read, matmul.factors))
    over = tuple(axis.name for axis in matmul.axes if axis.reduction)
    kept = matmul.output.axes
    name = matmul.output.name
    stages = [Stage(name, kept, "sum", over, products)]
    if matmul.epilogue is not None:
        taken = {operand.name for operand in matmul.operands}
        own = next(n for n in (f"{name}_sum", f"{name}_sums", f"{name}__sum") if n not in taken)
        summed = Read(own, tuple(map(AxisValue, kept)))
        value = _replaced(matmul.epilogue.value, summed)
        stages = [
            Stage(summed.name, kept, "sum", over, products),
            Stage(name, kept, None, (), value),
        ]
    return Program(
        extents=tuple(matmul.extents.items()),
        operands=tuple(
            Operand(*_described(operand), packed=operand.packed) for operand in matmul.indexed
        ),
        stages=tuple(stages),
        conditions=(),
        outputs=(Output(*_described(matmul.output)),),
        accumulator="float16" if matmul.accumulator == "float16" else "",
    )


def _read(operand: Factor) -> Read:
    """Return an element of a factor."""
    return Read(operand.name, tuple(map(AxisValue, operand.axes)))


def _described(
    array: Array,
) -> tuple[str, str, tuple[int, ...], tuple[int, ...], int | None]:
    return array.name, array.dtype, array.shape, array.order, array.leading


def _replaced(node: Expression, summed: Read) -> Expression:
    """Return an epilogue's expression that reads the ``summed`` stage for the sum."""
    if isinstance(node, Read):
        return summed if node.name == SUM else node
    return node.with_children(tuple(_replaced(child, summed) for child in node.children))
