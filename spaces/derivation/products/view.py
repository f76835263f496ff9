"""A program that is one sum of products of two reads, seen as a product of two matrices whose
elements have places.

    output[batch, row, column] = value(sum[depth](left[batch, row, depth] *
                                                  right[batch, column, depth]), ...)

A convolution is this: each element of the image has the place of its window plus the place within
the window, and lies beyond a border where a bound says so. So are products of rows, each with the
matrix that a sorted table gives it: a segment of the rows is a product of a batch, whose rows begin
and end where the table says. Kernels of all targets read roles and places here, and know of no
operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.algebra.atoms import Entry
from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.algebra import times
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.products.addresses import Address, address_of, why_not_separable
from tilewright.spaces.derivation.products.roles import Roles, roles_of
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Gather:
    """Rows that a ``table`` chooses: row ``r`` of a product is number ``table[r]`` of an operand,
    whose rows are ``step`` elements apart. ``entry`` is this number in the operand's place."""

    table: Operand
    entry: Entry
    step: int


@dataclass(frozen=True)
class Factor:
    """An operand that is multiplied: its place, and the index of each of its dimensions."""

    operand: Operand
    place: Address
    indices: tuple[Index, ...]
    gather: Gather | None = None


@dataclass(frozen=True)
class Segments:
    """Rows whose product is chosen by a sorted ``table``: row ``r`` is of product ``table[r]`` of
    ``count``. Segments may be empty."""

    table: Operand
    count: int

    @cached_property
    def drawn(self) -> np.ndarray:
        """Rows of each segment that has any, in a table as it is drawn: what schedules are judged
        by, for any table is served."""
        entries = np.random.default_rng(0).integers(0, self.count, self.table.size)
        return np.unique(entries, return_counts=True)[1]

    def tiles(self, rows: Any) -> Any:
        """Compute the number of tiles of ``rows`` rows that such segments are cut into; element by
        element.
        """
        sizes, times = np.unique(self.drawn, return_counts=True)
        return sum(n * ceil_div(int(size), rows) for size, n in zip(sizes, times, strict=True))


@dataclass(frozen=True)
class Finished:
    """An output, its element's ``offset``, and the ``value`` that is written there."""

    output: Output
    offset: Index
    value: Expression


@dataclass(frozen=True)
class PlacedProduct:
    """A product with its places in memory; columns run along the output's fastest axis.

    Parts of a role are ordered from slowest to fastest in the output; parts of the depth as in the
    left factor. All places and indices are sums of integer multiples of parts, and of the numbers
    of rows where the left factor is gathered. ``offset`` is the output's element. ``value`` is the
    expression that is written there: ``sum`` stands for the finished sum, and reads find their
    elements at ``places``. With ``segments``, the batch is one part that numbers them and the rows
    are one part, which counts those of all segments: each product has some neighbouring rows.
    ``further`` outputs lie in the same order, and are computed from the same sum.
    """

    program: Program
    batch: tuple[Part, ...]
    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    depth: tuple[Part, ...]
    left: Factor
    right: Factor
    output: Output
    offset: Index
    sum: Read
    value: Expression
    places: Mapping[Read, Address] = field(hash=False)
    segments: Segments | None = None
    further: tuple[Finished, ...] = ()

    @property
    def fused(self) -> bool:
        """Tell whether anything is computed from the sum before it is written."""
        return self.value != self.sum

    @property
    def finished(self) -> tuple[Finished, ...]:
        """All outputs, first the one that the product is ordered by."""
        return (Finished(self.output, self.offset, self.value), *self.further)

    @property
    def tables(self) -> tuple[Operand, ...]:
        """The operands that are read for indices only."""
        of_segments = (self.segments.table,) if self.segments else ()
        return (*of_segments, *((self.left.gather.table,) if self.left.gather else ()))


def extent(parts: tuple[Part, ...]) -> int:
    """Count the points of a role's parts."""
    return prod(part.extent for part in parts)


def placed_product_of(workload: Workload) -> PlacedProduct | str:
    """Return the product of one output that ``workload`` is, or why it is none, in words."""
    return _with_one_output(written_product_of(workload))


def written_product_of(workload: Workload) -> PlacedProduct | str:
    """Return the product that ``workload`` is, with one output or several, or why it is none, in
    words."""
    if workload.matmul:
        return "it is a product of matrices as they lie; nothing in it has a place of its own"
    return _written_product_in(workload.program)


def placed_product_in(program: Program) -> PlacedProduct | str:
    """Return the product of one output that a program is, or why it is none, in words."""
    return _with_one_output(_written_product_in(program))


def _with_one_output(found: PlacedProduct | str) -> PlacedProduct | str:
    if isinstance(found, PlacedProduct) and found.further:
        return "needs one output"
    return found


@lru_cache(maxsize=64)
def _written_product_in(program: Program) -> PlacedProduct | str:
    try:
        return _placed_product(program)
    except InputError as reason:
        return str(reason)


def _placed_product(program: Program) -> PlacedProduct:
    written, found = _stages(program)
    left, right = _rows_factor(program, found), _factor(program, found, found.right)
    summed = Read(found.stage.name, ())
    first, *further = sorted(
        (_finished(program, found, stage, summed) for stage in written),
        key=lambda each: each.value != summed,
    )
    values = (each.value for each in (first, *further))
    reads = dict.fromkeys(r for value in values for r in value.value_reads if r != summed)
    placed = PlacedProduct(
        program=program,
        batch=found.batch,
        rows=found.rows,
        columns=found.columns,
        depth=tuple(sorted(found.depth, key=lambda part: _slowness(part, left, right))),
        left=left,
        right=right,
        output=first.output,
        offset=first.offset,
        sum=summed,
        value=first.value,
        places={read: _place(program, found, read) for read in reads},
        segments=_segments(program, found),
        further=tuple(further),
    )
    for table in placed.tables:
        if table.dtype != "int32":
            raise InputError(f"{table.name} is {table.dtype}, and chooses rows; allowed: int32")
    return placed


def _stages(program: Program) -> tuple[list[Stage], Roles]:
    """Return the stages that are written, and the roles of the sum in them."""
    sums = [stage for stage in program.stages if stage.reducer]
    if len(sums) != 1:
        names = ", ".join(stage.name for stage in sums)
        raise InputError(f"reductions: {names or 'none'}; needs one sum of products")
    if program.conditions:
        raise InputError("needs sums without conditions")
    found = roles_of(program, sums[0])
    if isinstance(found, str):
        raise InputError(found)
    written = [program.stage[output.name] for output in program.outputs]
    for stage in written:
        if set(stage.axes) != set(sums[0].axes):
            raise InputError(
                f"{stage.name} has other axes than {sums[0].name}; needs an element a sum"
            )
    _check_groups(found)
    last = written[0]
    in_memory, *others = (
        [stage.axes[dimension] for dimension in output.order]
        for stage, output in zip(written, program.outputs, strict=True)
    )
    if any(other != in_memory for other in others):
        raise InputError("outputs lie in different orders; needs one")
    kept = [part for axis in in_memory for part in found.indexing.parts(axis)]
    fastest = next((part for part in reversed(kept) if part.extent > 1), None)
    if fastest in found.batch or (kept and not found.columns):
        raise InputError(f"both factors are read along the fastest axis of {last.name}")
    return written, replace(found, indexing=found.indexing.counted_from_the_first)


def _check_groups(found: Roles) -> None:
    """Refuse groups of different sizes, unless they are segments of all the rows there are."""
    for axis, split in found.indexing.splits.items():
        if not split.uneven:
            continue
        if split.table is None:
            raise InputError(f"the groups of {axis} differ in size; needs as many in each")
        segment, rows = split.parts
        if found.batch != (segment,) or found.rows != (rows,):
            raise InputError(
                f"{axis}, in segments of {split.table}, is not all of the batch and of the rows"
            )


def _segments(program: Program, found: Roles) -> Segments | None:
    """Find the table that assigns rows to products, if there is one."""
    for split in found.indexing.splits.values():
        if split.table is not None:
            return Segments(program.operand[split.table], split.parts[0].extent)
    return None


def _factor(program: Program, found: Roles, factor: Expression) -> Factor:
    if not isinstance(factor, Read) or factor.name not in program.operand:
        raise InputError(f"{factor} is multiplied; needs two factors that are operands as they are")
    indices = tuple(map(found.indexing.index, factor.indices))
    return Factor(program.operand[factor.name], _place(program, found, factor), indices)


def _rows_factor(program: Program, found: Roles) -> Factor:
    """Return the factor along rows, which a table may choose."""
    read = found.left
    gather = _gather(program, found, read) if isinstance(read, Read) else None
    if not isinstance(read, Read) or gather is None:
        return _factor(program, found, read)
    indices = tuple(map(found.indexing.index, read.indices))
    return Factor(
        program.operand[read.name], address_of(program, found.indexing, read), indices, gather
    )


def _gather(program: Program, found: Roles, read: Read) -> Gather | None:
    """Return the table of all rows' numbers, if that is how a factor is read and there is nothing
    else."""
    if read.name not in program.operand or len(found.rows) != 1:
        return None
    at = address_of(program, found.indexing, read)
    others, (row,) = at.offset.compound, found.rows
    if at.bounds or len(others) != 1 or at.offset.coefficient(row.name):
        return None
    ((entry, step),) = others
    if not isinstance(entry, Entry) or entry.indices != (row.index,):
        return None
    return Gather(program.operand[entry.table], entry, step)


def _place(program: Program, found: Roles, read: Read) -> Address:
    """Say where a read finds its element, for each point of the parts by itself."""
    if read.name not in program.operand:
        raise InputError(f"{read} is no operand; needs maps that are computed where they are read")
    result = address_of(program, found.indexing, read)
    if mixed := why_not_separable(result, found):
        raise InputError(mixed)
    for index in (result.offset, *(bound.index for bound in result.bounds)):
        for atom, _ in index.compound:
            where = f"{read.name} is read at {atom.formula}"
            raise InputError(f"{where}; needs sums of multiples of axes")
    return result


def _slowness(part: Part, left: Factor, right: Factor) -> tuple[int, int]:
    first, second = (abs(f.place.offset.coefficient(part.name)) for f in (left, right))
    return (-first, -second)


def _finished(program: Program, found: Roles, stage: Stage, summed: Read) -> Finished:
    """Return the output that a stage is."""
    output = next(output for output in program.outputs if output.name == stage.name)
    offset = found.indexing.place(map(AxisValue, stage.axes), output.strides)
    return Finished(output, offset, _value(program, found, stage, summed))


def _value(program: Program, found: Roles, last: Stage, summed: Read) -> Expression:
    """Write an output's value in terms of the sum and of operands beside it."""
    leaving = times(found.leaving, summed)
    if last is found.stage:
        return leaving

    def visit(node: Expression) -> Expression:
        match node:
            case Read(found.stage.name, indices):
                if indices != tuple(map(AxisValue, found.stage.axes)):
                    raise InputError(f"reads {node}; needs each sum where it is")
                return leaving
            case Read():
                return node
        return node.with_children(tuple(map(visit, node.children)))

    value = visit(inlined(program, last.body, lambda _: True))
    if axes := sorted({v.name for v in value.values() if isinstance(v, AxisValue)}):
        raise InputError(
            f"the value of the axis {axes[0]} in {last.name}; needs arrays and numbers"
        )
    return value
