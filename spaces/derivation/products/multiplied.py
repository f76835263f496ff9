"""The products of matrices in a program, and the dtypes in which it multiplies."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.spaces.derivation.products.roles import Roles, roles_of
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.language.program import Program


def matrix_products(program: Program) -> Iterator[Roles]:
    """List a program's sums of products that have rows and columns."""
    for stage in program.stages:
        found = roles_of(program, stage)
        if not isinstance(found, str) and _is_long(found.rows) and _is_long(found.columns):
            yield found


def multiplied_dtypes(program: Program) -> tuple[str, ...]:
    """Return the dtypes of the operands that factors of products are made of; none where there are
    no products, or other sums are multiplied."""
    sides = (side for found in matrix_products(program) for side in (found.left, found.right))
    reads = [read for side in sides for read in side.value_reads]
    if any(read.name not in program.operand for read in reads):
        return ()
    return tuple(dict.fromkeys(program.operand[read.name].dtype for read in reads))


def _is_long(parts: tuple[Part, ...]) -> bool:
    return any(part.extent > 1 for part in parts)
