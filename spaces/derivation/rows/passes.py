"""The reductions of rows by the passes over them: fused by corrections, or a pass each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from tilewright.spaces.derivation.algebra import ONE
from tilewright.spaces.derivation.chains.chain import chain
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.rows.rounded import about_rounded
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Number, Read

Pass = tuple[ChainReduction, ...]
"""Reductions in an order in which each reads states that stand before it, and final results of
earlier passes."""


@dataclass(frozen=True)
class Expander:
    """Makes expressions of a program read operands and results of reductions only.

    Maps are computed where they are read, axes of one point are 0, and the number of elements of
    a row is a number where ``counts``, the reductions that count them, are final.
    """

    program: Program
    over: tuple[str, ...]
    counts: frozenset[str]

    def expanded(self, body: Expression, unfinished: frozenset[str] = frozenset()) -> Expression:
        """Return the expression so; counts among ``unfinished`` stay states of the pass."""
        return self._plain(inlined(self.program, body, lambda _: True), unfinished)

    def _plain(self, node: Expression, unfinished: frozenset[str]) -> Expression:
        if isinstance(node, AxisValue) and self.program.extent[node.name] == 1:
            return Number(0.0)
        if isinstance(node, Read) and node.name in self.counts - unfinished:
            return Number(float(prod(self.program.shape(self.over))))
        if isinstance(node, Read) and node.name not in self.program.operand:
            self._own_row(node)
            return node
        return node.with_children(tuple(self._plain(c, unfinished) for c in node.children))

    def _own_row(self, read: Read) -> None:
        """Refuse a map that could not be computed in place, and the result of another row."""
        stage = self.program.stage.get(read.name)
        if stage is None:
            return
        if stage.reducer is None:
            raise InputError(f"{read} is too long, or may leave its array, to be computed in place")
        own = tuple(map(AxisValue, stage.axes))
        if read.indices != own:
            raise InputError(f"{read} is the result of another row; {self._instead(read, own)}")

    def _instead(self, read: Read, own: tuple[AxisValue, ...]) -> str:
        """Suggest another spelling for a read."""
        pairs = list(zip(own, read.indices, strict=True))
        chosen = [f"{axis} == {index}" for axis, index in pairs if axis != index]
        if len(chosen) == 1 and all(axis == i or axis.name in self.over for axis, i in pairs):
            return f"write sum[{self.over[0]}](select({chosen[0]}, {Read(read.name, own)}, 0))"
        return f"a row reads its own alone, {Read(read.name, own)}"


def reductions(program: Program) -> tuple[Stage, ...]:
    """Return the stages that reduce; :class:`InputError` if they do not all go over the same
    axes."""
    found = tuple(stage for stage in program.stages if stage.reducer)
    for stage in found:
        if set(stage.over) != set(found[0].over):
            raise InputError(
                f"{stage.name} reduces over {', '.join(stage.over)}, and {found[0].name} over "
                f"{', '.join(found[0].over)}; rows need the same axes for all"
            )
    return found


def counting(program: Program, found: tuple[Stage, ...]) -> frozenset[str]:
    """Return the reductions that give the number of all elements, which no condition bounds."""
    counts = (s for s in found if (s.reducer, s.body) == ("sum", ONE))
    return frozenset(s.name for s in counts if not program.bounding(s))


def online_passes(program: Program, expander: Expander, strict: bool) -> tuple[Pass, ...]:
    """Divide the reductions into as few passes as corrections allow, or as ``strict`` ones
    allow.
    """
    found = []
    for fused in chain(program, expander.over, strict).passes:
        own = frozenset(r.name for r in fused)
        found.append(tuple(_expanded(r, expander, own) for r in fused))
    return tuple(found)


def plain_passes(program: Program, expander: Expander) -> tuple[Pass, ...]:
    """Return a pass for reductions of elements, one for those that read results of it, and so
    on."""
    level: dict[str, int] = {}
    passes: dict[int, list[ChainReduction]] = {}
    for stage in program.stages:
        below = [level.get(read.name, -1) for read in stage.body.reads]
        own = max(below, default=-1)
        if stage.name in expander.counts:
            continue
        if stage.reducer:
            own += 1
            element, state = expander.expanded(stage.body), _state(stage)
            reduction = ChainReduction(stage.name, stage.reducer, stage.axes, element, None, state)
            reduction = about_rounded(program, reduction, expander.expanded)
            passes.setdefault(own, []).append(reduction)
        level[stage.name] = own
    return tuple(tuple(passes[number]) for number in sorted(passes))


def expressions(pass_: Pass) -> Iterator[Expression]:
    """Yield the expressions that a pass computes: elements, arguments of corrections, and
    results.
    """
    for reduction in pass_:
        yield reduction.element
        yield reduction.result
        yield from reduction.corrected_by


def argument_axes(program: Program) -> Mapping[str, tuple[str, ...]]:
    """Map each reduction that gives a place to the axes along which places are counted."""
    return {s.name: s.over for s in program.stages if s.reducer in ("argmax", "argmin")}


def _state(stage: Stage) -> Read:
    return Read(stage.name, tuple(map(AxisValue, stage.axes)))


def _expanded(r: ChainReduction, expander: Expander, own: frozenset[str]) -> ChainReduction:
    correction = r.correction
    match correction:
        case Scaling(function, exponent):
            correction = Scaling(function, expander.expanded(exponent, own))
        case Series(about, terms):
            totals = tuple((power, expander.expanded(total, own)) for power, total in terms)
            correction = Series(expander.expanded(about, own), totals)
    return replace(
        r,
        element=expander.expanded(r.element, own),
        correction=correction,
        result=expander.expanded(r.result),
    )
