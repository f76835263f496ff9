"""Bound indices by interval arithmetic on their normal form.

Terms that share axes with a quotient or a remainder are not independent of each other: their ranges
come from :mod:`spaces.language.residues`, where it has them. A condition on one axis narrows that
axis. A condition on several axes is subtracted from an index: where ``i - j >= 0`` holds, ``i - j +
2`` is at least 2 (Moore, Interval Analysis, 1966).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.language.affine import Affine, affine, differences
from tilewright.spaces.language.residues import Range, exact_range
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Read


@dataclass
class Bounds:
    """The ranges of axes and of the arrays whose entries are indices, where conditions hold.

    ``positive`` are the conditions as differences that are not negative.
    """

    axes: dict[str, Range]
    entries: Mapping[str, Range]
    positive: Sequence[Affine] = ()

    @staticmethod
    def under(
        conditions: Sequence[Expression],
        extents: Mapping[str, int],
        entries: Mapping[str, Range],
    ) -> Bounds:
        """Return the bounds where all conditions hold."""
        axes = {name: (0, extent - 1) for name, extent in extents.items()}
        positive = [d for condition in conditions for d in differences(condition, entries)]
        bounds = Bounds(axes, entries, positive)
        for difference in positive:
            bounds._narrow(difference)
        return bounds

    def of(self, index: Expression) -> Range:
        """Return the range of an index."""
        return self._range(affine(index), self.positive)

    @property
    def empty(self) -> bool:
        """Tell whether the conditions, taken two at a time, provably hold nowhere."""
        pairs = [a + b for a in self.positive for b in self.positive]
        return any(low > high for low, high in self.axes.values()) or any(
            self._plain(difference)[1] < 0 for difference in (*self.positive, *pairs)
        )

    def _range(self, index: Affine, positive: Sequence[Affine]) -> Range:
        low, high = self._plain(index)
        atoms = {atom for atom, _ in index.terms}
        for difference in positive:
            if atoms.isdisjoint(atom for atom, _ in difference.terms):
                continue
            low = max(low, self._plain(index - difference)[0])
            high = min(high, self._plain(index + difference)[1])
        return low, high

    def _plain(self, index: Affine) -> Range:
        low = high = index.constant
        for group in _dependent(index):
            ends = self._group(group)
            low, high = low + ends[0], high + ends[1]
        return low, high

    def _group(self, group: Affine) -> Range:
        """Return the range of terms that depend on each other."""
        low = high = 0
        for atom, coefficient in group.terms:
            ends = [coefficient * end for end in self._atom(atom)]
            low, high = low + min(ends), high + max(ends)
        if any(isinstance(atom, Binary) for atom, _ in group.terms):
            variables = sorted(_variables(group), key=str)
            exact = exact_range(group, tuple((v, self._atom(v)) for v in variables))
            low, high = (low, high) if exact is None else (max(low, exact[0]), min(high, exact[1]))
        return low, high

    def _atom(self, atom: Expression) -> Range:
        match atom:
            case AxisValue(name):
                return self.axes[name]
            case Read(name, _, outside):
                low, high = self.entries[name]
                return (low, high) if outside is None else _with(low, high, outside)
            case Binary(operator, inner, by):
                dividend = self._range(affine(inner), self._without_quotients)
                return _divided(operator, dividend, affine(by).constant)
        raise TypeError(f"{atom} is no atom of an index")

    @property
    def _without_quotients(self) -> Sequence[Affine]:
        """The conditions whose own ranges need no range of a dividend."""
        return [
            difference
            for difference in self.positive
            if not any(isinstance(atom, Binary) for atom, _ in difference.terms)
        ]

    def _narrow(self, difference: Affine) -> None:
        """Narrow by a condition on one axis alone: ``coefficient * axis + constant >= 0``."""
        match difference.terms:
            case [(AxisValue(name), coefficient)]:
                low, high = self.axes[name]
                if coefficient > 0:
                    low = max(low, -(difference.constant // coefficient))
                else:
                    high = min(high, difference.constant // -coefficient)
                self.axes[name] = low, high


def _dependent(index: Affine) -> list[Affine]:
    """Return the terms in groups that have no axis and no entry in common."""
    groups: list[tuple[frozenset[Expression], Affine]] = []
    for term in index.terms:
        own, terms = _variables(Affine((term,))), Affine((term,))
        for names, others in [group for group in groups if not own.isdisjoint(group[0])]:
            groups.remove((names, others))
            own, terms = own | names, Affine((*others.terms, *terms.terms))
        groups.append((own, terms))
    return [terms for _, terms in groups]


def _variables(index: Affine) -> frozenset[Expression]:
    """Return the axes and entries that an index depends on."""
    found: frozenset[Expression] = frozenset()
    for atom, _ in index.terms:
        found |= _variables(affine(atom.left)) if isinstance(atom, Binary) else {atom}
    return found


def _with(low: int, high: int, outside: float) -> Range:
    return min(low, int(outside)), max(high, int(outside))


def _divided(operator: str, inner: Range, divisor: int) -> Range:
    quotients = inner[0] // divisor, inner[1] // divisor
    if operator == "//":
        return quotients
    if quotients[0] == quotients[1]:
        return inner[0] % divisor, inner[1] % divisor
    return 0, divisor - 1
