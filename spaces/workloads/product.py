"""A product of two matrices, seen so that vectors run along the output's unit stride.

A column-major output is the row-major output of the transposed product, so templates know one
orientation only: ``output[row, column] = sum_depth left[row, depth] * right[depth, column]``. Of a
batch of products, which all other axes of the output number, this is what each of them is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import TYPE_CHECKING, ClassVar, TypeVar

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Strided, strided
from tilewright.spaces.epilogue.expression import SUM
from tilewright.spaces.language.meaning import Meaning
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.matmul import Matmul, Operand
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.spaces.epilogue.expression import Epilogue
    from tilewright.spaces.language.program import Program

T = TypeVar("T")


@dataclass(frozen=True)
class Beside:
    """An operand of the epilogue, as it lies beside the output of ``product``."""

    product: Product
    array: Operand
    whole: ClassVar[bool] = False
    """True if :meth:`at` counts from the array's start, not from that of one product's part."""

    @property
    def name(self) -> str:
        """The name that tells it from the others."""
        return self.array.name

    def step(self, width: int) -> int | None:
        """Return the elements from one to the next of ``width`` columns that begin at a multiple of
        it; those of step 1 also begin at such a multiple in memory. None if there is no such
        step."""
        return self.array.stride(self.product.column)

    def at(self, row: Index, column: Index) -> Index:
        """Return the elements from the start to what is beside a sum."""
        return self.product.layout(self.array).index([row, column])


@dataclass(frozen=True)
class Written:
    """An output of ``product``, and the epilogue of each sum that is written there, if it has
    one."""

    product: Product
    array: Operand
    epilogue: Epilogue | None

    @property
    def is_fused(self) -> bool:
        """Tell whether the sums go through an epilogue before they are written."""
        return self.epilogue is not None

    def at(self, row: Index, column: Index) -> Index:
        """Return the elements from the start of one product's part to its entry (row, column)."""
        return self.product.layout(self.array).index([row, column])

    def value(self, meaning: Meaning[T], total: T, beside: Mapping[str, T]) -> T:
        """Compute an element from the sum ``total`` and the operands beside it, by name."""
        return (
            total if self.epilogue is None else self.epilogue.fold(meaning, {SUM: total, **beside})
        )


@dataclass(frozen=True)
class Numbering:
    """One of ``count`` matrices, that at ``place``; each is ``step`` elements after the last."""

    place: Index
    count: int
    step: int


@dataclass(frozen=True)
class Product:
    """Axis names and operands of the oriented product; extents are those of the axes."""

    matmul: Matmul
    row: str
    column: str
    depth: str
    left: Operand
    right: Operand
    program: Program | None = None
    """The program of which it is a part, if calls take the arrays as that has them."""
    is_open: bool = False
    """True if each call gives its number of rows, at most :attr:`rows`, to the text of a kernel."""

    rows_each: ClassVar[int] = 1
    """Rows of each point of the axis that can be open."""

    @property
    def whole(self) -> Matmul:
        """All products together: their arrays, dtypes and amounts."""
        return self.matmul

    @property
    def inputs(self) -> Sequence[Array]:
        """The arrays that calls read, in the order in which they take them."""
        if self.program is None:
            return self.matmul.inputs
        return tuple(operand.stored for operand in self.program.operands)

    @property
    def outputs(self) -> Sequence[Array]:
        """The arrays that calls write, in the order in which they take them."""
        return self.matmul.outputs if self.program is None else self.program.outputs

    @property
    def output(self) -> Operand:
        """The array that is written, or the first of them."""
        return self.matmul.output

    @property
    def written(self) -> tuple[Written, ...]:
        """All arrays that are written."""
        further = (Written(self, each.array, each.epilogue) for each in self.matmul.further)
        return (Written(self, self.output, self.matmul.epilogue), *further)

    @property
    def rows(self) -> int:
        """Extent of the axis that registers hold one vector after the other of."""
        return self.matmul.extents[self.row]

    @property
    def columns(self) -> int:
        """Extent of the axis that lanes run along."""
        return self.matmul.extents[self.column]

    @property
    def terms(self) -> int:
        """Extent of the axis that is summed over."""
        return self.matmul.extents[self.depth]

    @cached_property
    def batch(self) -> tuple[str, ...]:
        """The axes that number the products of a batch, from the slowest in memory."""
        axes = (self.output.axes[dimension] for dimension in self.output.order)
        return tuple(axis for axis in axes if axis not in (self.row, self.column))

    @cached_property
    def batches(self) -> int:
        """The number of products."""
        return prod(self.matmul.extents[axis] for axis in self.batch)

    @property
    def left_runs_deep(self) -> bool:
        """Tell whether the left operand is contiguous along the depth (else along rows)."""
        return self.left.stride(self.depth) == 1

    @property
    def right_runs_deep(self) -> bool:
        """Tell whether the right operand is contiguous along the depth (else along columns, as
        panels of a packed one are)."""
        return self.right.stride(self.column) != 1

    def run(self, operand: Array) -> int:
        """Return the elements that lie side by side along the axis of stride 1, from any multiple
        of a power of two that divides this on."""
        run = self._run(operand)
        return run if operand.leading is None else gcd(run, operand.leading)

    def _run(self, operand: Array) -> int:
        if operand is self.left:
            return self.terms if self.left_runs_deep else self.rows
        if operand is self.right:
            return self.terms if self.right_runs_deep else self.columns
        return self.columns

    def has_pairs(self, operand: Operand) -> bool:
        """Tell whether pairs of terms of an operand are words of memory, each row of them."""
        runs_deep, row = self.left_runs_deep, self.row
        if operand is self.right:
            runs_deep, row = self.right_runs_deep, self.column
        return runs_deep and self.terms % 2 == 0 and operand.stride(row) % 2 == 0

    def reuse(self, operand: Array) -> float:
        """Count the occurrences of each element of an array in its matrix: one."""
        return 1.0

    def reach(self, beyond: int) -> int:
        """Return an integer above the offset of any element of any array, ``beyond`` rows, columns
        or terms past the end included."""
        layouts = [self.layout(o) for o in (*self.matmul.indexed, *self.matmul.outputs)]
        return max(layout.size + beyond * max(layout.strides) for layout in layouts)

    @property
    def numbered(self) -> tuple[Array, ...]:
        """The arrays that each product of a batch has parts of."""
        return (*self.matmul.indexed, *self.matmul.outputs)

    @property
    def is_fused(self) -> bool:
        """Tell whether sums go through an epilogue before they are written."""
        return any(each.is_fused for each in self.written)

    @property
    def finished_arrays(self) -> int:
        """The number of arrays that are written after the sums, of these: the first output, if
        there is an epilogue, and all further ones."""
        return self.written[0].is_fused + len(self.matmul.further)

    @property
    def beside(self) -> tuple[Beside, ...]:
        """The operands that the epilogue reads."""
        return tuple(Beside(self, operand) for operand in self.matmul.epilogue_inputs)

    def layout(self, operand: Operand) -> Strided:
        """Return the place of an element in ``operand``: of (row, column), or of (row, depth) or
        (depth, column) for the left and right operand. Axes that do not index it have stride 0.
        """
        first = self.depth if operand is self.right else self.row
        second = self.depth if operand is self.left else self.column
        extents = self.matmul.extents
        strides = (operand.stride(first), operand.stride(second))
        return strided((extents[first], extents[second]), strides)

    def start(self, operand: Array, number: Index) -> Index:
        """Return the elements from the start of ``operand`` to what product ``number`` of the batch
        has of it; those that share it have the same."""
        assert isinstance(operand, Operand)
        offset = Index()
        for axis in reversed(self.batch):
            extent = self.matmul.extents[axis]
            offset += number % extent * operand.stride(axis)
            number = number // extent
        return offset

    def numbering(self, operand: Operand, number: Index) -> list[Numbering]:
        """Find the matrix of ``operand`` that product ``number`` uses, along each dimension that
        numbers matrices. Axes whose matrices are evenly apart are one dimension.
        """
        found: list[Numbering] = []
        unit = 1
        for axis in reversed(self.batch):
            extent, stride = self.matmul.extents[axis], operand.stride(axis)
            place = number // unit % extent
            if stride and found and stride == found[-1].step * found[-1].count:
                last = found.pop()
                place, stride = last.place + place * last.count, last.step
                found.append(Numbering(place, last.count * extent, stride))
            elif stride:
                found.append(Numbering(place, extent, stride))
            unit *= extent
        return found

    def matrix_bytes(self, operand: Operand) -> int:
        """Return the bytes of what one product of the batch has of ``operand``."""
        shared = (self.matmul.extents[axis] for axis in self.batch if axis in operand.axes)
        return operand.bytes // prod(shared)


def why_no_product(matmul: Matmul) -> str | None:
    """Say why ``matmul`` is no product of two matrices, nor a batch of them; None if it is
    one."""
    (depth,) = (axis.name for axis in matmul.axes if axis.reduction)
    for operand in matmul.factors:
        axes = _alone(matmul, operand)
        if _fastest(operand) not in (depth, axes[-1]):
            return f"{operand.name} is contiguous along {_fastest(operand)}, which numbers products"
    return None


def product_of(workload: Workload, packed: bool = False, sliced: bool = False) -> Product | str:
    """Return the oriented product that ``workload`` is, or why it is none, in words; with
    ``packed`` weights, and matrices that are ``sliced`` from larger ones, for those that read
    such."""
    matmul = workload.matmul
    if matmul is None:
        return workload.obstacle
    return why_unread(matmul, packed, sliced) or why_no_product(matmul) or orient(matmul)


def why_unread(matmul: Matmul, packed: bool, sliced: bool) -> str | None:
    """Say why kernels do not take the arrays of a product, unless they take ``packed`` weights, or
    ``sliced`` matrices."""
    if not packed and any(operand.packed for operand in matmul.factors):
        return "reads no packed weights; needs matrices in rows or columns"
    arrays = (*matmul.factors, *matmul.outputs)
    if not sliced and (slices := [array.name for array in arrays if array.leading is not None]):
        return f"{slices[0]} is a slice of a larger matrix; needs dense ones"
    return None


def orient(matmul: Matmul) -> Product:
    """Return the product with columns along the output's fastest axis, and rows along the fastest
    of those that only the other factor has. One column of many rows is seen as one row of many
    columns, which lie in the same places."""
    column = _column(matmul)
    (depth,) = (axis.name for axis in matmul.axes if axis.reduction)
    left, right = matmul.factors
    if column not in right.axes:
        left, right = right, left
    return Product(matmul, _alone(matmul, left)[-1], column, depth, left, right)


def _fastest(operand: Operand) -> str:
    return operand.axes[operand.order[-1]]


def _column(matmul: Matmul) -> str:
    """Return the output's axis that vectors run along: its fastest one, or the next one if that has
    one element and both belong to one matrix."""
    output = matmul.output
    fastest = _fastest(output)
    before = output.axes[output.order[-2]]
    own = [_alone(matmul, operand) for operand in matmul.factors]
    alone = matmul.extents[fastest] == 1 < matmul.extents[before]
    runs = output.stride(before) == 1
    turns = alone and runs and not any(operand.packed for operand in matmul.factors)
    return before if turns and any(axes[-1:] == (before,) for axes in own) else fastest


def _alone(matmul: Matmul, operand: Operand) -> tuple[str, ...]:
    """Return the output's axes that one factor alone has, from the slowest in memory."""
    axes = [matmul.output.axes[dimension] for dimension in matmul.output.order]
    having = {axis: [o for o in matmul.factors if axis in o.axes] for axis in axes}
    return tuple(axis for axis in axes if having[axis] == [operand])
