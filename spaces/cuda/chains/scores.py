"""Scores computed by few instructions.

Scores are exponents: their absolute error counts, not the relative one. Sums of multiples are
multiply-adds, and a division by a number is a multiplication by its reciprocal. A distance in whole
numbers, such as ``j - i``, is the one of the tile's first key plus a constant, an exact sum: its
factor multiplies nothing else, in one multiply-add. A term that a row adds to all scores of a tile,
and a factor that they have in common, are left to whoever reads them. A tanh takes two special
functions; where all arguments of a warp are near zero it takes none but a polynomial, the shorter
the nearer they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chains.lanes import APART
from tilewright.spaces.cuda.chains.scopes import POWERS, RowScope, Terms, ThreadScope
from tilewright.spaces.derivation.algebra import ZERO, constant, number, times
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import AxisValue, Binary, Call, Expression, Negation, Read
from tilewright.spaces.numerics.polynomials import (
    TANH_NEAR,
    TANH_NEAR_END,
    TANH_NEAREST,
    TANH_NEAREST_END,
)

LEAST = 1e-4
"""The least factor whose powers float32 can hold."""
ODD = ((TANH_NEAREST_END, TANH_NEAREST), (TANH_NEAR_END, TANH_NEAR))
"""The bound of arguments up to which tanh is a polynomial, and the polynomial; the shortest
first."""
OWN = Read("what a key has of its score", ())
OF_ROW = Read("what its row adds", ())
"""The second term of a score, which its row adds.

A score is a multiple of :data:`OWN`, which is kept in its place, plus this.
"""


@dataclass
class ScoreScope(ThreadScope):
    """The scope of the score of one key, whose number is the axis ``key``.

    ``tile`` reads the number of the tile's first key, which is ``at`` before this one; ``row`` is
    the axis that is the number of a row, if there is one. ``odd`` is the polynomial for tanh, if
    there is one.
    """

    tile: RowScope | None = None
    key: AxisValue | None = None
    row: AxisValue | None = None
    odd: tuple[float, ...] = ()

    def value(self, node: Expression) -> str:
        """Return C text of an expression: tanh, distances and sums of multiples in ways of their
        own."""
        if (exact := self.integers(node)) is not None:
            return exact
        if isinstance(node, Call) and node.function == "tanh":
            return self._tanh(node.arguments[0])
        if step := self._step(node):
            return self._distance(node, step)
        terms = self.scaled_terms(node)
        return super().value(node) if terms == [(1.0, node)] else self._sum(*self.apart(terms))

    def parted(self, node: Expression) -> tuple[str, Terms, str]:
        """Return a sum of multiples in two parts: the key's own part, and the row's.

        They are: C text of the key's part; the sum as terms of :data:`OWN` and :data:`OF_ROW`; C
        text of the row's part for each row ``h`` of a lane. All is the key's part if it has no
        multiple that others could be divided by: that is the largest one, so that none overflows.
        """
        own, rest = self.apart(self.scaled_terms(node))
        sloped = [term for term in own if self._sloped(term[1])]
        plain = [term for term in own if term not in sloped]
        plain.sort(key=lambda term: -abs(term[0]))
        if not plain or not LEAST <= (scale := abs(plain[0][0])) <= 1 / LEAST:
            return self.text(node), [(1.0, OWN)], ""
        text = ("-" if plain[0][0] < 0 else "") + self.text(plain[0][1])
        for c, atom in (*plain[1:], *sloped):
            text = self._added(c / scale, atom, text)
        if rest == ZERO:
            return text, [(scale, OWN)], ""
        return text, [(scale, OWN), (1.0, OF_ROW)], self.text(rest)

    def _sum(self, own: Terms, rest: Expression) -> str:
        """Return C text of the terms that differ from key to key, added to all others."""
        text = "" if rest == ZERO else self.text(rest)
        for c, atom in own:
            if text and c == 1 and not self._sloped(atom):
                text = f"{self.text(atom)} + {text}"
            else:
                text = self._added(c, atom, text) if text else f"{self.text(atom)} * {c!r}f"
        return text

    def _added(self, c: float, atom: Expression, text: str) -> str:
        """Return C text of a multiple added to ``text``, by one multiply-add."""
        if sloped := self._sloped(atom):
            slope, distance = sloped
            by = self.text(times(number(c), slope))
            return f"tw::fused({by}, {self.text(distance)}, {text})"
        return f"tw::fused({self.text(atom)}, {c!r}f, {text})"

    def _sloped(self, node: Expression) -> tuple[Expression, Expression] | None:
        """Return the factor by which all keys multiply a distance, and the distance; else None."""
        match node:
            case Binary("*", left, right):
                for factor, other in ((left, right), (right, left)):
                    terms = self.scaled_terms(other)
                    if len(terms) == 1 and self._step(terms[0][1]) and not self.holds(factor):
                        return times(number(terms[0][0]), factor), terms[0][1]
        return None

    def _step(self, node: Expression) -> int | None:
        """Return by how much whole numbers grow from key to key.

        None if that is not the same everywhere.
        """
        return _coefficient(node, self.key) if self.key and self.is_distance(node) else None

    def _distance(self, node: Expression, step: int) -> str:
        """Return C text of whole numbers that grow by ``step`` from key to key.

        They are that of a tile's first key plus a constant. Rows whose numbers are a known distance
        apart are measured from the first, so that they share most sums.
        """
        assert self.tile
        along = _coefficient(node, self.row) if self.row else None
        at = "at" if step == 1 else f"{step} * at"
        if along is None:
            return f"({self.tile.text(node)} + (float)({at}))"
        return f"({self.tile.first(node)} + (float)({at} + {APART * along} * h))"

    def _tanh(self, argument: Expression) -> str:
        scale, atom = _multiple(self, argument)
        x = self.text(atom)
        if not self.odd:
            return f"tw_tanh_by_power({x} * {2 * POWERS['exp'] * scale!r}f)"
        powers = (f"{c * scale ** (2 * n + 1)!r}f" for n, c in enumerate(self.odd))
        return f"tw_odd({x}, {', '.join(powers)})"


def near_scores(scope: ThreadScope, node: Expression, score: Expression) -> list[float]:
    """Return up to which magnitudes of the score each polynomial of :data:`ODD` serves as tanh.

    They hold for all tanh in ``node``. Empty if there is no tanh, or not all are of multiples of
    the score that powers may be computed of.
    """
    calls = [n for n in node.walk() if isinstance(n, Call) and n.function == "tanh"]
    found = [_multiple(scope, call.arguments[0]) for call in calls]
    allowed = (atom == score and LEAST <= abs(scale) <= 1 / LEAST for scale, atom in found)
    if not found or not all(allowed):
        return []
    return [min(end / abs(scale) for scale, _ in found) for end, _ in ODD]


def by_size(limits: Sequence[float], loops: Sequence[Sequence[str]]) -> list[str]:
    """Return the code of a tile whose ``largest`` magnitudes, four of them, are known.

    It runs the first of the ``loops`` within whose limit all scores of the warp are; the last has
    no limit.
    """
    if not limits:
        return list(loops[0])
    inside = " && ".join(f"largest[{n}] <= {limits[0]!r}f" for n in range(4))
    further = by_size(limits[1:], loops[1:])
    return CUDA.when(f"tw::any_lane(!({inside}))", further, loops[0])


def _coefficient(node: Expression, axis: AxisValue) -> int | None:
    """Return the coefficient of an axis in whole numbers.

    None if they are no sum of a multiple of it and others.
    """
    if node == axis or axis.name not in node.axes:
        return int(node == axis)
    match node:
        case Negation(inner):
            return _product(-1, _coefficient(inner, axis))
        case Binary("+" | "-" as operator, left, right):
            first, second = _coefficient(left, axis), _coefficient(right, axis)
            if first is None or second is None:
                return None
            return first + second if operator == "+" else first - second
        case Binary("*", left, right) if (c := constant(left)) is not None:
            return _product(int(c), _coefficient(right, axis))
        case Binary("*", left, right) if (c := constant(right)) is not None:
            return _product(int(c), _coefficient(left, axis))
    return None


def _product(c: int, other: int | None) -> int | None:
    return None if other is None else c * other


def _multiple(scope: ThreadScope, node: Expression) -> tuple[float, Expression]:
    """Return factor and expression of a multiple; (1, the expression) if it is none."""
    own, rest = scope.apart(scope.scaled_terms(node))
    return own[0] if len(own) == 1 and rest == ZERO else (1.0, node)
