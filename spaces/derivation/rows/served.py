"""Which programs had better not be computed as rows, whatever the target."""

from __future__ import annotations

from spaces.derivation.products.roles import roles_of
from spaces.language.program import Program


def why_product(program: Program) -> str | None:
    """Where it multiplies matrices, in words; None if nowhere: rows read the factors of a product
    again for each of its elements."""
    for stage in program.stages:
        found = roles_of(program, stage)
        if isinstance(found, str):
            continue
        shared = [part.name for part in found.columns if part.extent > 1]
        if shared and any(part.extent > 1 for part in found.rows):
            return f"{stage.name} is a product of matrices with columns {', '.join(shared)}"
    return None
