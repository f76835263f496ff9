"""Reasons why programs over rows and keys have no kernels by ``mma.sync``: their arrays and
factors."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.spaces.cuda.abi import C_TYPES, FLOATS
from tilewright.spaces.cuda.chained.kinds import HALVES, rounded_further
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.dtypes import EXACT
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Expression

Product = tuple[str, tuple[Expression, ...], str]
"""The stage of a product, its factors, and the dtype that they are rounded to."""


def kind_of_factors(program: Program, factors: Iterable[Expression]) -> str | None:
    """Return the dtype in which products are multiplied: the one of 16 bits that arrays of
    ``factors`` have; None if there is none, or both."""
    kinds = _dtypes(program, factors) & set(HALVES)
    return kinds.pop() if len(kinds) == 1 else None


def why_no_array(found: RowsAndKeys) -> str | None:
    """Say why kernels read or write some array not at all; return None if they do."""
    for output in found.program.outputs:
        if output.dtype not in FLOATS:
            return f"{output.name} is {output.dtype}; allowed: {', '.join(FLOATS)}"
    for operand in found.program.operands:
        if operand.dtype not in C_TYPES or operand.dtype.startswith(("float64", "float8")):
            return f"{operand.name} is {operand.dtype}, and kernels read no such elements"
    if max(found.key.extent, found.row_count) > EXACT:
        return f"there are {found.row_count} rows and {found.key.extent} keys; allowed: {EXACT}"
    return None


def why_no_product(
    program: Program, factors: Iterable[Expression], products: Iterable[Product]
) -> str | None:
    """Say why the ``factors`` of products have no dtype to be multiplied in, or some would be
    rounded too far; return None if that is right."""
    factors = list(factors)
    if kind_of_factors(program, factors) is None:
        arrays = ", ".join(sorted(_dtypes(program, factors)))
        return f"its products are of {arrays}; needs factors of {' or '.join(HALVES)}"
    if further := rounded_further(program, products):
        return f"{further[0]} would be rounded to {further[1]}, in a product that means float32"
    return None


def _dtypes(program: Program, factors: Iterable[Expression]) -> set[str]:
    """Return the dtypes of the arrays that are factors."""
    read = {read.name for factor in factors for read in factor.reads}
    return {operand.dtype for operand in program.operands if operand.name in read}
