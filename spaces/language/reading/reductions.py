"""Reductions inside expressions become stages, and ``mean``, ``softmax`` and their like are spelt
out in ``sum`` and ``max``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Number,
    Read,
    Reduction,
)

Over = tuple[str, ...]
LONGEST = 48
"""Characters of a stage's name that those of its reductions begin with."""


Reduce = Callable[[str, Expression], Expression]
"""Makes the reduction of a kind of an expression, over the axes and the domain that were given."""


def _mean(x: Expression, reduce: Reduce) -> Expression:
    return Binary("/", reduce("sum", x), reduce("sum", Number(1.0)))


def _var(x: Expression, reduce: Reduce) -> Expression:
    """Write the variance of the whole population, without Bessel's correction."""
    distance = Binary("-", x, _mean(x, reduce))
    return _mean(Binary("*", distance, distance), reduce)


def _shifted(x: Expression, reduce: Reduce) -> Expression:
    return Call("exp", (Binary("-", x, reduce("max", x)),))


def _softmax(x: Expression, reduce: Reduce) -> Expression:
    return Binary("/", _shifted(x, reduce), reduce("sum", _shifted(x, reduce)))


def _logsumexp(x: Expression, reduce: Reduce) -> Expression:
    total = Call("log", (reduce("sum", _shifted(x, reduce)),))
    return Binary("+", reduce("max", x), total)


SUGAR: dict[str, Callable[[Expression, Reduce], Expression]] = {
    "mean": _mean,
    "var": _var,
    "softmax": _softmax,
    "logsumexp": _logsumexp,
}
"""Each name's reduction, as a function of an expression and of the reductions it is made of."""


@dataclass
class Lifter:
    """Makes stages of one statement's reductions, beside the ``stages`` before it.

    ``domains`` are the conditions of single reductions by stage, ``taken`` names that no stage may
    get. A stage keeps the axes that its body, or a condition that bounds it, needs.
    """

    conditions: Sequence[Comparison]
    stages: list[Stage]
    domains: dict[str, tuple[Comparison, ...]]
    taken: Set[str]

    def define(self, name: str, axes: tuple[str, ...], value: Expression) -> None:
        """Append the stage ``name[axes] = value``, and before it those of reductions inside."""
        match value:
            case Reduction(reducer, over, body, own) if reducer not in SUGAR and not {*over} & {
                *axes
            }:
                lifted = self._lifted(body, (*axes, *over), name)
                self._append(Stage(name, axes, reducer, over, lifted), own)
            case _:
                self.stages.append(Stage(name, axes, None, (), self._lifted(value, axes, name)))

    def _lifted(self, node: Expression, axes: tuple[str, ...], name: str) -> Expression:
        """Return ``node``, which stands where ``axes`` have values, without reductions."""
        if not isinstance(node, Reduction):
            children = tuple(self._lifted(child, axes, name) for child in node.children)
            return node if children == node.children else node.with_children(children)
        inner = (*axes, *(axis for axis in node.over if axis not in axes))
        body = self._lifted(node.body, inner, name)
        if node.reducer in SUGAR:

            def reduce(reducer: str, reduced: Expression) -> Expression:
                return Reduction(reducer, node.over, reduced, node.conditions)

            return self._lifted(SUGAR[node.reducer](body, reduce), axes, name)
        bounding = (*self._bounding(node.over), *node.conditions)
        needed = body.axes.union(*(c.axes for c in bounding)) - set(node.over)
        kept = tuple(axis for axis in inner if axis in needed)
        stage = self._stage(Stage(name, kept, node.reducer, node.over, body), node.conditions)
        return Read(stage, tuple(AxisValue(axis) for axis in kept))

    def _append(self, stage: Stage, domain: tuple[Comparison, ...]) -> None:
        self.stages.append(stage)
        if domain:
            self.domains[stage.name] = domain

    def _stage(self, new: Stage, domain: tuple[Comparison, ...]) -> str:
        """Return the name of an equal stage that exists, or of the new one."""
        meaning = (new.axes, new.reducer, new.over, new.body, {*domain})
        for stage in self.stages:
            own = {*self.domains.get(stage.name, ())}
            if (stage.axes, stage.reducer, stage.over, stage.body, own) == meaning:
                return stage.name
        names = {stage.name for stage in self.stages} | self.taken
        what = "count" if (new.reducer, new.body) == ("sum", Number(1.0)) else new.reducer
        name = next(n for n in _numbered(f"{new.name[:LONGEST]}_{what}") if n not in names)
        self._append(replace(new, name=name), domain)
        return name

    def _bounding(self, over: Over) -> Iterator[Comparison]:
        return (c for c in self.conditions if not c.axes.isdisjoint(over))


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}{number}"
        number += 1
