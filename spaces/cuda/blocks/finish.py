"""The end of an output tile: the epilogue is applied to sums in registers, vectors are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.cuda import scalar_math
from tilewright.spaces.cuda.abi import C_TYPES, parameters
from tilewright.spaces.cuda.blocks.implicit import PlacedBeside, PlacedOutput, Tiled
from tilewright.spaces.cuda.blocks.segments import PRELUDE, number_of, reads_tables, row_end
from tilewright.spaces.cuda.scalar_code import ScalarCode, Value
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import arguments
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.product import Beside, Written

SUM_TYPES = {"float64": "double", "float32": "float", "int32": "i32"}
"""The C types of sums by their dtype."""

AnyWritten = Written | PlacedOutput
"""An output and what is written there."""

_WHOLE = "whole_"


def sum_dtype(product: Tiled) -> str:
    """Return the dtype that sums have when they are finished: float16 ones are widened first."""
    accumulator = product.whole.accumulator
    return "float32" if accumulator == "float16" else accumulator


def why_no_finish(product: Tiled) -> str | None:
    """Return why kernels cannot finish this product's output, in words; None if they can."""
    whole = product.whole
    if whole.accumulator != "float64" or not whole.functions:
        return None
    return (
        f"the epilogue calls {', '.join(sorted(whole.functions))}; "
        "functions are float32, allowed beside float64 sums: arithmetic only"
    )


def why_no_sum(product: Tiled) -> str | None:
    """Return why kernels cannot sum up a product's whole numbers, in words; None if they can.

    Accumulators may be too small, or a dtype of an array not known.
    """
    for array in product.whole.operands:
        if array.dtype in ("int64", "uint8", "bool"):
            return f"{array.name} is {array.dtype}; allowed of whole numbers: int8, int32"
    accumulator = dtype(product.whole.accumulator)
    if not accumulator.is_integer:
        return None
    each = prod(1 << (8 * o.element.bytes - 1) for o in (product.left, product.right))
    if product.terms * each < 1 << (8 * accumulator.bytes - 1):
        return None
    kinds = f"{product.left.dtype} by {product.right.dtype}"
    return f"{product.terms} products of {kinds} may be more than {accumulator.name} holds"


def prelude(product: Tiled) -> str:
    """Return the C functions that the epilogue calls, and those that find segments of rows."""
    found = PRELUDE if reads_tables(product) else ""
    return scalar_math.prelude(product.whole.functions) + found


def signature(product: Tiled, workspace: bool = False, maps: Sequence[str] = ()) -> str:
    """Return the C parameters of an entry.

    The product's operands are called ``left``, ``right`` and ``output``, tensor maps as ``maps``
    says; operands of epilogues and further outputs get a prefix that keeps clear of C's words and
    of our names. In a batch, these are the names of one product's parts, which
    :func:`numbered_parts` declares; the parameters have another prefix.
    """
    inputs, outputs = (
        [replace(o, name=parameter_name(product, o)) for o in operands]
        for operands in (product.inputs, product.outputs)
    )
    return parameters(arguments(inputs, outputs), workspace, maps, product.is_open)


def parameter_name(product: Tiled, operand: Array) -> str:
    """Return the C name of an operand as a whole."""
    return (_WHOLE if product.batch else "") + operand_name(product, operand)


def operand_name(product: Tiled, operand: Array) -> str:
    """Return the C name of an operand, or of one product's part of it; see :func:`signature`."""
    own = {"left": product.left, "right": product.right, "output": product.output}
    return next((name for name, o in own.items() if o.name == operand.name), f"e_{operand.name}")


def numbered_parts(product: Tiled, operands: Sequence[Array], number: Index) -> list[str]:
    """Print the declarations of product ``number``'s parts of ``operands``; empty without a
    batch."""
    if not product.batch:
        return []
    lines, written = [], {output.name for output in product.outputs}
    for operand in operands:
        name = operand_name(product, operand)
        constant = "" if operand.name in written else "const "
        start = product.start(operand, number)
        place = f"{_WHOLE}{name}" + ("" if start.value == 0 else f" + {start.text}")
        lines.append(f"{constant}{C_TYPES[operand.dtype]} *const {name} = {place};")
    return lines


def batch_parts(product: Tiled) -> list[str]:
    """Print :func:`numbered_parts` of all operands that have them, for the product of the block."""
    return numbered_parts(product, product.numbered, number_of(product, "i64"))


@dataclass(frozen=True)
class Finish:
    """The code that writes sums of ``product``, in the C type of its accumulator, to its outputs.

    Tiles have ``block_rows`` x ``block_columns`` elements; only where these do not divide the
    output is an index tested: against its extent, or against the ``first`` (row, column) that no
    other tile has, if these names are given. The operand called ``fetched`` is not loaded here: the
    caller has its elements.
    """

    product: Tiled
    block_rows: int
    block_columns: int
    first: tuple[str | None, str | None] = (None, None)
    fetched: str | None = None

    @property
    def output(self) -> Array:
        """The array that is written, or the first of them."""
        return self.product.output

    @property
    def written(self) -> tuple[AnyWritten, ...]:
        """All arrays that are written, and what is written there."""
        return self.product.written

    def vector(self, width: int) -> int:
        """Return the most elements, a power of two up to ``width``, that one store may write.

        Such stores are aligned wherever the rows of outputs start.
        """
        arrays = [written.array for written in self.written]
        while width > 1 and any(
            self.product.run(array) % width or width * array.element.bytes > 16 for array in arrays
        ):
            width //= 2
        return width

    def store(
        self, row: Index, column: Index, sums: Sequence[str], elements: Sequence[str] = ()
    ) -> list[str]:
        """Print how neighbours in a row are finished and stored.

        ``sums`` are C expressions, a power of two of them. ``elements`` are those of the operand
        ``fetched``, as floats.
        """
        width = self.vector(len(sums))
        lines = []
        for start in range(0, len(sums), width):
            given = elements[start : start + width] or [""] * width
            lines += self._store(row, column + start, sums[start : start + width], given)
        return lines

    def finish(
        self,
        row: Index,
        column: Index,
        sums: Sequence[str],
        results: Sequence[str],
        elements: Sequence[str] = (),
        number: int = 0,
    ) -> list[str]:
        """Print how neighbours in a row are finished into the floats ``results``, without a store.

        They are elements of output ``number``. Those outside of it may stay as they are. For
        float32 sums. ``elements`` are those of the operand ``fetched``, as floats.
        """
        width, written = self.vector(len(sums)), self.written[number]
        lines = []
        for start in range(0, len(sums), width):
            pairs = zip(results[start : start + width], sums[start : start + width], strict=True)
            given = elements[start : start + width] or [""] * width
            numbers = [
                f"{result} = {self._number(written, total, i, width, given[i])};"
                for i, (result, total) in enumerate(pairs)
            ]
            loads = self._all_loads(row, column + start, width)
            inside = _guarded(self._load_tests(row, column + start), [*loads, *numbers])
            lines += inside if loads else numbers
        return lines

    def _store(
        self, row: Index, column: Index, sums: Sequence[str], given: Sequence[str]
    ) -> list[str]:
        width = len(sums)
        body = self._all_loads(row, column, width)
        for number, written in enumerate(self.written):
            kind = C_TYPES[written.array.dtype]
            place = f"{operand_name(self.product, written.array)} + {written.at(row, column).text}"
            finished = f"finished{number or ''}"
            values = [
                self._value(written, total, i, width, given[i]) for i, total in enumerate(sums)
            ]
            body += [
                f"const {kind} {finished}[{width}] = {{{', '.join(values)}}};",
                f"tw::store_global<{width}>({place}, {finished});",
            ]
        return _guarded(self._tests(row, column), body)

    def _tests(self, row: Index, column: Index) -> list[str]:
        """Return C tests that an element is in the output, and in the block's segment; empty if all
        are."""
        return [*self._row_tests(row), *self._column_tests(column)]

    def _row_tests(self, row: Index) -> list[str]:
        first, end = self.first[0], row_end(self.product)
        if end is None:
            return _test(row, self.product.rows, self.block_rows, first)
        return [*([f"{row.text} >= {first}"] if first else []), f"{row.text} < {end}"]

    def _column_tests(self, column: Index) -> list[str]:
        return _test(column, self.product.columns, self.block_columns, self.first[1])

    def _load_tests(self, row: Index, column: Index) -> list[str]:
        """Return C tests that there is what is loaded for an element.

        Rows are tested only if a loaded operand has them, and columns alike.
        """
        places = [each.at(index("row"), index("column")) for each in self._loaded]
        read = {name for place in places for name in place.names}
        rows = self._row_tests(row) if "row" in read else []
        return [*rows, *(self._column_tests(column) if "column" in read else [])]

    @property
    def _loaded(self) -> list[Beside | PlacedBeside]:
        return [beside for beside in self.product.beside if beside.name != self.fetched]

    def _all_loads(self, row: Index, column: Index, width: int) -> list[str]:
        return [line for each in self._loaded for line in self._loads(each, row, column, width)]

    def _loads(
        self, beside: Beside | PlacedBeside, row: Index, column: Index, width: int
    ) -> list[str]:
        """Print the declaration of ``v_<name>``: an operand's elements for ``width`` neighbours in
        a row."""
        kind, name, step = C_TYPES[beside.array.dtype], f"v_{beside.name}", beside.step(width)
        named = parameter_name if beside.whole else operand_name
        array = f"{named(self.product, beside.array)} + "
        start = array + beside.at(row, column).text
        if step == 0:
            return [f"const {kind} {name}[1] = {{tw::load_global({start})}};"]
        if step == 1 and width * beside.array.element.bytes in (1, 2, 4, 8, 16, 32):
            return [
                f"{kind} {name}[{width}];",
                f"tw::load_global<{width}>({name}, {start});",
            ]
        if step is None:
            places = [array + beside.at(row, column + i).text for i in range(width)]
        else:
            places = [f"{start} + {i * step}" for i in range(width)]
        loads = ", ".join(f"tw::load_global({place})" for place in places)
        return [f"const {kind} {name}[{width}] = {{{loads}}};"]

    @property
    def _double(self) -> bool:
        return self.product.whole.accumulator == "float64"

    def _value(self, written: AnyWritten, total: str, i: int, width: int, given: str) -> str:
        """Return C text of element ``i`` of ``width`` of an output, in its own type."""
        output = written.array.dtype
        number = self._number(written, total, i, width, given)
        if output == ("float64" if self._double else "float32"):
            return number
        if not written.is_fused and output == sum_dtype(self.product):
            return total
        return f"tw::from_float<{C_TYPES[output]}>({number})"

    def _number(self, written: AnyWritten, total: str, i: int, width: int, given: str = "") -> str:
        """Return C text of the same before it is rounded: a float, or a double of double sums."""
        x = total if self._double else _as_float(total, sum_dtype(self.product))
        if not written.is_fused:
            return x
        elements = {each.name: Value(self._element(each, i, width)) for each in self._loaded}
        if self.fetched:
            elements[self.fetched] = Value(given)
        code = ScalarCode(real="double" if self._double else "float")
        return written.value(code, Value(x), elements).text

    def _element(self, beside: Beside | PlacedBeside, i: int, width: int) -> str:
        """Return C text of the number that :meth:`_loads` has read for element ``i``."""
        element = f"v_{beside.name}[{0 if beside.step(width) == 0 else i}]"
        if self._double:
            return (
                element if beside.array.dtype == "float64" else f"double(tw::to_float({element}))"
            )
        return element if beside.array.dtype == "float32" else f"tw::to_float({element})"


def _test(position: Index, extent: int, block: int, first: str | None) -> list[str]:
    """Return C tests that a row or column is in the output and no other tile's; empty if all
    are."""
    if extent % block == 0:
        return []
    return [f"{position.text} >= {first}" if first else f"{position.text} < {extent}"]


def _as_float(total: str, accumulator: str) -> str:
    return total if accumulator == "float32" else f"tw::to_float({total})"


def _guarded(tests: Sequence[str], body: Sequence[str]) -> list[str]:
    return CUDA.when(" && ".join(tests), body) if tests else CUDA.block(*body)
