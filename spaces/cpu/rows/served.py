"""The programs that have kernels of rows on a CPU, and reasons why others have none."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2, prod

from tilewright.spaces.cpu.vectors import doubles
from tilewright.spaces.cpu.vectors.moves import SMALL, TABLE_TYPES
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.derivation.rows.column_sums import SummedRows, summed_rows_of
from tilewright.spaces.derivation.rows.passes import expressions
from tilewright.spaces.derivation.rows.served import why_product
from tilewright.spaces.derivation.rows.view import RowOutput, Rows
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.kinds import is_integer
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression, Read
from tilewright.spaces.workloads.workload import Workload

ELEMENTS = {"float32": FLOATS, "float64": ("float64", "float32")}
"""The types that elements may have in memory, by the type that they have in registers."""
MOST_COLUMNS = 2**31 - 1


def why_no_rows(workload: Workload) -> str | None:
    """Say why a workload has no kernel of rows; return None if it has one."""
    try:
        rows = summed_rows_of(workload.program)
    except InputError as reason:
        return str(reason)
    if rows.is_map:
        return "nothing is reduced"
    return why_not_computed(workload, rows)


def why_not_computed(workload: Workload, rows: SummedRows) -> str | None:
    """Say why kernels of rows cannot compute a workload that is these ``rows``; None if they
    can."""
    reasons = (
        why_product(rows.program),
        _why_no_array(rows, ELEMENTS[workload.accumulator]),
        _why_no_place(rows),
        _why_no_value(rows, ELEMENTS[workload.accumulator]),
        doubles.why_no_function(workload.accumulator, workload.functions),
    )
    return next((reason for reason in reasons if reason), None)


def row_expressions(rows: Rows) -> Iterator[Expression]:
    """Yield all expressions that kernels may compute."""
    for pass_ in (*rows.online, *rows.plain):
        yield from expressions(pass_)
    yield from (output.value for output in rows.outputs)


def is_place(output: RowOutput, rows: Rows) -> bool:
    """Tell whether an output is the place that an ``argmax`` or ``argmin`` finds."""
    return isinstance(output.value, Read) and output.value.name in rows.ranks


def _why_no_array(rows: SummedRows, floats: tuple[str, ...]) -> str | None:
    for total in rows.sums:
        if total.dtype not in floats:
            return _dtype_reason(total.name, total.dtype, floats)
    for output in rows.outputs:
        allowed: tuple[str, ...] = ("int32", "int64") if is_place(output, rows) else floats
        if output.array.dtype not in allowed:
            return _dtype_reason(output.array.name, output.array.dtype, allowed)
    for read in rows.places:
        array = rows.program.operand[read.name]
        allowed = _values(floats) if array.drawn is None else tuple(TABLE_TYPES)
        if array.dtype not in allowed:
            return _dtype_reason(array.name, array.dtype, allowed)
    return None


def _why_no_place(rows: Rows) -> str | None:
    if rows.column_count > MOST_COLUMNS:
        return f"a row has {rows.column_count} elements; allowed: up to {MOST_COLUMNS}"
    extents = [span.extent for span in rows.columns]
    steps = tuple(
        prod(extents[i + 1 :]) if span.names else 0 for i, span in enumerate(rows.columns)
    )
    for name, ranks in rows.ranks.items():
        if ranks != steps:
            return f"{name} counts places in another order than that of memory"
    return None


def _why_no_value(rows: Rows, floats: tuple[str, ...]) -> str | None:
    for node in (part for expression in row_expressions(rows) for part in expression.values()):
        operand = rows.program.operand.get(node.name) if isinstance(node, Read) else None
        if operand and operand.dtype not in _values(floats):
            return f"{node} is a whole number"
    small = _small(rows)
    if small and magnitudes(rows.program).need_integers(row_expressions(rows)):
        return f"what is made of {', '.join(sorted(small))} may be beyond {EXACT}"
    return _why_no_sum(rows, small)


def _values(floats: tuple[str, ...]) -> tuple[str, ...]:
    """Return the types that elements may have: with float32, also whole numbers that it holds
    exactly."""
    return (*floats, *SMALL) if floats == FLOATS else floats


def _small(rows: Rows) -> frozenset[str]:
    """Return the operands of whole numbers that are read as floats."""
    return frozenset(o.name for o in rows.program.operands if o.dtype in SMALL and o.drawn is None)


def _why_no_sum(rows: Rows, small: frozenset[str]) -> str | None:
    """Say why a sum or product of whole numbers may be inexact in floats; return None if all are
    exact."""
    known, count = magnitudes(rows.program), rows.column_count
    for r in (reduction for pass_ in rows.plain for reduction in pass_):
        if r.reducer in ("sum", "prod") and is_integer(r.element, small):
            most = max(1, known.of(r.element))
            bits = log2(most * count) if r.reducer == "sum" else log2(most) * count
            if bits > log2(EXACT):
                return f"{r.name} is a {r.reducer} of whole numbers that may go beyond {EXACT}"
    return None


def _dtype_reason(name: str, dtype: str, allowed: tuple[str, ...]) -> str:
    return f"{name} is {dtype}; allowed: {', '.join(allowed)}"
