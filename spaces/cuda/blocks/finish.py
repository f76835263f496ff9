"""The end of an output tile: sums in registers, epilogue applied, output stored as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spaces.algebra.index import Index, index
from spaces.cuda import scalar_math
from spaces.cuda.abi import C_TYPES, parameters
from spaces.cuda.scalar_code import ScalarCode, Value
from spaces.epilogue.expression import SUM
from spaces.kernel import arguments
from spaces.workloads.contraction import Contraction, Operand
from spaces.workloads.product import Product

SUM_TYPES = {"float64": "double", "float32": "float", "int32": "i32"}
"""C type of sums by their dtype."""

_WHOLE = "whole_"


def sum_dtype(workload: Contraction) -> str:
    """Dtype that sums have when they are finished: float16 ones are widened first."""
    return "float32" if workload.accumulator == "float16" else workload.accumulator


def why_no_finish(workload: Contraction) -> str | None:
    """Why kernels cannot finish this workload's output, in words; None if they can."""
    expression = workload.epilogue
    if expression is None or workload.accumulator != "float64" or not expression.functions:
        return None
    return (
        f"the epilogue calls {', '.join(sorted(expression.functions))}; "
        "functions are float32, allowed beside float64 sums: arithmetic only"
    )


def prelude(workload: Contraction) -> str:
    """What the epilogue's expression calls."""
    return scalar_math.prelude(workload.epilogue.functions if workload.epilogue else ())


def signature(product: Product, workspace: bool = False, maps: Sequence[str] = ()) -> str:
    """C parameters of an entry. The contraction's operands are called ``left``, ``right`` and
    ``output``, tensor maps as ``maps`` says; epilogue operands get a prefix that keeps clear of
    C's words and of our names. Of a batch these are names of what one product has of them, which
    :func:`parts` declares; the parameters' own have another prefix."""
    workload, whole = product.workload, _WHOLE if product.batch else ""
    inputs, outputs = (
        [replace(o, name=whole + operand_name(product, o)) for o in operands]
        for operands in (workload.inputs, workload.outputs)
    )
    return parameters(arguments(inputs, outputs), workspace, maps)


def operand_name(product: Product, operand: Operand) -> str:
    """The C name of an operand, see :func:`signature`."""
    own = {"left": product.left, "right": product.right, "output": product.output}
    return next((name for name, o in own.items() if o is operand), f"e_{operand.name}")


def parts(product: Product, operands: Sequence[Operand], number: Index) -> list[str]:
    """C lines that declare what product ``number`` of a batch has of ``operands``; none where
    there is one product only."""
    if not product.batch:
        return []
    lines = []
    for operand in operands:
        name, constant = operand_name(product, operand), "const "
        if operand is product.output:
            constant = ""
        start = product.start(operand, number)
        place = f"{_WHOLE}{name}" + ("" if start.value == 0 else f" + {start.text}")
        lines.append(f"{constant}{C_TYPES[operand.dtype]} *const {name} = {place};")
    return lines


def batch_parts(product: Product) -> list[str]:
    """:func:`parts` of all operands, where the launch has a product for each number along z."""
    operands = (*product.workload.inputs, *product.workload.outputs)
    return parts(product, operands, index("(i64)blockIdx.z", product.batches))


@dataclass(frozen=True)
class Finish:
    """Writes sums of ``product``, kept in the C type of its accumulator, to the output.

    Tiles have ``block_rows`` x ``block_columns`` elements; only where these do not divide the
    output is an index tested: against its extent, or against the ``first`` (row, column) that no
    other tile has, if these names are given.
    """

    product: Product
    block_rows: int
    block_columns: int
    first: tuple[str | None, str | None] = (None, None)

    @property
    def output(self) -> Operand:
        """The array that is written."""
        return self.product.output

    def vector(self, width: int) -> int:
        """The largest power of two up to ``width`` elements that one store may write, in whole
        and aligned, wherever the output's rows start."""
        while width > 1 and (
            self.product.columns % width or width * self.output.element.bytes > 16
        ):
            width //= 2
        return width

    def store(self, row: Index, column: Index, sums: Sequence[str]) -> list[str]:
        """Finish neighbours in a row; ``sums`` are C expressions, a power of two of them."""
        width = self.vector(len(sums))
        lines = []
        for start in range(0, len(sums), width):
            lines += self._store(row, column + start, sums[start : start + width])
        return lines

    def finish(
        self, row: Index, column: Index, sums: Sequence[str], results: Sequence[str]
    ) -> list[str]:
        """Assign finished neighbours in a row to the floats ``results``, without storing them;
        those outside of the output may stay as they are. For float32 sums."""
        width = self.vector(len(sums))
        lines = []
        for start in range(0, len(sums), width):
            pairs = zip(results[start : start + width], sums[start : start + width], strict=True)
            numbers = [
                f"{result} = {self._number(total, i)};" for i, (result, total) in enumerate(pairs)
            ]
            loads = self._all_loads(row, column + start, width)
            inside = _guarded(self._tests(row, column + start), [*loads, *numbers])
            lines += inside if loads else numbers
        return lines

    def _store(self, row: Index, column: Index, sums: Sequence[str]) -> list[str]:
        place = f"output + {self.product.layout(self.output).index([row, column]).text}"
        values = [self._value(total, i) for i, total in enumerate(sums)]
        kind = C_TYPES[self.output.dtype]
        body = [
            *self._all_loads(row, column, len(sums)),
            f"const {kind} finished[{len(sums)}] = {{{', '.join(values)}}};",
            f"tw::store_global<{len(sums)}>({place}, finished);",
        ]
        return _guarded(self._tests(row, column), body)

    def _tests(self, row: Index, column: Index) -> list[str]:
        """What tells whether an element is inside the output; nothing if all are."""
        row_first, column_first = self.first
        return [
            f"{position.text} >= {first}" if first else f"{position.text} < {extent}"
            for position, extent, block, first in (
                (row, self.product.rows, self.block_rows, row_first),
                (column, self.product.columns, self.block_columns, column_first),
            )
            if extent % block
        ]

    def _all_loads(self, row: Index, column: Index, width: int) -> list[str]:
        return [
            line
            for operand in self.product.workload.epilogue_inputs
            for line in self._loads(operand, row, column, width)
        ]

    def _loads(self, operand: Operand, row: Index, column: Index, width: int) -> list[str]:
        """Declare ``v_<name>``: the operand's elements beside ``width`` neighbours in a row."""
        kind, name = C_TYPES[operand.dtype], operand.name
        source = self.product.layout(operand).index([row, column]).text
        stride = operand.stride(self.product.column)
        if stride == 0:
            return [f"const {kind} v_{name}[1] = {{tw::load_global(e_{name} + {source})}};"]
        declaration = f"{kind} v_{name}[{width}];"
        if stride == 1 and self._is_aligned(operand, width):
            return [declaration, f"tw::load_global<{width}>(v_{name}, e_{name} + {source});"]
        loads = [f"tw::load_global(e_{name} + {source} + {i * stride})" for i in range(width)]
        return [f"const {kind} v_{name}[{width}] = {{{', '.join(loads)}}};"]

    def _is_aligned(self, operand: Operand, width: int) -> bool:
        fits = width * operand.element.bytes in (1, 2, 4, 8, 16, 32)
        return fits and self.product.columns % width == 0

    @property
    def _double(self) -> bool:
        return self.product.workload.accumulator == "float64"

    def _value(self, total: str, i: int) -> str:
        """Element ``i`` of the output, in its own type."""
        workload, output = self.product.workload, self.output.dtype
        number = self._number(total, i)
        if output == ("float64" if self._double else "float32"):
            return number
        if workload.epilogue is None and output == sum_dtype(workload):
            return total
        return f"tw::from_float<{C_TYPES[output]}>({number})"

    def _number(self, total: str, i: int) -> str:
        """The same before it is rounded: a float, or a double of double sums."""
        workload = self.product.workload
        x = total if self._double else _as_float(total, sum_dtype(workload))
        if workload.epilogue is None:
            return x
        elements = {o.name: Value(self._element(o, i)) for o in workload.epilogue_inputs}
        code = ScalarCode(real="double" if self._double else "float")
        return workload.epilogue.fold(code, {SUM: Value(x), **elements}).text

    def _element(self, operand: Operand, i: int) -> str:
        """What :meth:`_loads` has read beside element ``i``, as a number."""
        element = f"v_{operand.name}[{i if operand.stride(self.product.column) else 0}]"
        if self._double:
            return element if operand.dtype == "float64" else f"double(tw::to_float({element}))"
        return element if operand.dtype == "float32" else f"tw::to_float({element})"


def _as_float(total: str, accumulator: str) -> str:
    return total if accumulator == "float32" else f"tw::to_float({total})"


def _guarded(tests: Sequence[str], body: Sequence[str]) -> list[str]:
    head = f"if ({' && '.join(tests)}) {{" if tests else "{"
    return [head, *(f"  {line}" for line in body), "}"]
