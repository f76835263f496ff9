"""A product of placed operands as sums over windows: some axes count windows, others their taps.

A row axis and a depth axis make windows if the left operand has the same step along both, in every
index: then neighbouring windows share all elements but one. Rows are cut into squares of
``outputs`` x ``outputs`` neighbours along two such axes; the rest of the depth are channels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.windows.copies.padded import PaddedCopy, bordered_copy
from tilewright.spaces.cpu.windows.nest import LEFT, OUTPUT, RIGHT, Key, Turns
from tilewright.spaces.derivation.products.loops import Loop, loops
from tilewright.spaces.derivation.products.short_windows import (
    MOST_READS,
    ShortWindows,
    short_windows,
)
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import PlacedProduct

LEAST_OUTPUTS = 2


@dataclass(frozen=True)
class WindowAxis:
    """One axis of windows: ``windows`` counts them, ``taps`` their elements."""

    windows: Part
    taps: Part


@dataclass(frozen=True)
class SquareWindows:
    """A product whose rows have windows along two ``axes``, with as many taps each."""

    product: PlacedProduct
    axes: tuple[WindowAxis, WindowAxis]
    channels: Turns
    column: Turns

    @property
    def taps(self) -> int:
        """The number of taps along each axis."""
        return self.axes[0].taps.extent

    @property
    def filter_steps(self) -> tuple[int, int]:
        """Elements of the right operand from one tap to the next, along each axis."""
        first, second = (
            self.product.right.place.offset.coefficient(a.taps.name) for a in self.axes
        )
        return first, second

    @property
    def transposed(self) -> bool:
        """True if the right operand has adjacent channels, and no adjacent columns."""
        return self.channels.strides[RIGHT] == 1 != self.column.strides[RIGHT]

    def squares(self, outputs: int) -> Squares:
        """Return the rows in squares of so many outputs along each axis."""
        return _squares(self, outputs)

    def square_count(self, outputs: int) -> int:
        """Return the number of squares of so many outputs along each axis."""
        cut = {axis.windows for axis in self.axes}
        return prod(
            ceil_div(part.extent, outputs) if part in cut else part.extent
            for part in self.product.rows
        )


@dataclass(frozen=True)
class Squares:
    """Rows, cut into squares.

    ``loops`` count the squares, the slowest first, and ``axes`` are the ranks among them of the two
    axes of windows. ``copy`` is the padded copy that windows are read from, if they are not read
    from the left operand itself: squares at its end reach further than it does.
    """

    view: SquareWindows
    short: ShortWindows
    copy: PaddedCopy | None
    loops: tuple[Turns, ...]
    axes: tuple[int, int]
    places: Mapping[Key, Index]

    @property
    def count(self) -> int:
        """The number of squares."""
        return prod(loop.extent for loop in self.loops)

    @property
    def steps(self) -> tuple[int, int]:
        """Elements from one window to the next along each axis, in the array that windows are read
        from."""
        first, second = (self.places[LEFT].coefficient(a.taps.name) for a in self.view.axes)
        return first, second


@lru_cache(maxsize=64)
def square_windows_of(product: PlacedProduct) -> SquareWindows | str:
    """Return the view of a product, or the reason why it has none, in words."""
    axes = [
        WindowAxis(row, depth)
        for depth in product.depth
        for row in product.rows
        if 1 < depth.extent <= MOST_READS - 1 and _step_alike(product, row, depth)
    ]
    if len(axes) != 2 or len({a.windows for a in axes}) != 2:
        return (
            f"{product.left.operand.name} has windows of 2 to {MOST_READS - 1} neighbours, one row "
            f"apart, along {len(axes)} axes; needs two"
        )
    first, second = axes
    if first.taps.extent != second.taps.extent:
        return f"windows are {first.taps.extent} x {second.taps.extent}; needs as many both ways"
    places = _places(product, product.left.place.offset)
    taps = (first.taps, second.taps)
    rest = [part for part in product.depth if part not in taps and part.extent > 1]
    channels = loops(rest, places)
    columns = loops(product.columns, places)
    if len(rest) != 1 or channels[0].strides[LEFT] != 1:
        return f"{product.left.operand.name} has no channels along one axis, side by side"
    if len(columns) != 1:
        return "columns lie in several runs; needs them equally far apart in all arrays"
    return SquareWindows(product, (first, second), channels[0], columns[0])


def _step_alike(product: PlacedProduct, row: Part, depth: Part) -> bool:
    """Tell whether a step along either axis leads to the same element."""
    steps = [(i.coefficient(row.name), i.coefficient(depth.name)) for i in product.left.indices]
    return all(a == b for a, b in steps) and any(a for a, _ in steps)


def _places(product: PlacedProduct, left: Index) -> dict[Key, Index]:
    found: dict[Key, Index] = {LEFT: left, RIGHT: product.right.place.offset}
    found[OUTPUT] = product.offset
    return found | {read: place.offset for read, place in product.places.items()}


@lru_cache(maxsize=256)
def _squares(view: SquareWindows, outputs: int) -> Squares:
    product = view.product
    cut = [axis.windows for axis in view.axes]
    whole = [replace(part, extent=round_up(part.extent, outputs)) for part in cut]
    copy = bordered_copy(product.left, whole)
    places = _places(product, copy.offset if copy else product.left.place.offset)
    counted = []
    for part in product.rows:
        step = outputs if part in cut else 1
        strides = {key: step * i.coefficient(part.name) for key, i in places.items()}
        counted.append(Loop(ceil_div(part.extent, step), strides))
    first, second = (product.rows.index(part) for part in cut)
    return Squares(
        view=view,
        short=short_windows(outputs, view.taps),
        copy=copy,
        loops=tuple(counted),
        axes=(first, second),
        places=places,
    )
