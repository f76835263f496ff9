"""The passes over all pairs of rows and keys, a kernel each.

In one of them, rows stay in a block while tiles of keys pass: that gives the sums along the keys.
In the other one keys stay while rows pass. Apart from that they are the same, scores and weights
included, so the code knows points that stay and points that pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.chains.scopes import POWERS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.derivation.algebra import constant, factors, product
from tilewright.spaces.derivation.pairwise.view import PairSum, Pairwise, Scalar, Score
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.language.tree import Binary, Call, Expression, Negation, Read

Matrix = tuple[Expression, Part]
"""A row of each point, and the axis along it."""


@dataclass(frozen=True)
class Pass:
    """The pass in which keys stay if ``keys_stay``, else rows."""

    pairwise: Pairwise
    keys_stay: bool

    @property
    def name(self) -> str:
        """The name of the points that stay."""
        return "key" if self.keys_stay else "row"

    @property
    def staying(self) -> tuple[Part, ...]:
        """The axes of points that stay."""
        return (self.pairwise.key,) if self.keys_stay else self.pairwise.rows

    @property
    def passing(self) -> tuple[Part, ...]:
        """The axes of points that pass."""
        return self.pairwise.rows if self.keys_stay else (self.pairwise.key,)

    @property
    def stay_count(self) -> int:
        """Points that stay, of a product."""
        return prod(part.extent for part in self.staying)

    @property
    def pass_count(self) -> int:
        """Points that pass, of a product."""
        return prod(part.extent for part in self.passing)

    @cached_property
    def sums(self) -> tuple[PairSum, ...]:
        """The sums along the points that pass."""
        return tuple(each for each in self.pairwise.sums if each.of_key == self.keys_stay)

    @cached_property
    def scaled_weights(self) -> tuple[tuple[float, Expression], ...]:
        """The weight of each sum, as a constant and the rest: that is multiplied by matrices."""
        return tuple(_apart(_turned(each.weight, self.pairwise)) for each in self.sums)

    @cached_property
    def weights(self) -> tuple[Expression, ...]:
        """The weights that are multiplied by matrices, each once."""
        return tuple(dict.fromkeys(weight for _, weight in self.scaled_weights))

    @cached_property
    def scores(self) -> tuple[Score, ...]:
        """The scores that the weights read."""
        read = {read for weight in self.weights for read in weight.value_reads}
        return tuple(score for score in self.pairwise.scores if score.read in read)

    @property
    def tiles(self) -> int:
        """The arrays for the pairs of a tile: scores, and weights in their places."""
        return max(len(self.scores), len(self.weights))

    def stays(self, score: Score) -> Matrix:
        """Return the factor of a score that stays."""
        return (score.right if self.keys_stay else score.left), score.depth

    def passes(self, score: Score) -> Matrix:
        """Return the factor of a score that passes."""
        return (score.left if self.keys_stay else score.right), score.depth

    @cached_property
    def stay_matrices(self) -> tuple[Matrix, ...]:
        """The factors that stay, each once."""
        return tuple(dict.fromkeys(map(self.stays, self.scores)))

    @cached_property
    def pass_matrices(self) -> tuple[Matrix, ...]:
        """The factors that pass, and the matrices of the sums, each once."""
        found = [*map(self.passes, self.scores), *((s.matrix, s.width) for s in self.sums)]
        return tuple(dict.fromkeys(found))

    @cached_property
    def numbers(self) -> tuple[Read, ...]:
        """The floats that weights read of each point that passes: elements of arrays, scalars."""
        program, found = self.pairwise.program, list[Read]()
        for read in dict.fromkeys(r for weight in self.weights for r in weight.value_reads):
            if self.scalar(read) is not None:
                found += [read] * (self._scalars[read].of_key != self.keys_stay)
            elif read in self.pairwise.places and self.is_passing(read):
                found += [read] * (not program.operand[read.name].element.is_integer)
        return tuple(found)

    def scalar(self, read: Expression) -> int | None:
        """Return the number of the scalar that is read; None if it is none."""
        scalars = [scalar.read for scalar in self.pairwise.scalars]
        return scalars.index(read) if read in scalars else None

    @property
    def _scalars(self) -> dict[Read, Scalar]:
        return {scalar.read: scalar for scalar in self.pairwise.scalars}

    def is_passing(self, node: Expression) -> bool:
        """Tell whether an axis or an array is read for points that pass, and for no others."""
        return self._reads(node, self.passing) and not self._reads(node, self.staying)

    def is_staying(self, node: Expression) -> bool:
        """Tell whether an axis or an array is read for no point that passes."""
        return not self._reads(node, self.passing)

    def _reads(self, node: Expression, parts: Iterable[Part]) -> bool:
        names = {part.name for part in parts if part.extent > 1}
        return not names.isdisjoint(self.pairwise.indexing.reads(node))


def _apart(weight: Expression) -> tuple[float, Expression]:
    """Return the constants of a product, multiplied, and the product of its other factors."""
    found = factors(weight)
    known = [c for factor in found if (c := constant(factor)) is not None]
    others = [factor for factor in found if constant(factor) is None]
    return (prod(known), product(others)) if known and others else (1.0, weight)


def _turned(node: Expression, pairwise: Pairwise) -> Expression:
    """Return an expression in which what exponents subtract stands before their scores.

    It is then known for a point, and each pair takes one multiply-add.
    """
    scores = {score.read for score in pairwise.scores}
    if isinstance(node, Read):
        return node
    inner = node.with_children(tuple(_turned(child, pairwise) for child in node.children))
    match inner:
        case Call(name, (Binary("-", left, right),)) if name in POWERS:
            if scores.isdisjoint(right.value_reads):
                return Call(name, (Binary("+", Negation(right), left),))
    return inner


def passes(pairwise: Pairwise) -> tuple[Pass, ...]:
    """Return the passes that give all sums."""
    both = (Pass(pairwise, keys_stay=True), Pass(pairwise, keys_stay=False))
    return tuple(each for each in both if each.sums)


def padded(part: Part) -> int:
    """Return an extent in whole fragments."""
    return round_up(part.extent, FRAGMENT)
