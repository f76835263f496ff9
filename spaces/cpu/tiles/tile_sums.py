"""The sums of a register tile in memory, to which its accumulators are added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.layout import Strided

Task = tuple[str, int, int]
"""An accumulator, its row, and its first column."""


@dataclass(frozen=True)
class TileSums:
    """The sums of a tile with so many ``columns``, laid out as ``layout`` from ``s`` on.

    If ``excess`` is not 0, so many elements behind each sum is the amount by which rounding has
    made it too great, as Kahan keeps it ("Further remarks on reducing truncation errors", CACM 8,
    1965).
    """

    layout: Strided
    columns: int
    lanes: int
    excess: int

    def stored(self, tasks: Sequence[Task], accumulate: str) -> list[str]:
        """Return the lines that store all accumulators, added to the sums there if ``accumulate``
        holds."""
        return [
            f"  if ({accumulate}) {{",
            *(f"    {line}" for task in tasks for line in self._accumulated(*task)),
            "  }",
            *(f"  {self._access('store', i, j, c)};" for c, i, j in tasks),
            *(self._cleared(tasks, accumulate) if self.excess else []),
        ]

    def _accumulated(self, c: str, row: int, column: int) -> list[str]:
        old = self._access("load", row, column)
        if not self.excess:
            return [f"{c} += {old};"]
        known = self._access("load", row, column, excess=True)
        found = f"(vf)(((e{c} - e{c}) == (vf){{0}}) & (vi)e{c})"  # none of an infinite sum
        return [
            f"const vf o{c} = {old}, y{c} = {c} - {known};",
            f"{c} = o{c} + y{c};",
            f"const vf e{c} = ({c} - o{c}) - y{c};",
            f"{self._access('store', row, column, found, excess=True)};",
        ]

    def _cleared(self, tasks: Sequence[Task], accumulate: str) -> list[str]:
        stores = [self._access("store", i, j, "(vf){0}", excess=True) for _, i, j in tasks]
        return [f"  if (!({accumulate})) {{", *(f"    {store};" for store in stores), "  }"]

    def _access(
        self, verb: str, row: int, column: int, value: str = "", excess: bool = False
    ) -> str:
        """Return a load from, or a store to, the sums or their excess, of as many lanes as there
        are."""
        left = self.columns - column
        place = self.layout.offset(row, column) + self.excess * excess
        arguments = [f"s + {place}", *filter(None, [value])]
        if left < self.lanes:
            return f"tw_{verb}_first_float32({', '.join([*arguments, str(left)])})"
        return f"tw_{verb}_float32({', '.join(arguments)})"
