"""The programs of rows that the template refuses, with reasons in words."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.rows.sizes import MOST_PART_ROWS, partial_limit
from tilewright.spaces.cuda.rows.values import computed_in
from tilewright.spaces.cuda.scalar_code import WHOLE
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.derivation.rows.passes import expressions
from tilewright.spaces.derivation.rows.view import RowOutput, Rows
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.kinds import is_integer
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.program import Operand
from tilewright.spaces.language.tree import Binary, Call, Expression, Number

MOST_ROWS = 2**31 - 2**16
"""The most rows: 32 bits must count them and those by which tiles reach beyond."""
MOST_SUMMED = 2**14
"""The most elements of sums over all rows, which the registers of a block hold."""


def why_not(rows: Rows, target: CudaTarget) -> str | None:
    """Return why kernels lack a type, a function or a size of the program, in words; else None."""
    return (
        _types(rows, target)
        or _whole_numbers(rows)
        or _functions(rows)
        or _sizes(rows)
        or _sums(rows, target)
    )


def _types(rows: Rows, target: CudaTarget) -> str | None:
    for array in (*rows.program.operands, *rows.written):
        if array.dtype not in C_TYPES:
            return f"{array.name} is {array.dtype}, which kernels have no type for"
        if array.dtype == "int64" and isinstance(array, Operand) and array.drawn is None:
            return f"{array.name} is int64, and kernels have 32 bits for what is no index"
        if array.dtype.startswith("float8") and not target.has("mma_fp8"):
            return f"{array.name} is {array.dtype}, which {target.name} does not convert"
    return None


def _whole_numbers(rows: Rows) -> str | None:
    """Return why sums of whole numbers, which must be exact, cannot be: kernels sum up floats."""
    whole = frozenset(o.name for o in rows.program.operands if o.element.is_integer)
    for pass_ in rows.plain:
        for r in pass_:
            if is_integer(r.element, whole):
                return f"{r.name} is a {r.reducer} of whole numbers; kernels reduce others"
    places = {r.name for p in rows.plain for r in p if REDUCERS[r.reducer].argument}
    for output in rows.outputs:
        if output.array.element.is_integer and not is_integer(output.value, places):
            return f"{output.array.name} is {output.array.dtype}; kernels round to no integers"
    return next(filter(None, (_why_too_large(rows, output) for output in rows.outputs)), None)


def _why_too_large(rows: Rows, output: RowOutput) -> str | None:
    """Return why an output of integers does not hold all values, or None.

    Values would have to be clipped or, if there is one for each element, rounded as floats.
    """
    element = output.array.element
    if not element.is_integer:
        return None
    _, most = element.limits
    most = min(most, EXACT) if output.place.by_column else most
    found = magnitudes(rows.program).reach(output.value)
    return f"{output.array.name} may be as large as {found}" if found > most else None


def _functions(rows: Rows) -> str | None:
    double = computed_in(rows.program) == "double"
    for node in _nodes(rows):
        if isinstance(node, Binary) and node.operator in WHOLE and not _divides(rows, node):
            return (
                f"{node} divides what kernels do not; allowed: whole numbers by numbers from 1 on"
            )
        if isinstance(node, Call) and double:
            return f"it calls {node.function}, a function on float32, among float64"
    return None


def _divides(rows: Rows, node: Binary) -> bool:
    whole = frozenset(o.name for o in rows.program.operands if o.element.is_integer)
    divisor = node.right.value if isinstance(node.right, Number) else 0.0
    return is_integer(node.left, whole) and divisor >= 1 and divisor.is_integer()


def _nodes(rows: Rows) -> Iterator[Expression]:
    bodies = [e for p in (*rows.online, *rows.plain) for e in expressions(p)]
    for body in (*bodies, *(o.value for o in rows.outputs)):
        waiting = [body]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += () if node in rows.places else node.children


def _sizes(rows: Rows) -> str | None:
    if rows.row_count > MOST_ROWS:
        return f"there are {rows.row_count} rows; at most {MOST_ROWS}"
    return None


def _sums(rows: Rows, target: CudaTarget) -> str | None:
    """Return why sums over all rows have no kernel, in words; else None."""
    if not rows.summed:
        return None
    whole = frozenset(o.name for o in rows.program.operands if o.element.is_integer)
    for output in rows.outputs:
        name = output.array.name
        if name in rows.summed and is_integer(output.value, whole):
            return f"{name} is a sum of whole numbers; kernels reduce others"
    for written in rows.written:
        if written.name in rows.summed and written.element.is_integer:
            return f"{written.name} is {written.dtype}; kernels round to no integers"
    elements = len(rows.summed) * rows.column_count
    if elements > MOST_SUMMED:
        return f"sums over all rows have {elements} elements; at most {MOST_SUMMED}"
    real = 8 if computed_in(rows.program) == "double" else 4
    bytes = ceil_div(rows.row_count, MOST_PART_ROWS) * elements * real
    most = partial_limit(target) // 4
    return f"parts of sums take {bytes} bytes; at most {most}" if bytes > most else None
