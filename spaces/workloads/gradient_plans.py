"""Plans of a gradient: what a forward program saves, and a backward one reads.

What is saved need not be computed again: memory for time (Griewank and Walther, Evaluating
Derivatives, 2008, chapter 12). There is a plan for each set of stages that the gradient reads all
of. Plans that keep more bytes than another one and are predicted to take no less time are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.derivation.cutting import is_float
from tilewright.spaces.derivation.gradients.gradient import gradient
from tilewright.spaces.derivation.gradients.hoisting import hoisted
from tilewright.spaces.derivation.gradients.inverting import check_operands
from tilewright.spaces.derivation.gradients.means import without_counts
from tilewright.spaces.derivation.gradients.roots import ROOTS, roots
from tilewright.spaces.derivation.gradients.saving import forward, logsumexps
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.tree import Call
from tilewright.spaces.staged.division import ON_CPU, Costs

MOST = 64
"""Sets of saved stages that are tried, small ones first."""
Names = tuple[str, ...]


@dataclass(frozen=True)
class GradientPlan:
    """A ``forward`` program that also writes the stages ``saved``, and a ``backward`` program that
    reads them, and not the operands ``solved`` for. The arrays ``held`` are there anyway."""

    saved: Names
    forward: Program
    backward: Program
    solved: Names = ()
    held: frozenset[str] = frozenset()

    @cached_property
    def kept(self) -> tuple[Operand, ...]:
        """The arrays that the backward program reads of the forward one, operands or saved stages,
        but for those that are there anyway."""
        known = {*self.forward.operand, *self.saved} - self.held
        return tuple(each for each in self.backward.operands if each.name in known)

    @property
    def bytes(self) -> int:
        """The bytes that are kept from the forward program to the backward one."""
        return sum(each.bytes for each in self.kept)

    def cost(self, costs: Costs) -> float:
        """Return the predicted cost of both programs."""
        return costs.of_work(self.forward) + costs.of_work(self.backward)


@dataclass(frozen=True)
class PlannedGradient:
    """A gradient of a program that is planned: by the operands ``wrt``, given the derivatives of
    the outputs ``of``. Operands may be ``solved`` for, and arrays are ``held`` anyway."""

    program: Program
    wrt: Sequence[str]
    of: Sequence[str] | None = None
    solved: Names = ()
    held: frozenset[str] = frozenset()

    def plans(self, costs: Costs = ON_CPU) -> list[GradientPlan]:
        """Return the plans from the fewest bytes kept to the most, and from the highest
        predicted cost to the lowest. :class:`InputError` as for
        :func:`spaces.derivation.gradients.gradient.gradient`, and for ``held`` ones that are no
        arrays."""
        names = _stages(self.program)
        for name in self.held:
            if name not in (known := (*self.program.operand, *names)):
                raise InputError(f"held {shown(name)} is no array; arrays: {', '.join(known)}")
        check_operands(self.program, self.solved)
        gradient(self.program, self.wrt, (), self.of)  # raises where there is none
        possible = [*self._possible(names, ())]
        if self.solved:
            solving = [*self._possible(names, self.solved)]
            if not solving:
                operands = ", ".join(self.solved)
                problem = f"{operands} cannot be solved for in any stage"
                raise InputError(f"{problem}; allowed: operands of a map of + - * /")
            possible += solving
        priced = sorted(((s.bytes, s.cost(costs), s) for s in possible), key=lambda each: each[:2])
        found, least = list[GradientPlan](), float("inf")
        for _, cost, plan in priced:
            if cost < least:
                found.append(plan)
                least = cost
        return found

    def _possible(self, names: Sequence[str], solved: Names) -> Iterator[GradientPlan]:
        """Yield a plan for each set of stages that the gradient reads all of; and, where
        operands are ``solved`` for, for each set by which they can be."""
        waiting: list[Names] = [()]
        seen = {*waiting}
        for saved in waiting:
            backward = self._gradient(saved, solved)
            if backward is not None and _takes_roots(backward, saved):
                continue
            read = {*saved} & {*(backward.operand if backward else ())}
            if backward is not None and (solved or read == {*saved}):
                written = forward(self.program, [name for name in saved if name in read])
                yield GradientPlan(saved, written, backward, solved, self.held)
            elif not solved:
                continue
            more = [each for each in _larger(saved, names) if each not in seen]
            waiting += more[: MOST - len(seen)]
            seen |= {*more}

    def _gradient(self, saved: Names, solved: Names) -> Program | None:
        """Return the gradient; None where the stages are none together, or do not give what is to
        be solved for."""
        try:
            return gradient(self.program, self.wrt, saved, self.of, solved)
        except InputError:
            return None


def _larger(saved: Names, names: Sequence[str]) -> Iterator[Names]:
    """Yield the sets of one name more, in the order of ``names``."""
    for name in names:
        if name not in saved:
            yield tuple(each for each in names if each == name or each in saved)


def _takes_roots(program: Program, names: Names) -> bool:
    """Tell whether a root of some operands is taken. They are drawn with any sign when kernels are
    verified; what is saved is the root then."""
    nodes = (node for stage in program.stages for node in stage.body.values())
    taken = (n for n in nodes if isinstance(n, Call) and n.function in ROOTS)
    return any(read.name in names for node in taken for read in node.value_reads)


def _stages(program: Program) -> list[str]:
    """Return the stages that may be saved: those of floating point, and logarithms and roots of
    sums."""
    counted = without_counts(program)
    whole = hoisted(counted, {output.name for output in program.outputs})
    floats = [s.name for s in (*counted.stages, *whole.stages) if is_float(program, s)]
    logarithms = [each.name for each in logsumexps(whole)]
    return list(dict.fromkeys([*floats, *logarithms, *roots(program)]))
