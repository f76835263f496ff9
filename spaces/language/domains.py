"""Domains of single reductions, as axes of their own that conditions of the program bound.

``sum[j: j <= i](x[j])`` reduces the elements at which its condition holds. Where every reduction
over the axes that a condition names has it, it is a condition of the program. Otherwise the
reduction gets axes of its own, of the same extents, which no other one is over: the same program
as one that was written with more axes, so it has the same digest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeVar

from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import AxisValue, Comparison, Expression

T = TypeVar("T", bound=Expression)
Conditions = tuple[Comparison, ...]
Key = tuple[frozenset[Comparison], frozenset[str]]
Domains = Mapping[str, Conditions]
"""The conditions of single reductions, by the names of their stages."""


@dataclass(frozen=True)
class Bounded:
    """Stages over axes, and the conditions that bound every reduction over an axis they name."""

    extents: Mapping[str, int]
    stages: tuple[Stage, ...]
    conditions: Conditions


def bounded(given: Bounded, domains: Domains, taken: Collection[str]) -> Bounded:
    """Return the same stages without ``domains``: of conditions of the program alone. No new axis
    has a name that is ``taken``."""
    if not any(domains.values()):
        return given
    shared = (*given.conditions, *_shared(given, domains))
    whole = replace(given, conditions=tuple(dict.fromkeys(shared)))
    own = {name: tuple(c for c in d if c not in whole.conditions) for name, d in domains.items()}
    return _Renaming(whole, own, taken).made()


def _shared(given: Bounded, domains: Domains) -> Iterator[Comparison]:
    """Yield the conditions that all reductions have over the axes that they name."""
    for condition in dict.fromkeys(c for conditions in domains.values() for c in conditions):
        over = [s for s in given.stages if not condition.axes.isdisjoint(s.over)]
        if all(condition in domains.get(stage.name, ()) for stage in over):
            yield condition


@dataclass
class _Renaming:
    """Gives reductions that ``own`` has conditions of axes that no other reduction is over."""

    given: Bounded
    own: Domains
    taken: Collection[str]
    _names: dict[tuple[Key, str], str] = field(default_factory=dict)

    def made(self) -> Bounded:
        """Return the stages over their axes, and all conditions."""
        reduced = {axis for stage in self.given.stages for axis in stage.over}
        renamed = {s.name: self._renamed(s, reduced) for s in self.given.stages}
        busy = {
            axis
            for stage in self.given.stages
            for axis in (*stage.axes, *stage.over)
            if axis not in renamed[stage.name]
        }
        extents = dict(self.given.extents)
        stages: list[Stage] = []
        own: dict[Comparison, None] = {}
        for stage in self.given.stages:
            changed = renamed[stage.name]
            key = frozenset(self._bounding(stage)), changed
            own_axes = (axis for axis in (*stage.axes, *stage.over) if axis in changed)
            names = {axis: self._name((key, axis), busy, extents) for axis in own_axes}
            stages.append(_over(stage, names))
            if names:
                own |= dict.fromkeys(_at(c, names) for c in self._bounding(stage))
        kept = [s for s in self.given.stages if not renamed[s.name]]
        whole = [
            c for c in self.given.conditions if any(not c.axes.isdisjoint(s.over) for s in kept)
        ]
        return Bounded(extents, tuple(stages), tuple(dict.fromkeys([*whole, *own])))

    def _bounding(self, stage: Stage) -> Conditions:
        whole = (c for c in self.given.conditions if not c.axes.isdisjoint(stage.over))
        return (*whole, *self.own.get(stage.name, ()))

    def _renamed(self, stage: Stage, reduced: Collection[str]) -> frozenset[str]:
        """Return the axes that a stage gets others for: those that it reduces over, and those of
        its conditions that any stage reduces over."""
        if not self.own.get(stage.name):
            return frozenset()
        named = frozenset[str]().union(*(c.axes for c in self._bounding(stage)))
        return frozenset(stage.over) | (named & frozenset(reduced))

    def _name(self, place: tuple[Key, str], busy: set[str], extents: dict[str, int]) -> str:
        """Return the name of a stage's own axis: that of the old one, where it is not in use."""
        if place not in self._names:
            _, axis = place
            numbered = (f"{axis}{number}" for number in count(2))
            used = {*self.taken, *extents}
            name = axis if axis not in busy else next(n for n in numbered if n not in used)
            busy.add(name)
            extents[name] = extents[axis]
            self._names[place] = name
        return self._names[place]


def _over(stage: Stage, names: Mapping[str, str]) -> Stage:
    """Return a stage over axes of other names."""
    if not names:
        return stage
    axes, over = (tuple(names.get(a, a) for a in group) for group in (stage.axes, stage.over))
    return replace(stage, axes=axes, over=over, body=_at(stage.body, names))


def _at(node: T, names: Mapping[str, str]) -> T:
    """Return an expression of axes of other names."""
    found = node.at({axis: AxisValue(names.get(axis, axis)) for axis in node.axes})
    assert isinstance(found, type(node))
    return found
