"""Computes scores with few instructions.

Scores are exponents: their absolute error counts, not the error relative to them.

Sums of multiples are multiply-adds, and what a number divides is multiplied by its reciprocal. What
grows with the key's number is known where a tile begins, and one multiply-add further on. What a
row adds to all scores of a tile, and what they are all a multiple by, are left to whoever reads
them. A tanh takes two special functions; where all that a warp has are near zero, a polynomial and
none, the shorter the nearer they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.chains.scopes import POWERS, RowScope, Terms, ThreadScope, total
from tilewright.spaces.derivation.algebra import ZERO, number, plus, times
from tilewright.spaces.language.tree import Binary, Call, Expression, Read
from tilewright.spaces.numerics.polynomials import (
    TANH_NEAR,
    TANH_NEAR_END,
    TANH_NEAREST,
    TANH_NEAREST_END,
)

LEAST = 1e-4
"""The least multiple whose powers float32 has."""
ODD = ((TANH_NEAREST_END, TANH_NEAREST), (TANH_NEAR_END, TANH_NEAR))
"""Up to which argument tanh is what polynomial, the shortest first."""
OWN = Read("what a key has of its score", ())
OF_ROW = Read("what its row adds", ())
"""A score is a multiple of the first, which is kept in its place, and the second."""


@dataclass
class ScoreScope(ThreadScope):
    """That of one key. ``tile`` knows the number of the first one of a tile, ``at`` before this;
    ``odd`` is the polynomial that tanh is, if there is one."""

    tile: RowScope | None = None
    odd: tuple[float, ...] = ()

    def value(self, node: Expression) -> str:
        """As for any thread, but for these."""
        if (exact := self.integers(node)) is not None:
            return exact
        if isinstance(node, Call) and node.function == "tanh":
            return self._tanh(node.arguments[0])
        if self._slope(node) is not None:
            return self._sum([(1.0, node)], ZERO)
        terms = self.scaled_terms(node)
        return super().value(node) if terms == [(1.0, node)] else self._sum(*self.apart(terms))

    def parted(self, node: Expression) -> tuple[str, Terms, str]:
        """What a key has of a sum of multiples, the sum as terms of :data:`OWN` and :data:`OF_ROW`,
        and what the latter is for each row ``h`` of a lane. All is the key's where it has no
        multiple that others could be divided by: that is the largest, so that none overflows."""
        own, rest = self.apart(self.scaled_terms(node))
        slopes = {atom: slope for _, atom in own if (slope := self._slope(atom)) is not None}
        plain = [(c, atom) for c, atom in own if atom not in slopes]
        plain.sort(key=lambda term: -abs(term[0]))
        if not plain or not LEAST <= (scale := abs(plain[0][0])) <= 1 / LEAST:
            return self.text(node), [(1.0, OWN)], ""
        text = ("-" if plain[0][0] < 0 else "") + self.text(plain[0][1])
        for c, atom in plain[1:]:
            text = f"tw::fused({self.text(atom)}, {c / scale!r}f, {text})"
        for c, atom in own:
            if atom in slopes:
                step = self.text(times(number(c / scale), slopes[atom]))
                text = f"tw::fused({step}, (float)at, {text})"
        added = plus(total((c, atom) for c, atom in own if atom in slopes), rest)
        if added == ZERO:
            return text, [(scale, OWN)], ""
        assert self.tile
        return text, [(scale, OWN), (1.0, OF_ROW)], self.tile.text(added)

    def _sum(self, own: Terms, rest: Expression) -> str:
        """The terms that differ from key to key, onto all others."""
        text = "" if rest == ZERO else self.text(rest)
        for c, atom in own:
            slope = self._slope(atom)
            if slope is not None:
                assert self.tile
                begin = self.tile.text(times(number(c), atom))
                text = begin if not text else f"({begin} + {text})"
                text = f"tw::fused({self.text(times(number(c), slope))}, (float)at, {text})"
            elif text:
                known = self.text(atom)
                text = f"{known} + {text}" if c == 1 else f"tw::fused({known}, {c!r}f, {text})"
            else:
                text = f"{self.text(atom)} * {c!r}f"
        return text

    def _slope(self, node: Expression) -> Expression | None:
        """By how much a product with a sum of keys' numbers grows from key to key; None if it is no
        such product."""
        match node:
            case Binary("*", left, right) if self.tile:
                for factor, other in ((left, right), (right, left)):
                    own, _ = self.apart(self.scaled_terms(other))
                    known = len(own) == 1 and self.tile.leaf(own[0][1])
                    if known and not self.holds(factor):
                        return times(number(own[0][0]), factor)
        return None

    def _tanh(self, argument: Expression) -> str:
        scale, atom = _multiple(self, argument)
        x = self.text(atom)
        if not self.odd:
            return f"tw_tanh_by_power({x} * {2 * POWERS['exp'] * scale!r}f)"
        powers = (f"{c * scale ** (2 * n + 1)!r}f" for n, c in enumerate(self.odd))
        return f"tw_odd({x}, {', '.join(powers)})"


def near_scores(scope: ThreadScope, node: Expression, score: Expression) -> list[float]:
    """Up to what magnitude of the score the arguments of all tanh in ``node`` are those of each
    polynomial of :data:`ODD`; empty if there are none, or not all are multiples of the score that
    powers may be taken of."""
    calls = [n for n in node.walk() if isinstance(n, Call) and n.function == "tanh"]
    found = [_multiple(scope, call.arguments[0]) for call in calls]
    allowed = (atom == score and LEAST <= abs(scale) <= 1 / LEAST for scale, atom in found)
    if not found or not all(allowed):
        return []
    return [min(end / abs(scale) for scale, _ in found) for end, _ in ODD]


def by_size(limits: Sequence[float], loops: Sequence[Sequence[str]]) -> list[str]:
    """Lines for a tile of scores whose ``largest`` magnitudes, four of them, are known: the first
    of the ``loops`` within whose limit all of the warp's are, or else the last, without one."""
    if not limits:
        return list(loops[0])
    inside = " && ".join(f"largest[{n}] <= {limits[0]!r}f" for n in range(4))
    further = by_size(limits[1:], loops[1:])
    head = f"if (tw::any_lane(!({inside}))) {{"
    return [head, *indented(further), "} else {", *indented(loops[0]), "}"]


def _multiple(scope: ThreadScope, node: Expression) -> tuple[float, Expression]:
    """What the expression is a multiple of; once of itself if of nothing else."""
    own, rest = scope.apart(scope.scaled_terms(node))
    return own[0] if len(own) == 1 and rest == ZERO else (1.0, node)
