"""Elements whose exponents are measured from an extreme that is far from zero.

An exponent is one multiply-add of its element and of its reference, which is rounded first. Far
from zero the rounding is by whole powers of two: there the difference is computed first. Where
elements are used in such exponents alone, all of them with one maximum, one more loop computes the
differences before the usual one, which then measures from zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chains.lanes import over_rows
from tilewright.spaces.cuda.chains.parts import Parts
from tilewright.spaces.cuda.chains.scopes import POWERS, ExactScope, Terms, ThreadScope
from tilewright.spaces.derivation.algebra import ZERO, constant
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.language.tree import Call, Expression, Read

_VARIABLE = re.compile(r"\w+\[h\]")


@dataclass(frozen=True)
class Shift:
    """The difference of elements in ``place`` to the extreme ``k`` of ``parts``.

    ``scope`` has written the ``bodies`` that read the elements.
    """

    chained: Chained
    parts: Parts
    k: int
    place: str
    scope: ThreadScope
    bodies: Sequence[Expression]

    @property
    def _multiple(self) -> float:
        return self.parts.multiples[self.k][0]

    def lines(self, exact: ExactScope) -> tuple[list[str], list[str]] | None:
        """Return lines that replace an element by its difference, and lines that set references.

        The former are written in ``exact``; the latter set references to constants, so that all
        exponents are then measured from zero. None if some exponents are not of that kind.
        """
        rest = {text: self._remaining(*terms) for text, terms in self.scope.references.items()}
        known = all(value is not None and _VARIABLE.fullmatch(t) for t, value in rest.items())
        if not known or not self._is_in_place or any(map(self._reads, self.bodies)):
            return None
        r = self.chained.scalars[self.k]
        value = self.parts.elements(exact).get(r.element) or exact.text(r.element)
        reference = self.parts.new.text(r.state)
        inverse = f" * {1 / self._multiple!r}f" if self._multiple != 1 else ""
        exact.lines.append(f"{self.place} = ({value} - {reference}){inverse};")
        return exact.lines, over_rows([f"{text} = {value!r}f;" for text, value in rest.items()])

    @property
    def _is_in_place(self) -> bool:
        atom = self.parts.atoms.get(self.k)
        return atom is not None and self.scope.leaf(atom) == self.place

    def _remaining(self, own: Terms, rest: Terms) -> float | None:
        """Return the constant of an exponent beside a multiple of (element - extreme).

        None if it is no such sum.
        """
        if len(own) != 1 or own[0][1] != self.parts.atoms.get(self.k):
            return None
        by, shift = own[0][0] / self._multiple, self.parts.multiples[self.k][1]
        terms = [*rest, (by, self.chained.scalars[self.k].state)]
        if shift != ZERO:
            terms += [(-by * c, atom) for c, atom in self.scope.scaled_terms(shift)]
        return _constant(terms)

    def _reads(self, node: Expression) -> bool:
        """Return true if an expression reads the score other than in exponents."""
        if isinstance(node, Call) and node.function in POWERS:
            return False
        if node == self.chained.score or self.scope.leaf(node) == self.place:
            return True
        return not isinstance(node, Read) and any(map(self._reads, node.children))


def _constant(terms: Iterable[tuple[float, Expression]]) -> float | None:
    """Return the value of a sum if all terms but constants cancel; else None."""
    found: dict[Expression, list[float]] = {}
    total = 0.0
    for c, atom in terms:
        value = constant(atom)
        if value is None:
            found.setdefault(atom, []).append(c)
        else:
            total += c * value
    cancels = (abs(sum(each)) <= 1e-6 * max(map(abs, each)) for each in found.values())
    return total if all(cancels) else None
