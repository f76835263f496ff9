"""The points of inner axes as tiles: elements that threads keep in registers, step after step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.stepped.view import Group, SteppedView
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.tree import AxisValue, Read

WIDEST = 8
"""The most points side by side that a thread keeps."""


@dataclass(frozen=True)
class Points:
    """Points of inner axes of these ``extents``, which ``threads`` share: each has some vectors of
    neighbours."""

    extents: tuple[int, ...]
    threads: int

    @property
    def total(self) -> int:
        """The number of points."""
        return prod(self.extents)

    @property
    def count(self) -> int:
        """The points of a thread."""
        return ceil_div(self.total, self.threads)

    @property
    def is_whole(self) -> bool:
        """Tell whether all threads have as many points."""
        return self.total % self.threads == 0

    @property
    def vector(self) -> int:
        """The neighbours of a vector, all of which exist."""
        vector = WIDEST
        while vector > 1 and self.total % (vector * self.threads):
            vector //= 2
        return vector

    def number(self, turn: Index, part: Index) -> Index:
        """Return the number of a point of a thread; the last one comes again beyond it."""
        vector = self.vector
        return turn // vector * (vector * self.threads) + part * vector + turn % vector

    def along(self, number: Index) -> tuple[Index, ...]:
        """Return the index of a point along each axis."""
        found: list[Index] = []
        for place, extent in enumerate(self.extents):
            inner = prod(self.extents[place + 1 :])
            own = number // inner if inner > 1 else number
            found.append(own % extent if place else own)
        return tuple(found)


def axes_of(view: SteppedView, group: Group) -> tuple[str, ...]:
    """Return the inner axes of a group, in the order of its points: as its arrays have them."""
    found = group.kept or group.reduced
    for stage in group.stages:
        if kept := view.inner_of(stage.axes):
            return kept
        for read in stage.body.value_reads:
            own = inner_indices(view, read)
            if len(own) == len(found) and set(own) == set(found):
                return own
    return found


def inner_indices(view: SteppedView, read: Read) -> tuple[str, ...]:
    """Return the axes at which a stage is read along its inner ones; none of operands."""
    stage = view.stage.get(read.name)
    if stage is None:
        return ()
    inner = set(view.inner_of(stage.axes))
    at = zip(stage.axes, read.indices, strict=True)
    return tuple(i.name for axis, i in at if axis in inner and isinstance(i, AxisValue))


def check_tiles(view: SteppedView) -> None:
    """Refuse a program of which a thread would read elements that others keep."""
    for group in view.groups:
        if group.kept and group.reduced:
            name = group.stages[0].name
            raise InputError(f"{name} has a sum for each of its elements; allowed: one a lane")
        axes = axes_of(view, group)
        extents = view.program.shape(axes)
        for stage in group.stages:
            _check_order(view, stage.name, view.inner_of(stage.axes), axes)
            for read in stage.body.value_reads:
                if read.name in view.stage:
                    own = view.inner_of(view.stage[read.name].axes)
                    _check_order(view, read.name, inner_indices(view, read), axes)
                    if own and view.program.shape(own) != extents:
                        raise InputError(f"{read} is read at a part of its elements")


def _check_order(view: SteppedView, name: str, own: Sequence[str], axes: Sequence[str]) -> None:
    if own and tuple(own) != tuple(axes):
        raise InputError(
            f"{name} is read at {', '.join(own)} where threads lie along {', '.join(axes)}; "
            "allowed: each thread its own elements"
        )
