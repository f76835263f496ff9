"""Operands whose elements for neighbouring lanes lie apart in memory, such as the filters of
channels; they are transposed once for each block of lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.kept.tiling import Tiling
from tilewright.spaces.derivation.kept.held import same_in_tile, tap_index
from tilewright.spaces.derivation.kept.view import Bounded, KeptView
from tilewright.spaces.language.tree import Read

MOST_TAPS = 128
"""The most taps for which elements are held in an array on the stack."""


@dataclass(frozen=True)
class Held:
    """The elements of an access at all taps, a row of ``width`` lanes for each, in the C array
    ``name``.

    In memory, taps are adjacent and lanes are ``step`` elements apart.
    """

    name: str
    access: Bounded
    taps: int
    index: Index
    step: int
    lanes: int
    width: int

    def declared(self, where: str, columns: int) -> list[str]:
        """Return the declaration of the array and the lines that fill it from the address ``where``
        on, for ``columns`` lanes.

        They transpose blocks of as many taps as a vector has lanes; the last one begins earlier and
        overlaps the block before.
        """
        rows = round_up(max(self.taps, self.lanes), self.lanes)
        lines = [f"float {self.name}[{rows * self.width}];"]
        last = max(self.taps - self.lanes, 0)
        for lane in range(0, columns, self.lanes):
            for block in range(ceil_div(self.taps, self.lanes)):
                tap = min(block * self.lanes, last)
                lines.append(
                    f"tw_turn_{self.access.array.dtype}({where} + {lane * self.step + tap}, "
                    f"{self.step}, {columns - lane}, {self.taps - tap}, "
                    f"{self.name} + {tap * self.width + lane}, {self.width});"
                )
        return lines

    def load(self, tap: Index, vector: int) -> str:
        """Return the C text of a vector at a ``tap``, which is the tap's number."""
        return f"tw_load_float32({self.name} + {tap * self.width + vector * self.lanes})"


def has_room(view: KeptView) -> bool:
    """Tell whether elements at all taps may be transposed: they are few, and float32."""
    few = prod(loop.extent for loop in view.taps) <= MOST_TAPS
    return few and view.program.computed_in == "float32"


def held(tiling: Tiling) -> Mapping[Read, Held]:
    """Return the reads that are transposed ahead of the loop over vectors: their elements change
    neither within it nor from turn to turn of a tile."""
    view, order = tiling.view, tiling.order
    inside = order[order.index(view.lane) + 1 :]
    found: dict[Read, Held] = {}
    for read in view.element_reads if has_room(view) else ():
        access = view.reads[read]
        step = access.step(view.lane.name) or 0
        same = same_in_tile(view, access, tiling.values)
        same = same and all(access.step(loop.name) == 0 for loop in inside)
        taps = prod(loop.extent for loop in view.taps)
        index = tap_index(view, access)
        if index is not None and same:
            width = tiling.size(view.lane)
            name = f"held{len(found)}"
            found[read] = Held(name, access, taps, index, step, tiling.lanes, width)
    return found
