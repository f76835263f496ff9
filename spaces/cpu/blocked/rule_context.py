"""What the rules of a contraction judge by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product as pairs
from typing import Any, Protocol

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.abi import FLOAT
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.tiles.decisions import registers
from tilewright.spaces.workloads.packing import PANEL
from tilewright.spaces.workloads.product import Product


class Extents(Protocol):
    """How many rows and columns tiles are cut from."""

    @property
    def rows(self) -> int:
        """The most rows of a tile."""
        ...

    @property
    def columns(self) -> int:
        """The most columns of a tile."""
        ...


@dataclass(frozen=True)
class Cut:
    """Extents of what is no whole product, such as a line of it."""

    rows: int
    columns: int


@dataclass(frozen=True)
class TileContext:
    """What rules of register tiles judge by: what they are cut from, the machine, and each
    decision's values."""

    product: Extents
    target: CpuTarget
    values: Mapping[str, np.ndarray]

    @property
    def lanes(self) -> int:
        """Floats in a vector."""
        return self.target.lanes(FLOAT)

    @cached_property
    def tiles(self) -> list[tuple[int, int]]:
        """Tiles (rows, vectors) that fit the registers and the product."""
        tiles = pairs(self.values["tile_rows"].tolist(), self.values["tile_vectors"].tolist())
        inside = [(r, v) for r, v in tiles if r <= self.product.rows and v <= self.widest]
        return [(r, v) for r, v in inside if self.fits(r, v)]

    def fits(self, rows: Any, vectors: Any) -> Any:
        """Whether a tile fits in the registers."""
        return registers(rows, vectors) <= self.target.vector_registers

    @property
    def widest(self) -> int:
        """Vectors in a row of the product."""
        return int(ceil_div(self.product.columns, self.lanes))

    def before(self, name: str, value: Any) -> Any:
        """The next smaller value of a decision; 0 below the smallest."""
        known = np.concatenate([[0], self.values[name]])
        return known[np.searchsorted(self.values[name], value)]


@dataclass(frozen=True)
class Context(TileContext):
    """What all rules of plain products judge by."""

    product: Product

    @property
    def widest(self) -> int:
        """Vectors in a row of the product, or in whole panels of packed weights."""
        if not self.product.right.packed:
            return super().widest
        return round_up(self.product.columns, PANEL) // self.lanes
