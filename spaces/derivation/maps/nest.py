"""Loops, and indices of them, through changes that leave all indices what they are."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from tilewright.spaces.algebra.atoms import Quotient
from tilewright.spaces.algebra.index import Index, total, variable

LEAST_PART = 8
"""Elements of the inner part of an axis below which a split costs more than it gives."""


@dataclass(frozen=True)
class Loop:
    """One loop of a nest, the variable ``name`` in indices."""

    name: str
    extent: int

    @property
    def index(self) -> Index:
        """The loop as an index."""
        return variable(self.name, self.extent)


@dataclass(frozen=True)
class Nest:
    """``loops``, and ``indices`` of them."""

    loops: tuple[Loop, ...]
    indices: Mapping[Hashable, Index]

    def split(self) -> Nest:
        """Split loops that quotients keep whole parts of: ``d // 64`` and ``d % 64``, say."""
        for loop in self.loops:
            for size in sorted(set(_parts(loop, self.indices.values()))):
                outer = Loop(f"{loop.name}//{size}", loop.extent // size)
                inner = Loop(f"{loop.name}%{size}", size)
                index = total([(outer.index, size), (inner.index, 1)])
                return self._replaced({loop.name: (index, (outer, inner))}).split()
        return self

    def ordered(self, *by: Hashable) -> Nest:
        """Return the loops in the order of their steps in one of the indices, of equals in the next
        one; those of one turn are left out."""
        first = [self.indices[key] for key in by]
        loops = sorted(self.loops, key=lambda x: [-index.coefficient(x.name) for index in first])
        single = {loop.name: (Index(), ()) for loop in loops if loop.extent == 1}
        return Nest(tuple(loops), self.indices)._replaced(single)

    def merged(self) -> Nest:
        """Neighbouring loops are one where every index runs through both in one go."""
        for slow, fast in zip(self.loops, self.loops[1:], strict=False):
            if all(_in_one_go(index, slow, fast) for index in self.indices.values()):
                both = Loop(fast.name, slow.extent * fast.extent)
                merged = {slow.name: (Index(), ()), fast.name: (both.index, (both,))}
                return self._replaced(merged).merged()
        return self

    def at_places(self, places: Sequence[Mapping[str, int]], keys: Collection[Hashable]) -> Nest:
        """Return the nest without loops that have values, the same ones at all ``places``: what
        ``keys`` name is there once for each, as ``key, number``."""
        values = [
            {loop.name: loop.index for loop in self.loops}
            | {name: Index(constant=value) for name, value in at.items()}
            for at in places
        ]
        kept = tuple(loop for loop in self.loops if loop.name not in places[0])
        indices: dict[Hashable, Index] = {}
        for key, index in self.indices.items():
            if key in keys:
                indices |= {(key, i): index.at(each).ordered for i, each in enumerate(values)}
            else:
                indices[key] = index
        return Nest(kept, indices)

    def numbered(self) -> Nest:
        """Loops named after their places: ``a0`` is the slowest, and there is always one."""
        if not self.loops:
            return Nest((Loop("a0", 1),), self.indices)
        loops = [Loop(f"a{i}", loop.extent) for i, loop in enumerate(self.loops)]
        pairs = zip(self.loops, loops, strict=True)
        return self._replaced({old.name: (new.index, (new,)) for old, new in pairs})

    def _replaced(self, changes: Mapping[str, tuple[Index, Sequence[Loop]]]) -> Nest:
        """Replace some loops by indices of others."""
        same = {x.name: (x.index, (x,)) for x in self.loops}
        every = {**same, **changes}
        loops = tuple(new for old in self.loops for new in every[old.name][1])
        values = {name: index for name, (index, _) in every.items()}
        return Nest(loops, {key: i.at(values).ordered for key, i in self.indices.items()})


def _in_one_go(index: Index, slow: Loop, fast: Loop) -> bool:
    outer, inner = index.step(slow.name), index.step(fast.name)
    return outer is not None and inner is not None and outer == inner * fast.extent


def _parts(loop: Loop, indices: Iterable[Index]) -> Iterator[int]:
    """Yield the sizes of parts of a loop within which some quotient never changes."""
    for quotient in (a for index in indices for a in index.atoms() if isinstance(a, Quotient)):
        factor = quotient.dividend.coefficient(loop.name)
        if factor > 0:
            common = gcd(quotient.divisor, quotient.dividend.without([loop.name]).divisor)
            size = common // factor
            whole = common % factor == 0 and loop.extent % max(size, 1) == 0
            if whole and LEAST_PART <= size < loop.extent:
                yield size
