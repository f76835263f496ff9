"""Which templates serve a program: those that multiply matrices, as a workload of ``matmul``."""

from __future__ import annotations

from spaces.errors import InputError
from spaces.language.program import Operand, Program, Stage
from spaces.language.tree import AxisValue, Binary, Expression, Read
from spaces.operators import OWN_NAMES, workload
from spaces.registry import templates_for
from spaces.target import Target
from spaces.workload import Workload


def served(program: Program, target: Target) -> list[tuple[str, str | None]]:
    """Each template for the target's kind, and why it does not serve the program, if so."""
    made = matmul_workload(program)
    return [
        (template.name, made if isinstance(made, str) else template.refuses(made, target))
        for template in templates_for(target)
    ]


def matmul_workload(program: Program) -> Workload | str:
    """The workload that computes a program, or why there is none yet, in words.

    It is one product of two matrices with at most one map after it.
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


class _Matmul:
    """A program as ``C[m, n] = epilogue(sum[k](A[m, k] * B[k, n]))``."""

    def __init__(self, program: Program, product: Stage) -> None:
        (self.output,) = program.outputs
        last = program.stage[self.output.name]
        if len(last.axes) != 2 or len(product.over) != 1 or set(product.axes) != set(last.axes):
            raise InputError(f"axes of {product}; needs two that are kept and one that is summed")
        self.program, self.product, self.last = program, product, last
        self.axes = (*last.axes, *product.over)

    def workload(self) -> Workload:
        """As the operator of that name; :class:`InputError` with the reason if there is none."""
        m, n, k = self.axes
        left, right = self._factors()
        extents = {
            name: self.program.extent[axis] for name, axis in zip("mnk", self.axes, strict=True)
        }
        return workload(
            "matmul",
            **extents,
            dtype=self._dtype(left, right),
            out=self.output.dtype,
            a=self._order(left, m, k),
            b=self._order(right, k, n),
            c="row" if self.output.order == (0, 1) else "col",
            epilogue=self._epilogue(),
        )

    def _factors(self) -> tuple[Read, Read]:
        """What is read of the first and of the second matrix."""
        match self.product.body:
            case Binary("*", Read() as left, Read() as right):
                first, second = (left, right) if self.axes[0] in left.axes else (right, left)
                return first, second
        raise InputError(f"the factors of {self.product}; needs two entries of matrices")

    def _dtype(self, left: Read, right: Read) -> str:
        dtypes = [self.program.operand[read.name].dtype for read in (left, right)]
        if dtypes[0] != dtypes[1]:
            raise InputError(f"multiplies {' by '.join(dtypes)}; needs one dtype")
        return dtypes[0]

    def _order(self, read: Read, row: str, column: str) -> str:
        """Of the matrix in memory, its rows along ``row``."""
        operand = self._plain(read)
        axes = [index.name for index in read.indices if isinstance(index, AxisValue)]
        if set(axes) != {row, column}:
            raise InputError(f"reads {read}; needs the axes {row} and {column}")
        return "row" if [axes[dimension] for dimension in operand.order] == [row, column] else "col"

    def _plain(self, read: Read) -> Operand:
        """The operand, all of it read by an axis for each dimension."""
        operand = self.program.operand[read.name]
        axes = tuple(index.name for index in read.indices if isinstance(index, AxisValue))
        whole = len(axes) == len(read.indices) and operand.shape == self.program.shape(axes)
        if not whole or operand.leading is not None or read.outside is not None:
            raise InputError(f"reads {read}; needs a whole dense array, an axis for each dimension")
        return operand

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
                operand = self._plain(node)
                dense = operand.order == tuple(range(len(operand.shape)))
                if operand.dtype != self.output.dtype or not dense or name in {"x", *OWN_NAMES}:
                    raise InputError(
                        f"the fused operand {name} is {operand.dtype}; needs {self.output.dtype}, "
                        "rows in a row, and another name than x, A, B, C"
                    )
            case AxisValue(name):
                return AxisValue("mnk"[self.axes.index(name)])
        return node.with_children(tuple(self._fused(child) for child in node.children))
