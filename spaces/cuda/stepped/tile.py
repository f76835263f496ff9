"""The points of inner axes as tiles: elements that threads keep in registers, step after step.

A thread makes its own elements, and reads these; those of other threads it reads in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.stepped.view import Group, SteppedView
from tilewright.spaces.language.tree import AxisValue, Read

WIDEST = 8
"""The most points side by side that a thread keeps."""


@dataclass(frozen=True)
class Points:
    """Points of inner axes of these ``extents``, which ``threads`` share: each has some vectors of
    neighbours, ``widest`` at most."""

    extents: tuple[int, ...]
    threads: int
    widest: int = WIDEST

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
        vector = self.widest
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
    if group.kept and group.reduced:
        return found
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


def crossing(view: SteppedView) -> frozenset[str]:
    """Return the names of stages of which threads read elements that others make."""
    found = set()
    for group in view.groups:
        axes = axes_of(view, group)
        for stage in group.stages:
            for read in stage.body.value_reads:
                if is_crossing(view, read, axes):
                    found.add(read.name)
    return frozenset(found)


def is_crossing(view: SteppedView, read: Read, axes: tuple[str, ...]) -> bool:
    """Tell whether a read is of another element of a stage than that which a thread makes, where
    threads lie along ``axes``."""
    stage = view.stage.get(read.name)
    if stage is None or not view.inner_of(stage.axes):
        return False
    made = next(axes_of(view, group) for group in view.groups if stage in group.stages)
    at, shape = dict(zip(stage.axes, read.indices, strict=True)), view.program.shape
    return tuple(at[axis] for axis in made) != tuple(map(AxisValue, axes)) or shape(made) != shape(
        axes
    )
