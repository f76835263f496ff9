"""Divisions of a program and its gradient into a forward and a backward program.

What the forward program saves, the backward one need not compute again: memory for time (Griewank
and Walther, Evaluating Derivatives, 2008, chapter 12). A set of stages that the gradient reads all
of is such a division. Those that keep more bytes than another one and are predicted to take no less
time are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.derivation.cutting import is_float
from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.derivation.gradients.hoisting import hoisted
from tilewright.spaces.derivation.gradients.means import without_counts
from tilewright.spaces.derivation.gradients.saving import forward, logsumexps
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.staged.division import ON_CPU, Costs

MOST = 64
"""Sets of saved stages that are tried, small ones first."""


@dataclass(frozen=True)
class Split:
    """A program that also writes the stages ``saved``, and the gradient that reads them."""

    saved: tuple[str, ...]
    forward: Program
    backward: Program

    @cached_property
    def kept(self) -> tuple[Operand, ...]:
        """The arrays that the backward program reads of the forward one: its operands, and what is
        saved."""
        known = {*self.forward.operand, *self.saved}
        return tuple(each for each in self.backward.operands if each.name in known)

    @property
    def bytes(self) -> int:
        """The bytes that are kept from the forward program to the backward one."""
        return sum(each.bytes for each in self.kept)

    def cost(self, costs: Costs) -> float:
        """Return the predicted cost of both programs."""
        return costs.of_work(self.forward) + costs.of_work(self.backward)


def splits_of(
    program: Program, wrt: Sequence[str], of: Sequence[str] | None = None, costs: Costs = ON_CPU
) -> list[Split]:
    """Return the divisions of a program and its gradient, from the fewest bytes kept to the most
    and from the highest predicted cost to the lowest.

    ``wrt`` and ``of`` are as for :func:`spaces.derivation.gradients.gradient.gradient`, which says
    what raises :class:`InputError`.
    """
    priced = [(each.bytes, each.cost(costs), each) for each in _possible(program, wrt, of)]
    found: list[Split] = []
    least = float("inf")
    for _, cost, split in sorted(priced, key=lambda each: each[:2]):
        if cost < least:
            found.append(split)
            least = cost
    return found


def _possible(program: Program, wrt: Sequence[str], of: Sequence[str] | None) -> Iterator[Split]:
    """Yield a division for each set of stages that a gradient reads all of."""
    names = _stages(program)
    yield Split((), program, gradient(program, wrt, (), of))
    waiting: list[tuple[str, ...]] = [()]
    seen = {*waiting}
    for saved in waiting:
        for name in names:
            more = tuple(each for each in names if each == name or each in saved)
            if more in seen or len(seen) > MOST:
                continue
            seen.add(more)
            split = _split(program, wrt, more, of)
            if split is not None:
                waiting.append(more)
                yield split


def _split(
    program: Program, wrt: Sequence[str], saved: tuple[str, ...], of: Sequence[str] | None
) -> Split | None:
    """Return the division that saves some stages; None if the gradient does not read them all, or
    if one of them is no stage where the others are saved."""
    try:
        backward = gradient(program, wrt, saved, of)
    except InputError:
        return None
    if not {*saved} <= {*backward.operand}:
        return None
    return Split(saved, forward(program, saved), backward)


def _stages(program: Program) -> list[str]:
    """Return the stages that may be saved: those of floating point, and logarithms of sums."""
    counted = without_counts(program)
    whole = hoisted(counted, {output.name for output in program.outputs})
    stages = [*counted.stages, *whole.stages]
    logarithms = (each.name for each in logsumexps(whole))
    return list(dict.fromkeys([*(s.name for s in stages if is_float(program, s)), *logarithms]))
