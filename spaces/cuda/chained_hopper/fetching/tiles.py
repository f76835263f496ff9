"""Boxes of a chained program that TMA moves: rows or keys, and where each lies in its array.

The rows of a tile are points of one axis, such as queries, or of two if the faster one's extent
divides the 64 rows of a box: then heads that share keys are stacked. All other axes number heads.
Columns, depth or width, are cut into panels of 128 bytes, which are swizzled; TMA fills the last
one up with zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.workloads.array import Array

SLICE = 64
"""Rows of a warpgroup, which are those of a box and of one wgmma."""
PANEL_BYTES = 128
"""Bytes of a row of a panel."""
MOST_DIMENSIONS = 5


def tiled(chained: Chained) -> Chained:
    """Return the program with bare scores, its batch being all axes but those of a tile's rows.

    Axes whose heads share keys are neighbours.
    """
    parts = [part for part in chained.rows if part.extent > 1]
    stacked = len(parts) == 2 and SLICE % parts[1].extent == 0
    rows = tuple(parts if stacked else parts[-1:])
    every = (*chained.batch, *chained.rows)
    heads = tuple(part for part in every if part.extent > 1 and part not in rows)
    return replace(chained.unscaled, batch=heads, rows=rows)


def row_box(chained: Chained) -> tuple[tuple[Part, int], ...]:
    """Return the axes of a box of rows, the fastest first, each with its number of points."""
    if len(chained.rows) == 2:
        outer, inner = chained.rows
        return ((inner, inner.extent), (outer, SLICE // inner.extent))
    return (((*chained.rows, Part("1", "1", 1))[0], SLICE),)


def row_place(chained: Chained, row: str) -> list[str]:
    """Return C text of the coordinates, along columns and axes, of the box that begins at
    ``row``."""
    parts = [row] if len(chained.rows) < 2 else ["0", f"{row} / {chained.rows[1].extent}"]
    return ["0", *parts]


@dataclass(frozen=True)
class Boxes:
    """An array, moved in boxes; its element is at ``offset``.

    A box has panels of ``columns``, of all or of ``count`` of them, and points of the axes ``box``;
    the axes ``heads`` choose the rest. Calls give the extent of the ``open_axis``.
    """

    array: Array
    offset: Index
    columns: Part
    box: tuple[tuple[Part, int], ...]
    heads: tuple[Part, ...]
    count: int | None = None
    open_axis: str | None = None

    @cached_property
    def own_heads(self) -> tuple[Part, ...]:
        """The axes of heads that the array depends on, the fastest first."""
        return tuple(p for p in reversed(self.heads) if self.offset.coefficient(p.name))

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return PANEL_BYTES // self.array.element.bytes

    @property
    def panels(self) -> int:
        """Panels of a box."""
        return int(ceil_div(self.count or self.columns.extent, self.panel))

    @property
    def panel_bytes(self) -> int:
        """Bytes of a panel."""
        return prod(count for _, count in self.box) * PANEL_BYTES

    @property
    def bytes(self) -> int:
        """Bytes of a box with all its panels."""
        return self.panels * self.panel_bytes

    @property
    def tensor_map(self) -> TensorMapSpec:
        """The map of one panel."""
        parts = [*(part for part, _ in self.box), *self.own_heads]
        counts = [*(count for _, count in self.box), *(1 for _ in self.own_heads)]
        size = self.array.element.bytes
        is_open = [False, *(part.axis == self.open_axis for part in parts)]
        return TensorMapSpec(
            self.array.name,
            self.array.dtype,
            (self.columns.extent, *(part.extent for part in parts)),
            tuple(self._step(part) * size for part in parts),
            (self.panel, *counts),
            PANEL_BYTES,
            open=is_open.index(True) if any(is_open) else None,
        )

    def _step(self, part: Part) -> int:
        """Return the elements from point to point of an axis; if it has one point, any legal
        number."""
        return self.offset.coefficient(part.name) if part.extent > 1 else SLICE

    def why_not(self) -> str | None:
        """Return why TMA cannot move the boxes, in words; None if it can."""
        name, size = self.array.name, self.array.element.bytes
        if self.offset.compound or self.offset.constant:
            where = f"{name} is read at {self.offset.formula}"
            return f"{where}; TMA moves boxes of steps from its start"
        if self.columns.extent > 1 and self.offset.coefficient(self.columns.name) != 1:
            return f"{name} does not run along {self.columns.name} in memory"
        parts = [*(part for part, _ in self.box), *self.own_heads]
        for part in parts:
            if self._step(part) * size % 16 or self._step(part) <= 0:
                return (
                    f"{name} is {self._step(part) * size} bytes apart along {part.name}; "
                    "TMA needs a multiple of 16"
                )
        if 1 + len(parts) > MOST_DIMENSIONS:
            return f"{name} has {1 + len(parts)} dimensions; TMA takes {MOST_DIMENSIONS}"
        return None

    def _call(self, kind: str, panel: int, at: Sequence[str], names: Mapping[str, str]) -> str:
        heads = [names[part.name] for part in self.own_heads]
        column, *rest = at
        places = ", ".join([f"{column} + {panel * self.panel}", *rest, *heads])
        return f"tw::tma_{kind}_{1 + len(self.box) + len(heads)}d({{}}, {places});"

    def load(
        self, to: str, name: str, barrier: str, at: Sequence[str], names: Mapping[str, str]
    ) -> list[str]:
        """Print how one thread loads a box by the map ``name_map``.

        ``at`` are its coordinates along columns and axes; ``names`` are the C variables of heads'
        axes.
        """
        return [
            self._call("load", panel, at, names).format(
                f"{to} + {panel * self.panel_bytes}, &{name}_map, {barrier}"
            )
            for panel in range(self.panels)
        ]

    def store(
        self, name: str, source: str, at: Sequence[str], names: Mapping[str, str]
    ) -> list[str]:
        """Print how one thread stores a box."""
        return [
            self._call("store", panel, at, names).format(
                f"&{name}_map, {source} + {panel * self.panel_bytes}"
            )
            for panel in range(self.panels)
        ]
