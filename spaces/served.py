"""Which templates serve a program: those that multiply matrices, as a workload of ``matmul``."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from spaces.computation import PROGRAM, Computation
from spaces.errors import InputError
from spaces.language.program import Program, Stage
from spaces.language.tree import AxisValue, Binary, Expression, Read
from spaces.operators import OWN_NAMES, workload
from spaces.registry import templates_for
from spaces.target import Target
from spaces.workload import Parameter, Workload


def served(program: Program, target: Target) -> list[tuple[str, str | None]]:
    """Each template for the target's kind, and why it does not serve the program, if so."""
    made = workload_of(program)
    return [(template.name, template.refuses(made, target)) for template in templates_for(target)]


def workload_of(
    program: Program, operator: str = PROGRAM, parameters: Mapping[str, Parameter] | None = None
) -> Workload:
    """The workload that computes a program, whoever called it so: a product of matrices if it is
    one, and else the program itself."""
    made = matmul_workload(program)
    if isinstance(made, str):
        return Computation(operator, tuple((parameters or {}).items()), program, made)
    return made


def matmul_workload(program: Program) -> Workload | str:
    """The workload that computes a program, or why there is none yet, in words.

    It is one product of two matrices with at most one map after it. Several neighbouring axes may
    stand for the rows, the columns or the depth, as the batch and the position of a token do; the
    workload's matrices are the same arrays, with such axes taken for one.
    """
    sums = [stage for stage in program.stages if stage.reducer]
    if len(sums) != 1 or sums[0].reducer != "sum":
        reducers = ", ".join(str(stage.reducer) for stage in sums)
        return f"reductions: {reducers or 'none'}; needs one product of matrices"
    if program.conditions or len(program.stages) > 2 or len(program.outputs) > 1:
        return "needs one product, at most one map after it, one output and no condition"
    try:
        return _Matmul(program, sums[0]).workload()
    except InputError as reason:
        return str(reason)


Axes = tuple[str, ...]


class _Matmul:
    """A program as ``C[m, n] = epilogue(sum[k](A[m, k] * B[k, n]))``, where each of the three may
    be several axes: ``rows``, ``columns`` and ``depth``."""

    def __init__(self, program: Program, product: Stage) -> None:
        (self.output,) = program.outputs
        last = program.stage[self.output.name]
        self.program, self.product, self.last = program, product, last
        self.left, self.right, self.rows, self.columns = self._sides()
        self.depth = self._depth()

    def workload(self) -> Workload:
        """As the operator of that name; :class:`InputError` with the reason if there is none."""
        groups = {"m": self.rows, "n": self.columns, "k": self.depth}
        return workload(
            "matmul",
            **{name: prod(self.program.shape(axes)) for name, axes in groups.items()},
            dtype=self._dtype(),
            out=self.output.dtype,
            a=self._order(self.left, self.rows, self.depth),
            b=self._order(self.right, self.depth, self.columns),
            c=self._output_order(),
            epilogue=self._epilogue(),
        )

    def _sides(self) -> tuple[Read, Read, Axes, Axes]:
        """What is read of the first and of the second matrix, and their axes of the output; the
        first matrix has the output's first axes."""
        match self.product.body:
            case Binary("*", Read() as one, Read() as other):
                kept = self.last.axes
                for left, right in ((one, other), (other, one)):
                    rows = tuple(axis for axis in kept if axis in left.axes)
                    columns = tuple(axis for axis in kept if axis in right.axes)
                    if rows and rows + columns == kept and set(kept) == set(self.product.axes):
                        return left, right, rows, columns
                raise InputError(
                    f"axes of {self.product}; needs first those of one factor, then those of the "
                    "other one"
                )
        raise InputError(f"the factors of {self.product}; needs two entries of matrices")

    def _depth(self) -> Axes:
        """The axes summed over, as they lie in the first matrix."""
        return tuple(axis for axis in self._in_memory(self.left) if axis in self.product.over)

    def _dtype(self) -> str:
        dtypes = [self.program.operand[read.name].dtype for read in (self.left, self.right)]
        if dtypes[0] != dtypes[1]:
            raise InputError(f"multiplies {' by '.join(dtypes)}; needs one dtype")
        return dtypes[0]

    def _order(self, read: Read, first: Axes, second: Axes) -> str:
        """Of a matrix in memory, ``first`` its rows and ``second`` its columns."""
        axes = self._in_memory(read)
        if axes == first + second:
            return "row"
        if axes == second + first:
            return "col"
        raise InputError(
            f"reads {read}; needs the axes {', '.join(first)} together and "
            f"{', '.join(second) or 'no other'} together"
        )

    def _output_order(self) -> str:
        axes = tuple(self.last.axes[dimension] for dimension in self.output.order)
        if axes == self.rows + self.columns:
            return "row"
        if axes == self.columns + self.rows:
            return "col"
        raise InputError(f"the order of {self.output.name}; needs the axes of each factor together")

    def _in_memory(self, read: Read) -> Axes:
        """The axes of an operand from the slowest to the fastest; it is read as a whole, by an
        axis for each dimension."""
        operand = self.program.operand[read.name]
        axes = tuple(index.name for index in read.indices if isinstance(index, AxisValue))
        whole = len(axes) == len(read.indices) and operand.shape == self.program.shape(axes)
        if not whole or operand.leading is not None or read.outside is not None:
            raise InputError(f"reads {read}; needs a whole dense array, an axis for each dimension")
        return tuple(axes[dimension] for dimension in operand.order)

    def _epilogue(self) -> str:
        return "" if self.last is self.product else str(self._fused(self.last.body))

    def _fused(self, node: Expression) -> Expression:
        """An epilogue's expression, in which ``x`` is the product."""
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
        """Whether an operand of the map is read by row, by column, by both or by none."""
        operand, axes = self.program.operand[read.name], self._in_memory(read)
        if operand.dtype != self.output.dtype or read.name in {"x", *OWN_NAMES}:
            raise InputError(
                f"the fused operand {read.name} is {operand.dtype}; needs {self.output.dtype}, "
                "and another name than x, A, B, C"
            )
        ways = {self.rows + self.columns: "mn", self.columns: "n", self.rows: "m", (): ""}
        if axes not in ways:
            raise InputError(f"the fused operand {read}; needs all axes of a factor, rows in a row")
        return tuple(map(AxisValue, ways[axes]))
