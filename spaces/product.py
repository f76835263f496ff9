"""A contraction of two matrices, seen so that vectors run along the output's unit stride.

A column-major output is the row-major output of the transposed product, so templates know one
orientation only: ``output[row, column] = sum_depth left[row, depth] * right[depth, column]``.
"""

from __future__ import annotations

from dataclasses import dataclass

from spaces.algebra.layout import Strided, strided
from spaces.computation import Computation
from spaces.contraction import Contraction, Operand
from spaces.workload import Workload


@dataclass(frozen=True)
class Product:
    """Axis names and operands of the oriented product; extents are those of the axes."""

    workload: Contraction
    row: str
    column: str
    depth: str
    left: Operand
    right: Operand

    @property
    def output(self) -> Operand:
        """The array that is written."""
        return self.workload.output

    @property
    def rows(self) -> int:
        """Extent of the axis that registers hold one vector after the other of."""
        return self.workload.extents[self.row]

    @property
    def columns(self) -> int:
        """Extent of the axis that lanes run along."""
        return self.workload.extents[self.column]

    @property
    def terms(self) -> int:
        """Extent of the axis that is summed over."""
        return self.workload.extents[self.depth]

    @property
    def left_runs_deep(self) -> bool:
        """Whether the left operand is contiguous along the depth (else along rows)."""
        return self.left.stride(self.depth) == 1

    @property
    def right_runs_deep(self) -> bool:
        """Whether the right operand is contiguous along the depth (else along columns)."""
        return self.right.stride(self.column) != 1

    def layout(self, operand: Operand) -> Strided:
        """Where ``operand`` keeps the element of (row, column), or of (row, depth) or (depth,
        column) for the left and right operand. Axes that do not index it have stride 0."""
        first = self.depth if operand is self.right else self.row
        second = self.depth if operand is self.left else self.column
        extents = self.workload.extents
        strides = (operand.stride(first), operand.stride(second))
        return strided((extents[first], extents[second]), strides)


def why_no_product(workload: Contraction) -> str | None:
    """Why ``workload`` is not a product of two matrices, in words; None if it is one."""
    reductions = [axis.name for axis in workload.axes if axis.reduction]
    if len(workload.factors) != 2 or len(workload.axes) != 3 or len(reductions) != 1:
        return "needs two inputs and three axes, one of them summed over"
    depth = reductions[0]
    wanted = {frozenset((axis, depth)) for axis in workload.output.axes}
    if {frozenset(operand.axes) for operand in workload.factors} != wanted:
        return "needs one input along each axis of the output, both along the summed one"
    return None


def product_of(workload: Workload) -> Product | str:
    """The oriented product that ``workload`` is, or why it is none, in words."""
    if not isinstance(workload, Contraction):
        return workload.obstacle if isinstance(workload, Computation) else "needs a product"
    return why_no_product(workload) or orient(workload)


def orient(workload: Contraction) -> Product:
    """The product with columns along the output's fastest axis."""
    slow, fast = workload.output.order
    row, column = workload.output.axes[slow], workload.output.axes[fast]
    (depth,) = (axis.name for axis in workload.axes if axis.reduction)
    left, right = workload.factors
    if row not in left.axes:
        left, right = right, left
    return Product(workload, row, column, depth, left, right)
