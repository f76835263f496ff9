"""The facts that the rules of a product read: extents, the machine, and the values of decisions."""

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
    """The rows and columns that tiles are cut from."""

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
    """Extents of a part of a product, such as one of its lines."""

    rows: int
    columns: int


@dataclass(frozen=True)
class TileContext:
    """The facts for rules of register tiles: what tiles are cut from, the machine, and the values
    of each decision."""

    product: Extents
    target: CpuTarget
    values: Mapping[str, np.ndarray]

    @property
    def lanes(self) -> int:
        """The number of floats in a vector."""
        return self.target.lanes(FLOAT)

    @cached_property
    def tiles(self) -> list[tuple[int, int]]:
        """The tiles (rows, vectors) that fit the registers and the product."""
        tiles = pairs(self.values["tile_rows"].tolist(), self.values["tile_vectors"].tolist())
        inside = [(r, v) for r, v in tiles if r <= self.product.rows and v <= self.widest]
        return [(r, v) for r, v in inside if self.fits(r, v)]

    def fits(self, rows: Any, vectors: Any) -> Any:
        """Tell whether a tile fits in the registers."""
        return registers(rows, vectors) <= self.target.vector_registers

    @property
    def widest(self) -> int:
        """The number of vectors in a row of the product."""
        return int(ceil_div(self.product.columns, self.lanes))

    def before(self, name: str, value: Any) -> Any:
        """Return the next smaller value of a decision, or 0 for the smallest one."""
        known = np.concatenate([[0], self.values[name]])
        return known[np.searchsorted(self.values[name], value)]


@dataclass(frozen=True)
class Context(TileContext):
    """The facts for the rules of plain products."""

    product: Product

    @property
    def widest(self) -> int:
        """The number of vectors in a row of the product, or in whole panels of packed weights."""
        if not self.product.right.packed:
            return super().widest
        return round_up(self.product.columns, PANEL) // self.lanes
