"""Assign each part of a chain to the loop over a tile of keys in which it can be computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction
from tilewright.spaces.derivation.scopes import special
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Levels:
    """The loops over a tile: what reads no states is computed in the first, anything else in the
    one after those of the states that it reads."""

    chained: Chained

    @cached_property
    def weights(self) -> tuple[Expression, ...]:
        """The distinct weights of keys."""
        return tuple(dict.fromkeys(weighing.weight for weighing in self.chained.weighings))

    @cached_property
    def _states(self) -> dict[str, int]:
        states: dict[str, int] = {}
        for r in self.chained.scalars:
            states[r.name] = _after(states, r.element)
        return states

    @cached_property
    def last(self) -> int:
        """The number of the last loop."""
        return max(map(self.of, (*self.weights, *(r.element for r in self.chained.scalars))))

    def of(self, expression: Expression) -> int:
        """Return the number of the loop of an expression."""
        return _after(self._states, expression)

    def scalars(self, level: int) -> list[tuple[int, ChainReduction]]:
        """Return the scalars of a loop, with their places among all."""
        numbered = enumerate(self.chained.scalars)
        return [(k, r) for k, r in numbered if self.of(r.element) == level]

    @cached_property
    def in_place(self) -> Expression | None:
        """The weight that is kept where the scores were: the last that no later loop needs them
        for."""
        found = [weight for weight in self.weights if self.of(weight) == self.last]
        return found[-1] if found else None

    @cached_property
    def held(self) -> Expression | None:
        """The largest value with a special function that the first loop computes of each key and a
        later one again: it is kept in the place of the score."""
        if not self.last:
            return None
        first, later = self._computed(first=True), self._computed(first=False)
        found = [n for n in first if n in later and special(n) and self.chained.reads_key(n)]
        return max(found, key=lambda n: sum(1 for _ in n.walk()), default=None)

    def _computed(self, first: bool) -> dict[Expression, None]:
        """Collect the expressions that the first loop computes, or those of later loops."""
        bodies = [*(r.element for r in self.chained.scalars), *self.weights]
        chosen = [body for body in bodies if (self.of(body) == 0) == first]
        return dict.fromkeys(node for body in chosen for node in body.walk())


def _after(states: dict[str, int], expression: Expression) -> int:
    return 1 + max((states.get(read.name, -1) for read in expression.reads), default=-1)
