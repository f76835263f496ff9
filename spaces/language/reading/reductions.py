"""Reductions inside expressions become stages, and ``mean``, ``softmax`` and their like are spelt
out in ``sum`` and ``max``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

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


def _mean(x: Expression, over: Over) -> Expression:
    return Binary("/", Reduction("sum", over, x), Reduction("sum", over, Number(1.0)))


def _var(x: Expression, over: Over) -> Expression:
    """Write the variance of the whole population, without Bessel's correction."""
    distance = Binary("-", x, _mean(x, over))
    return _mean(Binary("*", distance, distance), over)


def _shifted(x: Expression, over: Over) -> Expression:
    return Call("exp", (Binary("-", x, Reduction("max", over, x)),))


def _softmax(x: Expression, over: Over) -> Expression:
    return Binary("/", _shifted(x, over), Reduction("sum", over, _shifted(x, over)))


def _logsumexp(x: Expression, over: Over) -> Expression:
    total = Call("log", (Reduction("sum", over, _shifted(x, over)),))
    return Binary("+", Reduction("max", over, x), total)


SUGAR: dict[str, Callable[[Expression, Over], Expression]] = {
    "mean": _mean,
    "var": _var,
    "softmax": _softmax,
    "logsumexp": _logsumexp,
}
"""Each name's reduction, as a function of an expression and the axes to reduce over."""


@dataclass
class Lifter:
    """Makes stages of one statement's reductions, beside the ``stages`` before it.

    ``taken`` are names that no stage may get. A stage keeps the axes that its body, or a condition
    that bounds it, needs.
    """

    conditions: Sequence[Comparison]
    stages: list[Stage]
    taken: Set[str]

    def define(self, name: str, axes: tuple[str, ...], value: Expression) -> None:
        """Append the stage ``name[axes] = value``, and before it those of reductions inside."""
        match value:
            case Reduction(reducer, over, body) if reducer not in SUGAR and not {*over} & {*axes}:
                lifted = self._lifted(body, (*axes, *over), name)
                self.stages.append(Stage(name, axes, reducer, over, lifted))
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
            return self._lifted(SUGAR[node.reducer](body, node.over), axes, name)
        needed = body.axes.union(*(c.axes for c in self._bounding(node.over))) - set(node.over)
        kept = tuple(axis for axis in inner if axis in needed)
        stage = self._stage(Stage(name, kept, node.reducer, node.over, body))
        return Read(stage, tuple(AxisValue(axis) for axis in kept))

    def _stage(self, new: Stage) -> str:
        """Return the name of an equal stage that exists, or of the new one."""
        meaning = (new.axes, new.reducer, new.over, new.body)
        for stage in self.stages:
            if (stage.axes, stage.reducer, stage.over, stage.body) == meaning:
                return stage.name
        names = {stage.name for stage in self.stages} | self.taken
        what = "count" if (new.reducer, new.body) == ("sum", Number(1.0)) else new.reducer
        name = next(n for n in _numbered(f"{new.name[:LONGEST]}_{what}") if n not in names)
        self.stages.append(Stage(name, new.axes, new.reducer, new.over, new.body))
        return name

    def _bounding(self, over: Over) -> Iterator[Comparison]:
        return (c for c in self.conditions if not c.axes.isdisjoint(over))


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}{number}"
        number += 1
