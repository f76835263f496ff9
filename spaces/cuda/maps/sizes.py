"""Extents and resources of maps: planes cut into tiles, tiles shared by the threads of a block.

Sizes are integers or, element by element, NumPy arrays of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.occupancy import SECTOR
from tilewright.spaces.cuda.target import VECTOR_BYTES, WARP
from tilewright.spaces.decided import Decided
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.plane import ALONG, Plane
from tilewright.spaces.derivation.maps.view import Access

LINE_BYTES = 128
"""Bytes of a line of memory.

The lanes of a warp write as many side by side, if their tile is as wide.
"""
FEW_TURNS = 4
"""The most turns of a loop that a block may do by itself."""
TILE, LINE = "tile", "line"
"""Values of the decision ``lanes``: lanes begin at the first element of the tile, or of a line.

Where lanes begin with a line of memory, no other warp has a part of it; elements of the tile before
the line come last.
"""


@dataclass(frozen=True)
class MapSizes:
    """Tiles of ``plane`` under the decisions ``values`` (integers or arrays)."""

    plane: Plane
    values: Mapping[str, Any]

    rows = Decided("tile_rows")
    """Rows of a tile."""
    columns = Decided("tile_columns")
    """Columns of a tile."""
    threads = Decided()
    vector = Decided()
    """Neighbouring columns that a thread computes, and rows of transposed arrays that it reads."""

    @property
    def counts(self) -> tuple[Any, ...]:
        """Turns of the outer loops that blocks share, then tiles along rows and columns."""
        return (
            *(loop.extent for loop in shared_loops(self.plane)),
            ceil_div(self.plane.height, self.rows),
            ceil_div(self.plane.width, self.columns),
        )

    @property
    def tiles(self) -> Any:
        """Blocks of the grid."""
        return prod(self.counts)

    @property
    def lane_columns(self) -> Any:
        """Lanes of a warp side by side along columns.

        As many as write a line, or more if there are too few rows for the others.
        """
        bytes = max(output.array.element.bytes for output in self.plane.view.outputs)
        wanted = np.maximum(LINE_BYTES // (self.vector * bytes), 1)
        least = np.maximum(WARP // self.rows, 1)
        return np.minimum(np.maximum(wanted, least), np.minimum(WARP, self.columns // self.vector))

    @property
    def chunks(self) -> Any:
        """Vectors of columns that a thread computes."""
        return self.rows * self.columns // (self.vector * self.threads)

    @property
    def transposed_bytes(self) -> int:
        """Bytes of all transposed arrays for one point of a tile."""
        return sum(access.array.element.bytes for access in self.plane.transposed)

    @property
    def shared_bytes(self) -> Any:
        """Bytes of shared memory of a block: a tile of each transposed array."""
        return self.rows * self.columns * self.transposed_bytes

    @property
    def thread_bytes(self) -> Any:
        """Bytes of all arrays for the points of a thread."""
        view = self.plane.view
        bytes = sum(a.array.element.bytes for a in (*view.loaded, *view.outputs))
        turns = prod(loop.extent for loop in loops_inside(self.plane))
        return self.rows * self.columns // self.threads * bytes * turns


def loops_inside(plane: Plane) -> tuple[Loop, ...]:
    """Return the outer loops of few turns whose turns read the same elements in another order.

    Halves that are rotated against each other do so: a block does all turns, and reads once.
    """
    if plane.transposed:
        return ()
    return tuple(
        loop
        for loop in plane.outer
        if loop.extent <= FEW_TURNS and any(a.step(loop.name) is None for a in plane.view.loaded)
    )


def shared_loops(plane: Plane) -> tuple[Loop, ...]:
    """Return the outer loops whose turns blocks share."""
    inside = loops_inside(plane)
    return tuple(loop for loop in plane.outer if loop not in inside)


def width(plane: Plane, access: Access, most: int) -> int:
    """Return the most elements up to ``most``, a power of two, that are moved at once.

    Such accesses are aligned wherever a vector of columns begins, or of rows for transposed arrays.
    """
    widest = min(most, VECTOR_BYTES // access.array.element.bytes)
    while any(step % widest for step in _steps(plane, access)):
        widest //= 2
    return widest


def _steps(plane: Plane, access: Access) -> tuple[int, ...]:
    """Return numbers of whose multiples the places are at which neighbours may begin."""
    loop = plane.columns if plane.kind(access) == ALONG or access in plane.view.outputs else None
    loop = loop or plane.rows
    rest = access.offset.without([loop.name] if loop else [])
    return (*(factor for _, factor in rest.terms), rest.constant)


def splits_sectors(plane: Plane, access: Access) -> bool:
    """Return true if elements side by side of ``access`` may begin within a sector of memory.

    That matters only in planes with a transpose, and is known only for places that loops alone
    determine.
    """
    whole = SECTOR // access.array.element.bytes
    known = not access.offset.compound
    return bool(plane.transposed) and known and any(s % whole for s in _steps(plane, access))


def has_lines(plane: Plane) -> bool:
    """Return true if it makes a difference where lanes begin."""
    return any(
        splits_sectors(plane, access) for access in (*plane.transposed, plane.view.outputs[0])
    )


def widest(plane: Plane) -> int:
    """Return the longest vector by which some array is moved."""
    moved = (*plane.transposed, *plane.view.outputs)
    moved += tuple(a for a in plane.view.loaded if plane.kind(a) == ALONG)
    return max(width(plane, access, VECTOR_BYTES) for access in moved)
