"""A copy of the rows that a table chooses from an operand, in the order of the product.

It is made once a call, before the product, in the workspace. An entry outside of the operand's rows
is clamped to the nearest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.windows.copies.shared import SharedCopy
from tilewright.spaces.derivation.products.splitting import Part, number_of
from tilewright.spaces.derivation.products.view import Factor, Gather
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class GatheredRows(SharedCopy):
    """A copy with all points of ``depth`` for each of ``rows``, whose sources ``gather`` gives."""

    gather: Gather
    rows: Part
    depth: tuple[Part, ...]

    @property
    def length(self) -> int:
        """The number of elements of a row."""
        return prod(part.extent for part in self.depth)

    @cached_property
    def offset(self) -> Index:
        """The offset in the copy of the element that the factor reads."""
        return number_of((self.rows, *self.depth))

    @property
    def lines(self) -> int:
        """The number of rows of the product."""
        return self.rows.extent

    @property
    def table(self) -> Array:
        """The table that chooses rows."""
        return self.gather.table

    def copied(self, at: Sequence[Index]) -> list[str]:
        """Return the C text that copies one row."""
        (row,) = at
        assert self.gather.table.drawn is not None
        most = self.gather.table.drawn.below - 1
        return [
            f"const long entry = table[{row}] < 0 ? 0 : table[{row}];",
            f"const long source = {self.gather.step} * tw_least(entry, {most});",
            f"__builtin_memcpy(to + {(row * self.length).text}, from + source, "
            f"{self.length * self.operand.element.bytes});",
        ]


def why_no_gathered(factor: Factor, depth: Sequence[Part]) -> str | None:
    """Say why a factor has no such copy; return None if it has one, or needs none."""
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
