"""Stages of the forward program that its gradient reads instead of computing them again.

The logarithm of a sum of exponentials stands for two stages: for the maximum, whose shift changes
nothing (:mod:`.shifts`), and for the sum itself, which is 1 when the maximum is the logarithm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from tilewright.spaces.derivation.algebra import ONE, ZERO, minus, over, plus, times
from tilewright.spaces.derivation.gradients.hoisting import hoisted
from tilewright.spaces.derivation.gradients.roots import roots, with_roots
from tilewright.spaces.derivation.gradients.shifts import exponential_sum, free_extremes
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.program import Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Call, Expression, Read

LOGSUMEXP = "lse"
"""The name of the first logarithm of a sum of exponentials that is no stage of its own."""


@dataclass(frozen=True)
class Logsumexp:
    """A stage ``name`` of the logarithm of the sum of exponentials, as maximum plus logarithm."""

    name: str
    maximum: str
    total: str

    def stage(self, program: Program) -> Stage:
        """Return the stage that computes it."""
        axes = program.stage[self.maximum].axes
        read = tuple(map(AxisValue, axes))
        logarithm = Call("log", (Read(self.total, read),))
        return Stage(self.name, axes, None, (), Binary("+", Read(self.maximum, read), logarithm))


def logsumexps(program: Program) -> list[Logsumexp]:
    """Return one for each maximum that has a sum of exponentials: by the name of the stage that
    holds it, or ``lse``, ``lse2`` and so on."""
    found: list[Logsumexp] = []
    names = _names(program)
    for maximum, changes in free_extremes(program).items():
        total = exponential_sum(program, maximum, changes)
        if total is not None:
            new = Logsumexp(next(names), maximum, total)
            body = new.stage(program).body
            held = [stage.name for stage in program.stages if stage.body == body]
            found.append(replace(new, name=held[0]) if held else new)
    return found


def _names(program: Program) -> Iterator[str]:
    """Yield ``lse``, ``lse2`` and so on, without the names of arrays and axes."""
    taken = {*program.stage, *program.operand, *program.extent}
    numbered = (f"{LOGSUMEXP}{number if number > 1 else ''}" for number in count(1))
    return (name for name in numbered if name not in taken)


def forward(program: Program, saved: Collection[str]) -> Program:
    """Return the program that also writes the ``saved`` stages, in float32, for its gradient."""
    kept = {output.name for output in program.outputs}
    more = [name for name in saved if name not in kept]
    if not more:
        return program
    whole = with_logsumexps(hoisted(with_roots(program, saved), {*kept, *saved}), saved)
    check_saved(whole, saved, roots(program))
    outputs = (*whole.outputs, *(_output(whole, name) for name in more))
    return read_again(replace(whole, outputs=outputs))


def with_logsumexps(program: Program, saved: Collection[str]) -> Program:
    """Return the program with stages for the logarithms of sums that are to be saved."""
    new = [
        each.stage(program)
        for each in logsumexps(program)
        if each.name in saved and each.name not in program.stage
    ]
    return replace(program, stages=(*program.stages, *new))


def check_saved(program: Program, saved: Collection[str], others: Collection[str]) -> None:
    """Refuse names of what is no stage; ``program`` has those of logarithms and roots that are
    saved, and the ``others`` might be."""
    for name in saved:
        if name not in program.stage:
            new = [each.name for each in logsumexps(program) if each.name not in program.stage]
            known = ", ".join((*program.stage, *new, *others))
            raise InputError(f"saved {shown(name)} is no stage of the program; stages: {known}")


def standing_in(program: Program, saved: Collection[str]) -> Mapping[str, Expression]:
    """Return what saved logarithms replace: the maxima by the logarithms, the sums by 1."""
    found: dict[str, Expression] = {}
    for each in logsumexps(program):
        if each.name in saved:
            axes = program.stage[each.maximum].axes
            found[each.maximum] = Read(each.name, tuple(map(AxisValue, axes)))
            found[each.total] = ONE
    return found


def replaced(program: Program, node: Expression, by: Mapping[str, Expression]) -> Expression:
    """Return an expression with reads of some stages replaced."""
    children = tuple(replaced(program, child, by) for child in node.children)
    match node:
        case Read(name) if name in by:
            axes = program.stage[name].axes
            return by[name].at(dict(zip(axes, children, strict=True)))
        case Binary("/"):
            return over(*children)
        case Binary("*"):
            return times(*children)
        case Binary("+"):
            return plus(*children)
        case Binary("-"):
            return minus(*children)
        case Call("log") if children == (ONE,):
            return ZERO
    return node if children == node.children else node.with_children(children)


def _output(program: Program, name: str) -> Output:
    shape = program.shape(program.stage[name].axes)
    return Output(name, program.computed_in, shape, tuple(range(len(shape))))


def read_again(program: Program) -> Program:
    """Return the same program, checked as one that is read from text."""
    from tilewright.spaces.language import program as read

    return read(str(program))
