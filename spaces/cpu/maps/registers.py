"""The vectors of a map: floats that are computed with, or the bits of elements that are only moved.

Computed values are float32 in registers; arrays of two bytes are widened when they are loaded and
narrowed when they are stored. If every output is a mere copy and all elements have one size, they
stay as they are: a vector holds twice as many of half the size, and any type is served.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.vectors.moves import SMALL, TABLE_TYPES
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.vectors.words import WORD_TYPES, WORDS
from tilewright.spaces.derivation.maps.plane import Plane

LEAST_SIDE = 16
"""Bytes of the smallest vector that blocks are transposed in."""


@dataclass(frozen=True)
class Registers:
    """Vectors of ``vector_bytes`` with elements of ``bytes`` each, in ``count`` registers. Elements
    of four bytes that are only moved are treated as floats."""

    bytes: int
    vector_bytes: int
    count: int

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.vector_bytes // self.bytes

    @property
    def side(self) -> int:
        """Rows and columns of a block that is transposed in registers. Unless elements are floats,
        the block takes at most half of the registers."""
        most = max(self.count // 2, LEAST_SIDE // self.bytes)
        return self.lanes if self.bytes == FLOAT else min(self.lanes, most)

    @property
    def vector(self) -> str:
        """The C type of a vector."""
        return "vf" if self.bytes == FLOAT else "vw"

    @property
    def held(self) -> str:
        """The type of an element in a register."""
        return "float32" if self.bytes == FLOAT else WORDS[self.bytes]

    def dtype(self, stored: str) -> str:
        """Return the name by which C functions call a type in memory."""
        return stored if self.bytes == FLOAT and stored in (*C_TYPES, *SMALL) else self.held

    def c_type(self, stored: str) -> str:
        """Return the C type of elements of a type in memory."""
        found = self.dtype(stored)
        return C_TYPES.get(found) or TABLE_TYPES.get(found) or WORD_TYPES[self.bytes]


@lru_cache(maxsize=64)
def registers_of(plane: Plane, target: CpuTarget) -> Registers:
    """Return the vectors of a map's kernels."""
    return Registers(only_moved(plane) or FLOAT, target.vector_bytes, target.vector_registers)


def goes_straight(plane: Plane, registers: Registers) -> bool:
    """Tell whether blocks may go straight from registers to the output.

    They may if all there is to do is to transpose one array that has at least one whole block.
    """
    whole = min(plane.height, plane.width) >= registers.side
    alone = len(plane.view.loaded) == len(plane.transposed) == len(plane.view.outputs) == 1
    return whole and alone and only_moved(plane) is not None


def only_moved(plane: Plane) -> int | None:
    """Return the bytes of each element if nothing is computed; None if anything is, or sizes
    differ."""
    view = plane.view
    moved = all(view.moved(output) for output in range(len(view.outputs)))
    sizes = {access.array.element.bytes for access in (*view.loaded, *view.outputs)}
    return min(sizes) if moved and len(sizes) == 1 else None
