"""Find the templates that serve a program, and its workload: a ``matmul`` if it multiplies."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.algebra import ONE
from tilewright.spaces.derivation.constants import without_constants
from tilewright.spaces.derivation.products.addresses import address_of
from tilewright.spaces.derivation.products.loops import Loop, loops
from tilewright.spaces.derivation.products.roles import Roles, roles_of
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.registry import refusals
from tilewright.spaces.target import Target
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.matmul import MATMUL, Matmul
from tilewright.spaces.workloads.words import OWN_NAMES, PACKED, matmul
from tilewright.spaces.workloads.workload import PROGRAM, Parameter, Workload


def served(program: Program, target: Target) -> list[tuple[type[Template], str | None]]:
    """Each template for the target's kind, and why it does not serve the program, if so."""
    return refusals(workload_of(program), target)


def workload_of(
    asked: Program | Matmul,
    operator: str = PROGRAM,
    parameters: Mapping[str, Parameter] | None = None,
) -> Workload:
    """Return the workload that computes a program, whoever called it so. It is spelt as a product
    of matrices if it is one."""
    if isinstance(asked, Matmul):
        return Workload(MATMUL, asked.parameters, None, matmul=asked)
    program = without_constants(asked)
    found = matmul_of(program)
    if isinstance(found, Matmul):
        return Workload(MATMUL, found.parameters, program, matmul=found)
    made = Workload(operator, tuple((parameters or {}).items()), asked, found)
    if packed := next((o.name for o in program.operands if o.packed and not o.coded), None):
        from tilewright.spaces.workloads.several import product_writing

        why = product_writing(made, packed=True, sliced=True)
        if isinstance(why, str):
            raise InputError(f"{packed} is packed; allowed: one matrix of a product. {why}")
    return made


def matmul_of(program: Program) -> Matmul | str:
    """Return the product of matrices that a program is, or why it is none, in words.

    It is one product of two matrices, or a batch of them, with at most one map after it. Several
    neighbouring axes may stand for the rows, the columns or the depth, as the batch and the
    position of a token do; its matrices are the same arrays, with such axes taken for
    one.
    """
    sums = [stage for stage in program.stages if stage.reducer]
    if coded := next((o for o in program.operands if o.coded), None):
        return f"{coded.name} has packed codes of {coded.dtype}"
    if len(sums) != 1 or sums[0].reducer != "sum":
        reducers = ", ".join(str(stage.reducer) for stage in sums)
        return f"reductions: {reducers or 'none'}; needs one product of matrices"
    if found := cycles(program):
        return f"{found[0].state[0]} is read one step before; needs one product of matrices"
    if program.conditions or len(program.stages) > 2 or len(program.outputs) > 1:
        return "needs one product, at most one map after it, one output and no condition"
    try:
        return _Reading(program, sums[0]).matmul()
    except InputError as reason:
        return str(reason)


def names_in_matmul(program: Program) -> Mapping[str, str]:
    """Map ``matmul``'s names of arrays to the names in a program that is a product
    of matrices, where they differ; empty for any other program.
    """
    if isinstance(matmul_of(program), str):
        return {}
    made = _Reading(program, next(stage for stage in program.stages if stage.reducer))
    return {"A": made.left.name, "B": made.right.name, "C": made.output.name}


Parts = tuple[Part, ...]
NUMBERS = ("outer", "batch", "heads")
"""The axes of ``matmul`` that number products."""


class _Reading:
    """A program as ``C[m, n] = epilogue(sum[k](A[m, k] * B[k, n]))``, perhaps of a batch, where
    each axis of this may be several of the program's.

    The matrix that has the first axis of the output is A. What lies apart in memory cannot be one
    axis: further ones of the rows are ``heads``, which share a B, and of the batch ``outer``.
    """

    def __init__(self, program: Program, product: Stage) -> None:
        (self.output,) = program.outputs
        self.program, self.product = program, product
        self.last = program.stage[self.output.name]
        self.written = Read(self.output.name, tuple(map(AxisValue, self.last.axes)))
        found = self._roles()
        self.indexing = found.indexing
        self.left, self.right, rows, columns = self._sides(found)
        places = self._places()
        summed = sorted(found.depth, key=lambda part: -places[self.left].coefficient(part.name))
        batch = sorted(found.batch, key=lambda part: -places[self.written].coefficient(part.name))
        roles = {"batch": batch, "m": rows, "n": columns, "k": summed}
        self.loops = {name: loops(parts, places) for name, parts in roles.items()}
        if self._is_turned():
            self.left, self.right = self.right, self.left
            self.loops |= {"m": self.loops["n"], "n": self.loops["m"]}
        self.axes = self._axes()

    def _is_turned(self) -> bool:
        """Tell whether the right matrix is to be A: heads are rows, and packed weights are B."""
        packed = [read.name for read in (self.left, self.right) if self._packed(read)]
        if len(packed) > 1:
            raise InputError(f"{' and '.join(packed)} are packed; allowed: one")
        if packed:
            return packed == [self.left.name]
        return len(self.loops["n"]) > 1 >= len(self.loops["m"])

    def _packed(self, read: Read) -> bool:
        return self.program.operand[read.name].packed

    def _roles(self) -> Roles:
        """Return the roles of the product's axes."""
        found = roles_of(self.program, self.product)
        if isinstance(found, str):
            raise InputError(f"{found}; needs a product of two matrices")
        if set(self.last.axes) != set(self.product.axes) or found.leaving != ONE:
            raise InputError(f"the factors of {self.product}; needs two entries of matrices")
        if uneven := [axis for axis, split in found.indexing.splits.items() if split.uneven]:
            raise InputError(f"the groups of {uneven[0]}; needs as many in each")
        return found

    def _sides(self, found: Roles) -> tuple[Read, Read, Parts, Parts]:
        """Return both matrices, and what is a row and a column; the first one has the first axis of
        the output that is not the batch's."""
        (left, rows), (right, columns) = (found.left, found.rows), (found.right, found.columns)
        numbered = {part.axis for part in found.batch}
        first = next((axis for axis in self.last.axes if axis not in numbered), "")
        if first in {part.axis for part in columns} - {part.axis for part in rows}:
            (left, rows), (right, columns) = (right, columns), (left, rows)
        return self._matrix(left), self._matrix(right), rows, columns

    def matmul(self) -> Matmul:
        """Spell it in words; :class:`InputError` with the reason if there are none."""
        extents: dict[str, Any] = {name: loop.extent for name, loop in self.axes.items()}
        return matmul(
            **extents,
            dtype=self._dtype(),
            out=self.output.dtype,
            a=self._order(self.left, NUMBERS, ("m", "k")),
            b=self._order_of_right(),
            c=self._order(self.written, NUMBERS, ("m", "n")),
            epilogue=self._epilogue(),
            lda=self._leading(self.left),
            ldb=self._leading(self.right),
            ldc=self._leading(self.written),
        )

    def _leading(self, read: Read) -> int:
        """Return the distance between the rows of a slice; 0 of a dense matrix."""
        array = self.output if read is self.written else self.program.operand[read.name]
        return array.leading or 0

    def _matrix(self, factor: Expression) -> Read:
        if isinstance(factor, Read) and factor.name in self.program.operand:
            return factor
        raise InputError(f"the factors of {self.product}; needs two entries of matrices")

    def _places(self) -> dict[Read, Index]:
        """Map each read, and the write, to the element's place for a point of the axes."""
        beside = () if self.last is self.product else self.last.body.value_reads
        reads = [r for r in (self.left, self.right, *beside) if r.name in self.program.operand]
        places = {read: self._whole(read) for read in reads}
        axes = map(AxisValue, self.last.axes)
        return {**places, self.written: self.indexing.place(axes, self.output.strides)}

    def _whole(self, read: Read) -> Index:
        """Return the place of a read that has all of a dense operand, each element at a point."""
        operand, found = (
            self.program.operand[read.name],
            address_of(self.program, self.indexing, read),
        )
        parts = {p.name: p for split in self.indexing.splits.values() for p in split.parts}
        whole = found.offset.without(parts) == Index() and not found.bounds
        size = prod(part.extent for name, part in parts.items() if found.offset.coefficient(name))
        sliced = operand.leading is not None and read not in (self.left, self.right)
        if not whole or size != operand.size or sliced:
            raise InputError(f"reads {read}; needs a whole dense array, an axis for each dimension")
        return found.offset

    def _axes(self) -> dict[str, Loop[Read]]:
        """Return the loops by the names that ``matmul`` has for their extents."""
        batch, rows, columns, depth = (self.loops[name] for name in ("batch", "m", "n", "k"))
        if len(batch) > 2 or len(rows) > 2 or len(columns) > 1 or len(depth) > 1:
            axes = ", ".join((*self.last.axes, *self.product.over))
            raise InputError(f"how {axes} lie; needs those of each role together in all arrays")
        one: Loop[Read] = Loop(1, {})
        return {
            **({"outer": batch[0]} if len(batch) > 1 else {}),
            **({"batch": batch[-1]} if batch else {}),
            **({"heads": rows[0]} if len(rows) > 1 else {}),
            "m": rows[-1] if rows else one,
            "n": columns[-1] if columns else one,
            "k": depth[-1],
        }

    def _dtype(self) -> str:
        dtypes = [self.program.operand[read.name].dtype for read in (self.left, self.right)]
        if dtypes[0] != dtypes[1]:
            raise InputError(f"multiplies {' by '.join(dtypes)}; needs one dtype")
        return dtypes[0]

    def _order_of_right(self) -> str:
        """Name the order of the right matrix, which may be packed with columns before the depth."""
        if not self._packed(self.right):
            return self._order(self.right, ("outer", "batch"), ("k", "n"))
        n, k = self.axes["n"], self.axes["k"]
        columns, depth = self.program.operand[self.right.name].strides
        if n.strides.get(self.right, columns) != columns or k.strides[self.right] != depth:
            raise InputError(f"the order of {self.right}; packed are [columns, depth]")
        return PACKED

    def _order(self, read: Read, numbers: tuple[str, ...], matrix: tuple[str, str]) -> str:
        """Name the order of an array: matrices in row or in column order, one after the other, or
        else the order of all its axes.
        """
        for least in (1, 2):  # axes of one element have a place in an order, but need none
            for order, axes in (("row", matrix), ("col", matrix[::-1])):
                if self._is_dense(read, (*numbers, *axes), least):
                    return order
        names = [name for name in (*numbers, *matrix) if name in self.axes]
        slowest_first = sorted(names, key=lambda name: -self.axes[name].strides.get(read, 0))
        if slowest_first[-1] in matrix and self._is_dense(read, tuple(slowest_first)):
            return "-".join(slowest_first)
        raise InputError(f"the order of {read}; needs rows, columns or depth to be contiguous")

    def _is_dense(self, read: Read, axes: tuple[str, ...], least: int = 1) -> bool:
        """Tell whether an array has ``axes`` in this order and no others; axes with extents below
        ``least`` are ignored.
        """
        step, runs, leading = 1, False, self._leading(read)
        for loop in (self.axes[name] for name in reversed(axes) if name in self.axes):
            if runs and leading:
                step, leading = leading, 0
            if loop.strides and loop.extent >= least and loop.strides[read] != step:
                return False
            step *= loop.extent
            runs = runs or loop.extent > 1
        others = (loop for name, loop in self.axes.items() if name not in axes)
        return not any(loop.strides.get(read) and loop.extent > 1 for loop in others)

    def _epilogue(self) -> str:
        return "" if self.last is self.product else str(self._fused(self.last.body))

    def _fused(self, node: Expression) -> Expression:
        """Return an epilogue's expression, in which ``x`` is the product."""
        match node:
            case Read(name, indices) if name == self.product.name:
                if indices != tuple(AxisValue(axis) for axis in self.product.axes):
                    raise InputError(f"reads {node}; needs each sum where it is")
                return Read("x", ())
            case Read(name):
                return Read(name, self._beside(node))
            case AxisValue(name):
                raise InputError(f"the value of the axis {name} in a map; needs arrays and numbers")
        return node.with_children(tuple(self._fused(child) for child in node.children))

    def _beside(self, read: Read) -> tuple[AxisValue, ...]:
        """Say by which axes an operand of the map is read."""
        operand = self.program.operand[read.name]
        if operand.dtype != self.output.dtype or read.name in {"x", *OWN_NAMES}:
            raise InputError(
                f"the fused operand {read.name} is {operand.dtype}; needs {self.output.dtype}, "
                "and another name than x, A, B, C"
            )
        names = (*NUMBERS, "m", "n")
        axes = tuple(n for n in names if n in self.axes and self.axes[n].strides.get(read))
        if not self._is_dense(read, axes):
            raise InputError(f"the fused operand {read}; needs all axes of a factor, rows in a row")
        return tuple(map(AxisValue, axes))
