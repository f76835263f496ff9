"""Points within tiles of kept loops: indices there, what they reach, and where borders begin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tilewright.spaces.algebra.atoms import Variable
from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.kept.view import KeptView
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.products.addresses import Bound

Ranges = Mapping[str, tuple[int, int]]
"""The least and the greatest turn of each loop that code is for."""


def moved(index: Index, by: Mapping[str, int], constants: Collection[str] = ()) -> Index:
    """Return an index some turns further on; ``constants`` are loops at turn 0."""
    further = sum([index.coefficient(loop) * n for loop, n in by.items() if n])
    return index.without(constants) + further


def reach(index: Index, ranges: Ranges) -> tuple[int, int]:
    """Return the least and the greatest value of an index of loops."""
    low = high = index.constant
    for loop, factor in index.terms:
        assert isinstance(loop, Variable)
        ends = [factor * end for end in ranges[loop.text]]
        low, high = low + min(ends), high + max(ends)
    return low, high


@dataclass(frozen=True)
class Segment:
    """Blocks of a loop from ``first`` to before ``end``, each of ``size`` turns."""

    first: int
    end: int
    size: int

    @property
    def count(self) -> int:
        """The number of blocks."""
        return self.end - self.first


def segments(view: KeptView, loop: Loop, size: int) -> list[Segment]:
    """Return the blocks of ``size`` turns of a loop: those at a border, those in which no bound
    that the loop decides can fail, those at the other border, and what is left of a block."""
    full = loop.extent // size
    low, high = _inner(view, loop)
    begin = min(ceil_div(low, size), full)
    end = max(begin, min(high // size, full))
    parts = [Segment(0, begin, size), Segment(begin, end, size), Segment(end, full, size)]
    parts.append(Segment(full, ceil_div(loop.extent, size), loop.extent % size))
    return [part for part in parts if part.count]


def _inner(view: KeptView, loop: Loop) -> tuple[int, int]:
    """Return the turns at which all bounds of the loop hold, whatever the other loops are at."""
    low, high = 0, loop.extent
    for bound in _bounds(view):
        if factor := bound.index.coefficient(loop.name):
            least, most = reach(moved(bound.index, {}, [loop.name]), _all(view))
            if factor > 0:
                low = max(low, ceil_div(-least, factor))
                high = min(high, (bound.extent - 1 - most) // factor + 1)
            else:
                low = max(low, ceil_div(most - bound.extent + 1, -factor))
                high = min(high, least // -factor + 1)
    return low, max(low, high)


def _bounds(view: KeptView) -> Iterator[Bound]:
    return (bound for access in view.reads.values() for bound in access.bounds)


def _all(view: KeptView) -> Ranges:
    return {name: (0, extent - 1) for name, extent in view.extents.items()}
