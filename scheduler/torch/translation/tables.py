"""Indices that the graph computes: entries of tables, and sums of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import fx

from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.gathers import counted
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.nodes import arguments, name_of, shape
from tilewright.scheduler.torch.translation.table import rule_of

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Translation


def as_index(translation: Translation, node: Any, indices: Indices, below: int) -> Index:
    """Return the value of a node of whole numbers as an index of ``below`` elements; :class:`Gap`
    where it is more than a sum of multiples of axes, or an entry of an operand."""
    if isinstance(node, int):
        return Index((), node)
    if not isinstance(node, fx.Node):
        raise Gap("an index of another type")
    if node not in translation.nodes:
        return translation.operand_index(node, indices, below)
    name, rule = name_of(node), rule_of(node)
    given = {} if name == "getitem" else arguments(node)
    if rule is not None and rule.view is not None:
        source, at = rule.view(node, given, indices)
        return as_index(translation, source, at, below)
    if name in ("iota", "arange"):
        return counted(node, indices)
    if name in ("convert_element_type", "_to_copy", "clone"):
        return as_index(translation, node.args[0], indices, below)
    if name in ("add", "sub", "mul"):
        sides = [_side(translation, node, given[k], indices, below) for k in ("self", "other")]
        return _joined(name, *sides)
    raise Gap(f"indices computed by {name}")


def _side(
    translation: Translation, node: fx.Node, given: Any, indices: Indices, below: int
) -> Index:
    if not isinstance(given, fx.Node):
        return as_index(translation, given, indices, below)
    own = shape(given)
    at = [
        i if e > 1 else Index()
        for i, e in zip(indices[len(indices) - len(own) :], own, strict=True)
    ]
    return as_index(translation, given, at, below)


def _joined(name: str, left: Index, right: Index) -> Index:
    if name == "mul":
        if left.terms and right.terms:
            raise Gap("products of indices")
        return right * left.constant if not left.terms else left * right.constant
    return left + (right if name == "add" else right * -1)
