"""Choose the two loops of a nest that tiles are cut from, and classify each array in that plane.

Outputs are contiguous along ``columns``, the fastest loop. Reads that are contiguous along another
loop are transposed: ``rows`` is that loop, or one beside the columns if nothing is transposed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.view import Access, MapView
from tilewright.spaces.errors import InputError

ENOUGH_ROWS = 8
"""Turns of a loop that make a tile worth its while."""

ALONG = "along"
"""An access of this kind reads neighbouring columns that are side by side in memory."""
SAME = "same"
"""All columns have one element."""
TRANSPOSED = "transposed"
"""Neighbouring rows are side by side in memory, columns are not."""
APART = "apart"
"""Neighbouring columns are equally far apart, and rows are not side by side."""
ANYWHERE = "anywhere"
"""Each element has a place of its own."""


@dataclass(frozen=True)
class Plane:
    """A nest as planes of ``rows`` times ``columns``, one for each turn of the ``outer`` loops;
    ``rows`` is None if there is one loop only."""

    view: MapView
    outer: tuple[Loop, ...]
    rows: Loop | None
    columns: Loop

    @property
    def loops(self) -> tuple[Loop, ...]:
        """All loops, outermost first."""
        return (*self.outer, *([self.rows] if self.rows else []), self.columns)

    @property
    def height(self) -> int:
        """Rows of a plane."""
        return self.rows.extent if self.rows else 1

    @property
    def width(self) -> int:
        """Columns of a plane."""
        return self.columns.extent

    @cached_property
    def transposed(self) -> tuple[Access, ...]:
        """The reads that are contiguous along rows."""
        return tuple(a for a in self.view.loaded if self.kind(a) == TRANSPOSED)

    def row_step(self, access: Access) -> int | None:
        """Return the elements from one row to the next; None if that varies."""
        return access.step(self.rows.name) if self.rows else 0

    def column_step(self, access: Access) -> int | None:
        """Return the elements from one column to the next; None if that varies."""
        return access.step(self.columns.name)

    def kind(self, access: Access) -> str:
        """Classify an access by its place in the plane, in one of the words above."""
        match self.column_step(access):
            case None:
                return ANYWHERE
            case 0:
                return SAME
            case 1:
                return ALONG
        return TRANSPOSED if self.row_step(access) == 1 else APART


def plane_of(view: MapView) -> Plane:
    """Return the plane of a map; :class:`InputError` if its outputs have no neighbours side by
    side."""
    columns = view.loops[-1]
    for output in view.outputs:
        if columns.extent > 1 and output.step(columns.name) != 1:
            raise InputError(
                f"{output.array.name} is not written side by side along the fastest axis of "
                f"{view.outputs[0].array.name}"
            )
    rows = _rows_to_transpose(view) or _beside(view)
    outer = tuple(loop for loop in view.loops[:-1] if loop != rows)
    return Plane(view, outer, rows, columns)


def _rows_to_transpose(view: MapView) -> Loop | None:
    """Return the loop that most bytes are read side by side along, of those that step along
    columns."""
    columns = view.loops[-1].name
    stepping = [access for access in view.loaded if (access.step(columns) or 0) > 1]

    def moved(loop: Loop) -> int:
        return sum(a.array.bytes for a in stepping if a.step(loop.name) == 1)

    found = max(view.loops[:-1], key=moved, default=None)
    return found if found and moved(found) else None


def _beside(view: MapView) -> Loop | None:
    """Return the fastest of the other loops that has enough rows, or the longest of them."""
    others = view.loops[-2::-1]
    enough = (loop for loop in others if loop.extent >= ENOUGH_ROWS)
    return next(enough, max(others, key=lambda loop: loop.extent, default=None))
