"""Copies the rows that a table chooses out of an operand, one after the other, in the order of
the product.

It is made once a call, before all else, in the workspace. Entries beyond the operand's rows lead to
the nearest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.derivation.products.splitting import Part, number_of
from tilewright.spaces.derivation.products.view import Factor, Gather
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class GatheredRows:
    """The copy, of all points of ``depth`` at each of ``rows``."""

    operand: Array
    gather: Gather
    rows: Part
    depth: tuple[Part, ...]

    @property
    def terms(self) -> int:
        """Elements of a row."""
        return prod(part.extent for part in self.depth)

    @property
    def bytes(self) -> int:
        """Of the whole copy."""
        return self.rows.extent * self.terms * self.operand.element.bytes

    @cached_property
    def offset(self) -> Index:
        """Where it has what the factor reads."""
        return number_of((self.rows, *self.depth))

    def function(self, name: str, arrays: Sequence[str], start: int, workers: int) -> list[str]:
        """C function ``name(context, worker)``: copies from the buffer of the call, one for each of
        ``arrays``, to ``start`` bytes into the workspace, its rows shared by ``workers``."""
        c_type, table = C_TYPES[self.operand.dtype], self.gather.table
        rows = self.rows.extent
        shares = spatial(workers) * repeat(ceil_div(rows, workers))
        worker = index("worker", workers)
        return [
            f"static void {name}(void *context, int worker) {{",
            "  const tw_call *call = context;",
            f"  const {c_type} *from = call->buffers[{arrays.index(self.operand.name)}];",
            f"  const int *table = call->buffers[{arrays.index(table.name)}];",
            f"  {c_type} *to = ({c_type} *)((char *)call->workspace + {start});",
            *indented(shares.emit(worker, self._copy, extents=(rows,), prefix="n")),
            "}",
        ]

    def _copy(self, at: Sequence[Index]) -> list[str]:
        (row,) = at
        assert self.gather.table.drawn is not None
        most = self.gather.table.drawn.below - 1
        return [
            f"const long entry = table[{row}] < 0 ? 0 : table[{row}];",
            f"const long source = {self.gather.step} * tw_least(entry, {most});",
            f"__builtin_memcpy(to + {(row * self.terms).text}, from + source, "
            f"{self.terms * self.operand.element.bytes});",
        ]


def why_no_gathered(factor: Factor, depth: Sequence[Part]) -> str | None:
    """Why there is no such copy of a factor, in words; None if there is, or none is needed."""
    if factor.gather is None:
        return None
    expected = 1
    for part in reversed(depth):
        if part.extent > 1 and factor.place.offset.coefficient(part.name) != expected:
            return f"rows of {factor.operand.name} are gathered; needs them side by side in memory"
        expected *= part.extent
    others = factor.place.offset.without(part.name for part in depth)
    if others.constant or {atom for atom, _ in others.terms} - {factor.gather.entry}:
        return f"rows of {factor.operand.name} are gathered; needs whole ones from its start"
    return None
