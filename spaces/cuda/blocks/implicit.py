"""A sum of products whose factors are gathered: a convolution, say, seen as a product of matrices.

The matrices are never made (implicit GEMM). Rows, columns and depth number the points of the axes
of their roles, the last one the fastest. The offset of a factor's element is a part of the row (or
column) plus a part of the depth; so are the indices that may leave the array. The class has the
attributes that kernels read of a :class:`~spaces.workloads.product.Product`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar

from tilewright.spaces.algebra.index import Index, index, variable
from tilewright.spaces.cuda.blocks.batch import product_number, x_numbers
from tilewright.spaces.cuda.blocks.gathered import MOST, Gathered, at, digits, run_of
from tilewright.spaces.derivation.products.addresses import Address
from tilewright.spaces.derivation.products.reach import Reach
from tilewright.spaces.derivation.products.view import (
    Finished,
    PlacedProduct,
    extent,
    written_product_of,
)
from tilewright.spaces.language.meaning import Meaning
from tilewright.spaces.language.program import Operand, Output
from tilewright.spaces.language.tree import Expression
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.open_axis import SEVERAL, why_no_open_rows, why_not_outermost
from tilewright.spaces.workloads.product import Product
from tilewright.spaces.workloads.several import product_writing
from tilewright.spaces.workloads.workload import Workload

T = TypeVar("T")

BEYOND = 512
"""The most rows, columns or terms by which a tile reaches beyond the product."""


@dataclass(frozen=True)
class PlacedBeside:
    """An operand that the epilogue reads for each element, at ``place``."""

    product: ImplicitProduct
    name: str
    array: Array
    place: Address
    whole: ClassVar[bool] = True

    def step(self, width: int) -> int | None:
        """Return the elements from one to the next of ``width`` columns.

        The columns begin at a multiple of ``width``; with step 1 they also do so in memory. None if
        there is no such step.
        """
        columns = [p for p in self.product.view.columns if p.extent > 1]
        if width == 1 or self.place.step(columns) == 0:
            return 0
        return 1 if run_of(self.place, columns) % width == 0 else None

    def at(self, row: Index, column: Index) -> Index:
        """Return the offset from the array's start, in elements."""
        values = self.product.values(row, column)
        return at(self.place.offset, values) + self.place.offset.constant


@dataclass(frozen=True)
class PlacedOutput:
    """An output ``array``, the offset of whose elements and what is written there ``own`` says."""

    product: ImplicitProduct
    array: Output
    own: Finished

    @property
    def is_fused(self) -> bool:
        """True if an epilogue makes the elements from sums."""
        return self.own.value != self.product.view.sum

    def at(self, row: Index, column: Index) -> Index:
        """Return the elements from the start of one product's part to its entry (row, column)."""
        place = self.own.offset.without(self.product.batch)
        return at(place, self.product.values(row, column)) + place.constant

    def value(self, meaning: Meaning[T], total: T, beside: Mapping[str, T]) -> T:
        """Return an element, made of its sum ``total`` and of the operands beside it, by name.

        ``meaning`` says how operations compute.
        """
        return self.own.value.fold(meaning, self.product.known(total, beside).get)


@dataclass(frozen=True)
class ImplicitProduct:
    """The product that ``workload`` is.

    Its own arrays are meant: ``view`` has the roles and places of a program that is equal to its
    own.
    """

    workload: Workload
    view: PlacedProduct
    is_open: bool = field(default=False, kw_only=True)
    """True if each call gives the extent of the slowest axis of the rows."""

    @property
    def whole(self) -> Workload:
        """All products together: their arrays, dtypes and amounts."""
        return self.workload

    @property
    def rows_each(self) -> int:
        """Rows of each point of the slowest axis of the rows, which can be open."""
        return self.rows // self.view.rows[0].extent if self.view.rows else 1

    @property
    def rows(self) -> int:
        """Rows of each product."""
        return extent(self.view.rows)

    @property
    def columns(self) -> int:
        """Columns of each product."""
        return extent(self.view.columns)

    @property
    def terms(self) -> int:
        """Terms of each sum."""
        return extent(self.view.depth)

    @property
    def batches(self) -> int:
        """Products whose tiles a launch numbers; 1 with segments, whose tiles are numbered
        together."""
        return 1 if self.view.segments else extent(self.view.batch)

    @property
    def batch(self) -> tuple[str, ...]:
        """Names of the axes that number the products."""
        return tuple(part.name for part in self.view.batch if part.extent > 1)

    @property
    def left(self) -> Operand:
        """The factor along rows."""
        return self.workload.program.operand[self.view.left.operand.name]

    @property
    def right(self) -> Operand:
        """The factor along columns."""
        return self.workload.program.operand[self.view.right.operand.name]

    @property
    def inputs(self) -> Sequence[Array]:
        """The arrays that calls read, in the order in which they take them."""
        return self.workload.inputs

    @property
    def outputs(self) -> Sequence[Array]:
        """The arrays that calls write, in the order in which they take them."""
        return self.workload.outputs

    @property
    def output(self) -> Output:
        """The array that is written, or the first of them."""
        return self.written[0].array

    @cached_property
    def written(self) -> tuple[PlacedOutput, ...]:
        """All arrays that are written."""
        outputs, finished = self.workload.program.outputs, self.view.finished
        if len(finished) == 1:
            return (PlacedOutput(self, outputs[0], finished[0]),)
        own = {output.name: output for output in outputs}
        return tuple(PlacedOutput(self, own[each.output.name], each) for each in finished)

    @cached_property
    def gathered(self) -> tuple[Gathered, Gathered]:
        """The ways to the elements of the left and the right factor."""
        view = self.view
        return (
            Gathered(view.left.place, view.batch, view.rows, view.depth, view.left.gather),
            Gathered(view.right.place, view.batch, view.columns, view.depth),
        )

    @property
    def left_runs_deep(self) -> bool:
        """True if tiles of the left factor run along the depth, false if along rows."""
        return self.gathered[0].deep

    @property
    def right_runs_deep(self) -> bool:
        """True if tiles of the right factor run along the depth, false if along columns."""
        return self.gathered[1].deep

    def run(self, operand: Array) -> int:
        """Return the elements that lie side by side along the axis of stride 1.

        They do so from each multiple of a power of two that divides this number; it is 1 along rows
        in segments, which begin anywhere.
        """
        for written in self.written:
            if operand is written.array:
                place = Address(operand.name, written.own.offset, (), None)
                return run_of(place, self.view.columns)
        if self.view.segments and operand is self.left and not self.left_runs_deep:
            return 1
        return self.gathered[operand is self.right].run

    def reuse(self, operand: Array) -> float:
        """Return how often an input's matrices have each element of its array: windows overlap."""
        width, depth = self.gathered[operand is self.right].shape
        return max(1.0, width * depth * self.batches / operand.size)

    def reach(self, beyond: int) -> int:
        """Return 0: 32 bits hold all offsets, see :func:`why_not_implicit`."""
        return 0

    @property
    def numbered(self) -> tuple[Array, ...]:
        """The arrays that each product of a batch has parts of."""
        return self.left, self.right, *(each.array for each in self.written)

    def start(self, operand: Array, number: Index) -> Index:
        """Return the elements from the start of ``operand`` to the part of product ``number``."""
        view = self.view
        written = (each.own.offset for each in self.written)
        places = (view.left.place.offset, view.right.place.offset, *written)
        form = next(p for o, p in zip(self.numbered, places, strict=True) if o is operand)
        return at(form.part(self.batch), digits(self.view.batch, number))

    @property
    def is_fused(self) -> bool:
        """True if an epilogue makes elements from sums."""
        return any(each.is_fused for each in self.written)

    @cached_property
    def beside(self) -> tuple[PlacedBeside, ...]:
        """The operands that the epilogue reads for each element."""
        operands = self.workload.program.operand
        return tuple(
            PlacedBeside(self, f"{i}", operands[read.name], place)
            for i, (read, place) in enumerate(self.view.places.items())
        )

    @property
    def number(self) -> Index:
        """The number of the block's product, an int in C."""
        if self.view.segments:
            return index("segment", self.view.segments.count)
        return Index() if self.batches == 1 else product_number(self.batches, "int")

    def values(self, row: Index, column: Index) -> dict[str, Index]:
        """Return the indices along all axes of the batch, rows and columns."""
        return {
            **digits(self.view.batch, self.number),
            **digits(self.view.rows, row),
            **digits(self.view.columns, column),
        }

    def known(self, total: T, beside: Mapping[str, T]) -> Mapping[Expression, T]:
        """Return what outputs are made of: the sum ``total``, and the operands' values.

        ``beside`` gives these by the names in :attr:`beside`.
        """
        known: dict[Expression, T] = {self.view.sum: total}
        return known | {read: beside[f"{i}"] for i, read in enumerate(self.view.places)}


Tiled = Product | ImplicitProduct
"""The products that kernels compute in tiles."""


def tiled_product_of(workload: Workload) -> Tiled | str:
    """Return the product of matrices that ``workload`` is; or why it is none, in words.

    Factors that are no matrices in memory are gathered.
    """
    found = product_writing(workload, sliced=True)
    if workload.matmul or isinstance(found, Product):
        return found
    view = written_product_of(workload)
    if isinstance(view, str):
        return view
    product = ImplicitProduct(workload, view)
    return why_not_implicit(product) or product


def why_no_open_product(product: Tiled, axis: str) -> str | None:
    """Return why calls of a product cannot give the extent of an axis, in words; None if they can:
    it has to be the rows of matrices, or the slowest axis of the rows of a gathered factor."""
    if isinstance(product, Product):
        return why_no_open_rows(product, axis)
    program, view = product.workload.program, product.view
    if view.further:
        return SEVERAL
    first = view.rows[0] if view.rows else None
    if first is None or (first.axis, first.extent) != (axis, program.extent.get(axis)):
        return f"{axis} is not the slowest axis of the rows"
    if view.tables or x_numbers(product.batches):
        return "tables choose rows" if view.tables else f"there are {product.batches} products"
    if not product.left_runs_deep:
        return f"rows lie side by side in {product.left.name}"
    return why_not_outermost(program, axis)


def why_not_implicit(product: ImplicitProduct) -> str | None:
    """Return why tiles of a product cannot be gathered, in words; None if they can."""
    view = product.view
    if product.workload.accumulator != "float32":
        return f"sums in places are kept in float32, not in {product.workload.accumulator}"
    if product.left is product.right:
        return f"both factors are {product.left.name}; needs two arrays"
    for gathered in product.gathered:
        if gathered.place.bounds and gathered.place.outside != 0:
            return (
                f"{gathered.place.name} is {gathered.place.outside} beyond its borders; allowed: 0"
            )
    for read, place in view.places.items():
        if place.bounds:
            return f"{read} leaves its array beside the sum; needs reads within borders"
    counts = [extent(parts) for parts in (view.rows, view.columns, view.depth)]
    groups = view.segments.count if view.segments else 1
    spans = (
        array.span_bytes // (groups if array is product.right else 1)
        for array in product.workload.operands
    )
    most = max(*counts, *spans)
    if most >= MOST:
        return f"{most} elements are too many for 32 bits"
    return _why_too_far(product)


def _why_too_far(product: ImplicitProduct) -> str | None:
    """Return why 32 bits do not hold parts of indices, tiles that reach beyond included; else
    None."""
    view = product.view
    slowest = [part for parts in (view.rows, view.columns, view.depth) for part in parts[:1]]
    further = {p.name: variable(p.name, p.extent + BEYOND) for p in slowest}
    for gathered in product.gathered:
        if not Reach(view.program).are_narrow(index.at(further) for index in gathered.indices):
            return f"{gathered.place.name} is read too far apart for 32 bits"
    return None
