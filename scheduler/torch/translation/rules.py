"""The table of rules: what each ATen operator computes, registered by decorators.

The modules of the families fill it: importing :mod:`tilewright.scheduler.torch.translation.table`
imports them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from torch import fx

from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.values import Value

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Translation


class Kind(Enum):
    """The kinds of operators, as far as regions grow differently along them."""

    VIEW = "view"
    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    PRODUCT = "product"
    RESULT = "result"  # one of several results of a reduction or a product


Source = tuple[fx.Node, list[Index]]
"""A node, and where one of its elements is."""
Ties = Callable[[fx.Node], Iterable[tuple[Dimension, Dimension]]]
"""The pairs of dimensions of a node and its arguments that are one loop."""
ViewRule = Callable[[fx.Node, dict[str, Any], Indices], Source]
PieceRule = Callable[[fx.Node, int, Indices], Source]
ValueRule = Callable[["Translation", fx.Node, Indices], Value]
ResultRule = Callable[["Translation", fx.Node, Indices, int], Value]


@dataclass(frozen=True)
class Rule:
    """The rule by which elements of a node are computed: one of four functions.

    ``view`` says which element of which argument it is, and ``piece`` the same of one of several
    views. ``value`` computes it, and ``result`` computes it of the first ``results`` of several
    results. ``cheap`` values are computed again by each reader.
    """

    kind: Kind
    view: ViewRule | None = None
    piece: PieceRule | None = None
    value: ValueRule | None = None
    result: ResultRule | None = None
    results: int = 1
    ties: Ties | None = None
    cheap: bool = False


RULES: dict[str, Rule] = {}
"""Operator name to rule."""


def view(*names: str) -> Callable[[ViewRule], ViewRule]:
    """Register a function that gives the argument, and the indices into it."""

    def register(function: ViewRule) -> ViewRule:
        _add(names, Rule(Kind.VIEW, view=function))
        return function

    return register


def pieces(*names: str) -> Callable[[PieceRule], PieceRule]:
    """Register a function that does the same for one of several views of an argument."""

    def register(function: PieceRule) -> PieceRule:
        _add(names, Rule(Kind.VIEW, piece=function))
        return function

    return register


def pointwise(
    *names: str, ties: Ties | None = None, cheap: bool = False
) -> Callable[[ValueRule], ValueRule]:
    """Register a function that computes an element from elements of the arguments."""

    def register(function: ValueRule) -> ValueRule:
        _add(names, Rule(Kind.POINTWISE, value=function, ties=ties, cheap=cheap))
        return function

    return register


def reducing(
    kind: Kind, *names: str, results: int = 1, ties: Ties | None = None
) -> Callable[[ResultRule], ResultRule]:
    """Register a function that computes an element of one of several results."""

    def register(function: ResultRule) -> ResultRule:
        _add(names, Rule(kind, result=function, results=results, ties=ties))
        return function

    return register


def _add(names: Iterable[str], rule: Rule) -> None:
    for name in names:
        if name in RULES:
            raise ValueError(f"two rules for {name}")
        RULES[name] = rule
