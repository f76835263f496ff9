"""Tiles that have columns of two factors, as TMA loads them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.spaces.cuda.hopper.places import placed_tile
from tilewright.spaces.cuda.hopper.tile import MatrixTile, OperandTile
from tilewright.spaces.cuda.hopper_pairs.product import PairedProduct
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.language.program import Operand


@dataclass(frozen=True)
class PairTile(OperandTile):
    """Tiles of two factors with equal layouts: one ``half`` of the columns of each."""

    half: MatrixTile
    twin: Operand

    @property
    def runs_deep(self) -> bool:
        """True if the depth has stride 1."""
        return self.half.runs_deep

    @property
    def swizzle(self) -> int:
        """Bytes of a swizzled row."""
        return self.half.swizzle

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The map of one load of the first factor."""
        return self.half.tensor_map

    @property
    def further_maps(self) -> dict[str, TensorMapSpec]:
        """The map of one load of the other factor, by its name."""
        return {"twin_map": replace(self.tensor_map, operand=self.twin.name)}

    def load(
        self, to: str, tensor_map: str, barrier: str, start: str, depth: str, priority: str = ""
    ) -> list[str]:
        """Print how one thread loads both halves, by the maps ``tensor_map`` and ``twin_map``."""
        behind = f"{to} + {self.half.bytes}"
        return [
            *self.half.load(to, tensor_map, barrier, start, depth, priority),
            *self.half.load(behind, "twin_map", barrier, start, depth, priority),
        ]


def pair_tile(product: PairedProduct, size: int, depth_bytes: int, sharers: int) -> PairTile:
    """Return the tiles of the right factors of a pair; see :class:`OperandTile`."""
    half = placed_tile(product, 1, size // 2, depth_bytes, sharers)
    assert isinstance(half, MatrixTile)
    return PairTile(product.right, size, depth_bytes, sharers, half, product.twin)
